"""The APIs of logins, credentials, ACLs and quotas."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bucketlog.log_format.wire.messages.alter_client_quotas import ALTER_CLIENT_QUOTAS
from bucketlog.log_format.wire.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
)
from bucketlog.log_format.wire.messages.create_acls import CREATE_ACLS
from bucketlog.log_format.wire.messages.create_delegation_token import CREATE_DELEGATION_TOKEN
from bucketlog.log_format.wire.messages.delete_acls import DELETE_ACLS
from bucketlog.log_format.wire.messages.describe_acls import DESCRIBE_ACLS
from bucketlog.log_format.wire.messages.describe_client_quotas import DESCRIBE_CLIENT_QUOTAS
from bucketlog.log_format.wire.messages.describe_delegation_token import (
    DESCRIBE_DELEGATION_TOKEN,
)
from bucketlog.log_format.wire.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
)
from bucketlog.log_format.wire.messages.expire_delegation_token import EXPIRE_DELEGATION_TOKEN
from bucketlog.log_format.wire.messages.renew_delegation_token import RENEW_DELEGATION_TOKEN
from bucketlog.log_format.wire.messages.sasl_authenticate import SASL_AUTHENTICATE
from bucketlog.log_format.wire.messages.sasl_handshake import SASL_HANDSHAKE
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.authorization.needs import BY_RESOURCE, NOTHING, NeedsCluster
from bucketlog.stateless_broker.handlers import audited_changes as audited
from bucketlog.stateless_broker.handlers.acls import (
    AclLimits,
    AclsHandler,
    deny_create,
    deny_delete,
    deny_describe,
)
from bucketlog.stateless_broker.handlers.client_quotas import (
    ClientQuotasHandler,
    QuotaLimits,
    deny_alter_quotas,
    deny_describe_quotas,
)
from bucketlog.stateless_broker.handlers.delegation_tokens import (
    DelegationTokensHandler,
    TokenLimits,
)
from bucketlog.stateless_broker.handlers.logins import sasl_authenticate, sasl_handshake
from bucketlog.stateless_broker.handlers.scram_credentials import (
    CredentialLimits,
    ScramCredentialsHandler,
    deny_alter_credentials,
    deny_describe_credentials,
)
from bucketlog.stateless_broker.handlers.security_changes import SecurityChanges
from bucketlog.stateless_broker.network.apis import Api
from bucketlog.stateless_broker.network.request_order import UNORDERED, Ordering, State, reads

DESCRIBE, ALTER = (AclOperation.DESCRIBE,), (AclOperation.ALTER,)


def _changes(broker: BrokerParts) -> SecurityChanges:
    return SecurityChanges(broker.log.intake, change_ms_max=broker.settings.config_change_ms_max)


def credentials_handler(broker: BrokerParts) -> ScramCredentialsHandler:
    settings = broker.settings
    return ScramCredentialsHandler(
        view=broker.log.view,
        changes=_changes(broker),
        seal=broker.seal,
        limits=CredentialLimits(settings.scram_credentials_max, settings.user_bytes_max),
        now_ms=broker.now_ms,
    )


LOGIN_APIS: Sequence[Api[Any, Any]] = (
    Api(SASL_HANDSHAKE, sasl_handshake, NOTHING, UNORDERED, login=True),
    Api(SASL_AUTHENTICATE, sasl_authenticate, NOTHING, UNORDERED, login=True),
)


def security_apis(
    broker: BrokerParts, catch_up: Callable[[], Awaitable[bool]]
) -> list[Api[Any, Any]]:
    settings = broker.settings
    changes, credentials = _changes(broker), credentials_handler(broker)
    acls = AclsHandler(
        view=broker.log.view,
        changes=changes,
        has_authorizer=broker.log.authorizer is not None,
        limits=AclLimits(
            settings.acls_max,
            settings.acl_principal_bytes_max,
            settings.acl_host_bytes_max,
            settings.acl_name_bytes_max,
        ),
        catch_up=catch_up,
        now_ms=broker.now_ms,
        turns=broker.turns,
    )
    return [
        *LOGIN_APIS,
        Api(
            DESCRIBE_USER_SCRAM_CREDENTIALS,
            credentials.describe,
            NeedsCluster(DESCRIBE, deny_describe_credentials),
            reads(State.USERS),
            large_answers=True,
        ),
        Api(
            ALTER_USER_SCRAM_CREDENTIALS,
            credentials.alter,
            NeedsCluster(ALTER, deny_alter_credentials),
            Ordering(State.USERS, State.USERS),
            audit=audited.altered_users,
        ),
        Api(
            DESCRIBE_ACLS,
            acls.describe,
            NeedsCluster(DESCRIBE, deny_describe),
            reads(State.ACLS),
            large_answers=True,
        ),
        Api(
            CREATE_ACLS,
            acls.create,
            NeedsCluster(ALTER, deny_create),
            Ordering(State.ACLS, State.ACLS),
            audit=audited.created_acls,
        ),
        Api(
            DELETE_ACLS,
            acls.delete,
            NeedsCluster(ALTER, deny_delete),
            Ordering(State.ACLS, State.ACLS),
            audit=audited.deleted_acls,
        ),
        *_quota_apis(broker, changes, catch_up),
        *_token_apis(broker, changes, catch_up),
    ]


def _quota_apis(
    broker: BrokerParts, changes: SecurityChanges, catch_up: Callable[[], Awaitable[bool]]
) -> list[Api[Any, Any]]:
    settings = broker.settings
    quotas = ClientQuotasHandler(
        view=broker.log.view,
        changes=changes,
        limits=QuotaLimits(
            settings.client_quota_entities_max, settings.client_quota_name_bytes_max
        ),
        catch_up=catch_up,
        now_ms=broker.now_ms,
        turns=broker.turns,
    )
    return [
        Api(
            DESCRIBE_CLIENT_QUOTAS,
            quotas.describe,
            NeedsCluster((AclOperation.DESCRIBE_CONFIGS,), deny_describe_quotas),
            reads(State.QUOTAS),
            large_answers=True,
        ),
        Api(
            ALTER_CLIENT_QUOTAS,
            quotas.alter,
            NeedsCluster((AclOperation.ALTER_CONFIGS,), deny_alter_quotas),
            Ordering(State.QUOTAS, State.QUOTAS),
            audit=audited.altered_quotas,
        ),
    ]


def _token_apis(
    broker: BrokerParts, changes: SecurityChanges, catch_up: Callable[[], Awaitable[bool]]
) -> list[Api[Any, Any]]:
    settings = broker.settings
    tokens = DelegationTokensHandler(
        view=broker.log.view,
        changes=changes,
        secrets=broker.token_secrets,
        limits=TokenLimits(
            settings.delegation_tokens_max,
            settings.delegation_token_renewers_max,
            settings.delegation_token_lifetime_ms_max,
            settings.delegation_token_expiry_ms,
        ),
        catch_up=catch_up,
        new_uuid=broker.new_uuid,
        now_ms=broker.now_ms,
        turns=broker.turns,
    )
    changes_tokens = Ordering(State.TOKENS, State.TOKENS)
    return [
        Api(
            CREATE_DELEGATION_TOKEN,
            tokens.create,
            BY_RESOURCE,
            changes_tokens,
            audit=tokens.audited_creation,
        ),
        Api(
            RENEW_DELEGATION_TOKEN,
            tokens.renew,
            BY_RESOURCE,
            changes_tokens,
            audit=tokens.audited_renewal,
        ),
        Api(
            EXPIRE_DELEGATION_TOKEN,
            tokens.expire,
            BY_RESOURCE,
            changes_tokens,
            audit=tokens.audited_expiry,
        ),
        Api(
            DESCRIBE_DELEGATION_TOKEN,
            tokens.describe,
            BY_RESOURCE,
            reads(State.TOKENS),
            large_answers=True,
        ),
    ]
