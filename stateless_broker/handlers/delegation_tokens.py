"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, DescribeDelegationToken.

Invariants: a change is answered once this broker's view shows it. A client that logged in by a
token, or not at all, may not ask. Source: KIP-48, KIP-373; Kafka's DelegationTokenControlManager
and KafkaApis.
"""

import base64
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from bucketlog.log_format.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from bucketlog.log_format.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from bucketlog.log_format.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation, ResourceType
from bucketlog.metadata.delegation_tokens import DelegationToken
from bucketlog.metadata.fact_model import PRINCIPAL_CHARS_MAX
from bucketlog.metadata.token_facts import (
    DelegationTokenCreated,
    DelegationTokenRenewed,
    DelegationTokensForgotten,
)
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authentication.token_secrets import TokenSecrets
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.handlers.security_changes import SecurityChanges
from bucketlog.stateless_broker.network.apis import Answer, Request
from bucketlog.stateless_broker.network.audit import Change
from bucketlog.stateless_broker.network.turns import Slices, Turns

FORGOTTEN_AFTER_MS = 3_600_000
"""The shortest time that an expired token stays in the log. The clocks of brokers may differ."""
FORGOTTEN_AT_ONCE = 1_000
TOKENS_A_UNIT = 20
NO_TIME_MS = -1
"""The time in answers to clients that may not ask. Source: Kafka's DelegationTokenManager."""
_USER = "User"
_START = datetime(1970, 1, 1, tzinfo=UTC)


class TokenLimits(NamedTuple):
    """`lifetime_ms_max` bounds a token with all its renewals, `expiry_ms` the time until the next
    renewal."""

    tokens_max: int
    renewers_max: int
    lifetime_ms_max: int
    expiry_ms: int


