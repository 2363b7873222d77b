"""Facts about users and rights: SCRAM credentials, ACLs and client quotas."""

from typing import Annotated, Literal, TypeAlias

from pydantic import FailFast, Field

from bucketlog.metadata.acl_bindings import AclBinding
from bucketlog.metadata.fact_model import FactKind, FactModel, Milliseconds, ShortBytes
from bucketlog.metadata.quota_entities import QuotaChange


class ScramCredentialSet(FactModel):
    """A user's SCRAM credential from now on (KIP-554). `sealed` has its two keys, encrypted and
    authenticated with the secret key of id `key_id` (docs/format/segment.md). `by`: the principal
    that asked for it."""

    kind: Literal[FactKind.SCRAM_CREDENTIAL_SET] = Field(
        FactKind.SCRAM_CREDENTIAL_SET, exclude=True
    )
    user: str
    mechanism: str
    iterations: Annotated[int, Field(ge=1, lt=2**31)]
    salt: ShortBytes
    key_id: ShortBytes
    sealed: ShortBytes
    by: str
    at_ms: Milliseconds


class ScramCredentialDeleted(FactModel):
    kind: Literal[FactKind.SCRAM_CREDENTIAL_DELETED] = Field(
        FactKind.SCRAM_CREDENTIAL_DELETED, exclude=True
    )
    user: str
    mechanism: str
    by: str
    at_ms: Milliseconds


class AclsCreated(FactModel):
    """ACLs that exist from now on. An ACL that is there already stays. `by`: the principal that
    asked for them."""

    kind: Literal[FactKind.ACLS_CREATED] = Field(FactKind.ACLS_CREATED, exclude=True)
    acls: Annotated[tuple[AclBinding, ...], FailFast()]
    by: str
    at_ms: Milliseconds


class AclsDeleted(FactModel):
    kind: Literal[FactKind.ACLS_DELETED] = Field(FactKind.ACLS_DELETED, exclude=True)
    acls: Annotated[tuple[AclBinding, ...], FailFast()]
    by: str
    at_ms: Milliseconds


class ClientQuotasAltered(FactModel):
    """Quotas that are set or removed from now on (KIP-546). `by`: the principal that asked for
    it."""

    kind: Literal[FactKind.CLIENT_QUOTAS_ALTERED] = Field(
        FactKind.CLIENT_QUOTAS_ALTERED, exclude=True
    )
    changes: Annotated[tuple[QuotaChange, ...], FailFast()]
    by: str
    at_ms: Milliseconds


CredentialFact: TypeAlias = ScramCredentialSet | ScramCredentialDeleted
AclFact: TypeAlias = AclsCreated | AclsDeleted
SecurityFact: TypeAlias = CredentialFact | AclFact | ClientQuotasAltered