class DelegationTokensHandler:
    """`secrets` None: tokens are off. `catch_up` waits until the view shows all that is visible
    now."""

    def __init__(
        self,
        *,
        view: View,
        changes: SecurityChanges,
        secrets: TokenSecrets | None,
        limits: TokenLimits,
        catch_up: Callable[[], Awaitable[bool]],
        new_uuid: Callable[[], UUID],
        now_ms: WallClock,
        turns: Turns,
    ) -> None:
        self._view = view
        self._changes = changes
        self._secrets = secrets
        self._limits = limits
        self._catch_up = catch_up
        self._new_uuid = new_uuid
        self._now_ms = now_ms
        self._turns = turns

    # CreateDelegationToken -------------------------------------------------------------------

    async def create(
        self, request: Request, message: CreateDelegationTokenRequest
    ) -> CreateDelegationTokenResponse:
        requester = owner = request.connection.principal
        if message.owner_principal_name:
            owner = f"{message.owner_principal_type}:{message.owner_principal_name}"
        error = self._refusal(request, message, owner)
        if error is not ErrorCode.none:
            return _created(error, owner, requester, NO_TIME_MS)
        secrets, now_ms, limits = self._secrets, self._now_ms(), self._limits
        if secrets is None:
            return _created(ErrorCode.delegation_token_auth_disabled, owner, requester, 0)
        await self._forget_expired(requester, now_ms)
        if len(self._view.delegation_tokens) >= limits.tokens_max:
            return _created(ErrorCode.policy_violation, owner, requester, 0)
        wanted_ms = message.max_lifetime // timedelta(milliseconds=1)
        lifetime_ms = limits.lifetime_ms_max
        if wanted_ms > 0:
            lifetime_ms = min(lifetime_ms, wanted_ms)
        fact = DelegationTokenCreated(
            token_id=_token_id(self._new_uuid),
            owner=owner,
            requester=requester,
            renewers=tuple(
                dict.fromkeys(_principal(_USER, each.principal_name) for each in message.renewers)
            ),
            issued_ms=now_ms,
            max_ms=now_ms + lifetime_ms,
            expires_ms=now_ms + min(lifetime_ms, limits.expiry_ms),
            key_id=secrets.key_id,
        )
        refusal = await self._changes.commit(fact)
        token = self._view.delegation_tokens.by_id.get(fact.token_id)
        secret = None if token is None else secrets.secret(token.identity)
        if refusal is not None or token is None or secret is None:
            error = ErrorCode.unknown_server_error if refusal is None else refusal.error
            return _created(error, owner, requester, 0)
        return _created(ErrorCode.none, owner, requester, 0, token, secret)

    def _refusal(
        self, request: Request, message: CreateDelegationTokenRequest, owner: str
    ) -> ErrorCode:
        requester = request.connection.principal
        if not _may_ask(request):
            return ErrorCode.delegation_token_request_not_allowed
        wanted = AclOperation.CREATE_TOKENS, ResourceType.USER, owner
        if owner != requester and not request.access.may(*wanted):
            return ErrorCode.delegation_token_authorization_failed
        if self._secrets is None:
            return ErrorCode.none
        types = [each.principal_type for each in message.renewers]
        if message.owner_principal_name:
            types.append(message.owner_principal_type or "")
        if any(each != _USER for each in types):
            return ErrorCode.invalid_principal_type
        names = [_principal(_USER, each.principal_name) for each in message.renewers]
        if len(names) > self._limits.renewers_max or any(
            len(each) > PRINCIPAL_CHARS_MAX for each in (owner, requester, *names)
        ):
            return ErrorCode.policy_violation
        return ErrorCode.none

    async def _forget_expired(self, by: str, now_ms: int) -> None:
        until_ms = now_ms - FORGOTTEN_AFTER_MS
        tokens = self._view.delegation_tokens.by_id
        gone = [id_ for id_, token in tokens.items() if token.expires_ms < until_ms]
        if gone:
            ids = tuple(gone[:FORGOTTEN_AT_ONCE])
            await self._changes.commit(
                DelegationTokensForgotten(token_ids=ids, by=by, at_ms=now_ms)
            )

    # RenewDelegationToken, ExpireDelegationToken ---------------------------------------------

    async def renew(
        self, request: Request, message: RenewDelegationTokenRequest
    ) -> RenewDelegationTokenResponse:
        if not _may_ask(request):
            error = ErrorCode.delegation_token_request_not_allowed
            return {"error_code": error, "expiry_timestamp": _time(NO_TIME_MS)}
        by, period_ms = request.connection.principal, self._limits.expiry_ms
        wanted_ms = message.renew_period // timedelta(milliseconds=1)
        if wanted_ms > 0:
            period_ms = min(period_ms, wanted_ms)
        error, expires_ms = await self._move_end(message.hmac, by, period_ms)
        return {"error_code": error, "expiry_timestamp": _time(expires_ms)}

    async def expire(
        self, request: Request, message: ExpireDelegationTokenRequest
    ) -> ExpireDelegationTokenResponse:
        if not _may_ask(request):
            error = ErrorCode.delegation_token_request_not_allowed
            return {"error_code": error, "expiry_timestamp": _time(NO_TIME_MS)}
        by = request.connection.principal
        period_ms = message.expiry_time_period // timedelta(milliseconds=1)
        error, expires_ms = await self._move_end(message.hmac, by, period_ms)
        return {"error_code": error, "expiry_timestamp": _time(expires_ms)}

    async def _move_end(self, secret: bytes, by: str, period_ms: int) -> tuple[ErrorCode, int]:
        """The error and the new end. A negative period ends the token at once."""
        if self._secrets is None:
            return ErrorCode.delegation_token_auth_disabled, 0
        await self._catch_up()
        token = self._secrets.find(self._view.delegation_tokens.by_id, secret)
        now_ms = self._now_ms()
        if token is None:
            return ErrorCode.delegation_token_not_found, 0
        identity = token.identity
        if token.expires_ms < now_ms:
            return ErrorCode.delegation_token_expired, 0
        if not identity.may_renew(by):
            return ErrorCode.delegation_token_owner_mismatch, 0
        token_id, expires_ms = identity.token_id, min(identity.max_ms, now_ms + period_ms)
        if period_ms < 0:
            expires_ms = now_ms
            refusal = await self._changes.commit(
                DelegationTokensForgotten(token_ids=(token_id,), by=by, at_ms=now_ms)
            )
        else:
            refusal = await self._changes.commit(
                DelegationTokenRenewed(
                    token_id=token_id, expires_ms=expires_ms, by=by, at_ms=now_ms
                )
            )
        return (ErrorCode.none, expires_ms) if refusal is None else (refusal.error, 0)

    # DescribeDelegationToken -----------------------------------------------------------------

    async def describe(
        self, request: Request, message: DescribeDelegationTokenRequest
    ) -> DescribeDelegationTokenResponse:
        """Describe tokens. If the request has no list of owners, it asks for those of all owners;
        an empty list asks for none."""
        if not _may_ask(request):
            return {"error_code": ErrorCode.delegation_token_request_not_allowed, "tokens": ()}
        if self._secrets is None:
            return {"error_code": ErrorCode.delegation_token_auth_disabled, "tokens": ()}
        owners = message.owners
        wanted = None
        if owners is not None:
            wanted = {_principal(each.principal_type, each.principal_name) for each in owners}
        await self._catch_up()
        slices, now_ms = Slices(self._turns), self._now_ms()
        rows: list[DescribedDelegationToken] = []
        for number, token in enumerate([*self._view.delegation_tokens.by_id.values()]):
            if number % TOKENS_A_UNIT == 0:
                await slices.spend(1)
            secret = self._secrets.secret(token.identity)
            is_there = secret is not None and token.expires_ms >= now_ms
            if secret is not None and is_there and _is_shown(token, wanted, request):
                rows.append(_described(token, secret))
        return {"error_code": ErrorCode.none, "tokens": rows}

    # For the audit log -----------------------------------------------------------------------

    def audited_creation(
        self, message: CreateDelegationTokenRequest, answer: Answer
    ) -> Iterable[Change]:
        error, token_id, owner = None, "", message.owner_principal_name or ""
        if isinstance(answer, dict):
            error, token_id = answer["error_code"], answer["token_id"]
            owner = _principal(answer["principal_type"], answer["principal_name"])
        renewers = [
            _principal(each.principal_type, each.principal_name) for each in message.renewers
        ]
        details = {"change": "create", "owner": owner, "renewers": renewers[:TOKENS_A_UNIT]}
        yield Change("delegation token", token_id, error, details)

    def audited_renewal(
        self, message: RenewDelegationTokenRequest, answer: Answer
    ) -> Iterable[Change]:
        yield self._audited(message.hmac, answer, "renew")

    def audited_expiry(
        self, message: ExpireDelegationTokenRequest, answer: Answer
    ) -> Iterable[Change]:
        is_end = message.expiry_time_period < timedelta(0)
        yield self._audited(message.hmac, answer, "end" if is_end else "move the end")

    def _audited(self, secret: bytes, answer: Answer, change: str) -> Change:
        """The secret is in no line: the token's id stands for it."""
        token_id = None if self._secrets is None else self._secrets.token_id(secret)
        error = answer["error_code"] if isinstance(answer, dict) else None
        return Change("delegation token", token_id or "unknown", error, {"change": change})


def _may_ask(request: Request) -> bool:
    """Source: Kafka's KafkaApis.allowTokenRequests."""
    login = request.connection.login
    return request.author is not None and (login is None or login.token_id is None)


def _is_shown(token: DelegationToken, wanted: set[str] | None, request: Request) -> bool:
    """Source: Kafka's DelegationTokenManager.filterToken."""
    identity, access = token.identity, request.access.quiet
    if wanted is not None and not any(map(identity.concerns, wanted)):
        return False
    return identity.concerns(request.connection.principal) or _may_see(access, token)


def _may_see(access: Access, token: DelegationToken) -> bool:
    by_token = AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.identity.token_id
    by_owner = AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.identity.owner
    return access.may(*by_token) or access.may(*by_owner)


def _token_id(new_uuid: Callable[[], UUID]) -> str:
    """Return a new token id, written as Kafka writes a Uuid: 22 characters, the first of which is
    not a dash."""
    while (found := base64.urlsafe_b64encode(new_uuid().bytes)).startswith(b"-"):
        pass
    return found.rstrip(b"=").decode()


def _principal(kind: str, name: str) -> str:
    return f"{kind}:{name}"


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _time(ms: int) -> datetime:
    return _START + timedelta(milliseconds=ms)


def _created(
    error: ErrorCode,
    owner: str,
    requester: str,
    no_time_ms: int,
    token: DelegationToken | None = None,
    secret: bytes = b"",
) -> CreateDelegationTokenResponse:
    (kind, name), (requester_kind, requester_name) = _parts(owner), _parts(requester)
    issued_ms = expires_ms = max_ms = no_time_ms
    if token is not None:
        issued_ms, max_ms = token.identity.issued_ms, token.identity.max_ms
        expires_ms = token.expires_ms
    return {
        "error_code": error,
        "principal_type": kind,
        "principal_name": name,
        "token_requester_principal_type": requester_kind,
        "token_requester_principal_name": requester_name,
        "issue_timestamp": _time(issued_ms),
        "expiry_timestamp": _time(expires_ms),
        "max_timestamp": _time(max_ms),
        "token_id": "" if token is None else token.identity.token_id,
        "hmac": secret,
    }


def _described(token: DelegationToken, secret: bytes) -> DescribedDelegationToken:
    identity = token.identity
    (kind, name), (requester_kind, requester_name) = (
        _parts(identity.owner),
        _parts(identity.requester),
    )
    return {
        "principal_type": kind,
        "principal_name": name,
        "token_requester_principal_type": requester_kind,
        "token_requester_principal_name": requester_name,
        "issue_timestamp": identity.issued_ms,
        "expiry_timestamp": token.expires_ms,
        "max_timestamp": identity.max_ms,
        "token_id": identity.token_id,
        "hmac": secret,
        "renewers": [
            {"principal_type": kind, "principal_name": name}
            for kind, name in map(_parts, identity.renewers)
        ],
    }
