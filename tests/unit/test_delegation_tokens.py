"""Delegation tokens whose end has passed, and limits: the handler with a clock of the test."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from bucketlog.log_format.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from bucketlog.metadata.token_facts import DelegationTokensForgotten, TokenFact
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authentication.token_secrets import TokenSecrets
from bucketlog.stateless_broker.authorization.authorizer import UNRESTRICTED
from bucketlog.stateless_broker.handlers.delegation_tokens import (
    FORGOTTEN_AFTER_MS,
    DelegationTokensHandler,
    TokenLimits,
)
from bucketlog.stateless_broker.network.turns import Turns

LIMITS = TokenLimits(tokens_max=2, renewers_max=1, lifetime_ms_max=10_000, expiry_ms=1_000)


@dataclass
class Connection:
    principal: str = "User:ann"
    login: None = None


@dataclass
class Asking:
    connection: Connection = field(default_factory=Connection)
    author: str = "User:ann"
    access: Any = UNRESTRICTED


@dataclass
class Changes:
    """Its facts are in the view at once."""

    view: View
    facts: list[TokenFact] = field(default_factory=list)

    async def commit(self, fact: TokenFact) -> None:
        self.facts.append(fact)
        self.view.delegation_tokens.apply(fact)


class Rig:
    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.view = View()
        self.changes = Changes(self.view)

        async def catch_up() -> bool:
            return True

        self.handler = DelegationTokensHandler(
            view=self.view,
            changes=self.changes,  # type: ignore[arg-type]  # in memory
            secrets=TokenSecrets([b"k" * 32], cluster_id="c", kept_max=100),
            limits=LIMITS,
            catch_up=catch_up,
            new_uuid=uuid4,
            now_ms=lambda: self.now_ms,
            turns=Turns(),
        )

    async def create(self, *renewers: str) -> Any:
        message = CreateDelegationTokenRequest(
            renewers=tuple(
                CreatableRenewers(principal_type="User", principal_name=name) for name in renewers
            ),
            max_lifetime=timedelta(milliseconds=-1),
        )
        return await self.handler.create(Asking(), message)  # type: ignore[arg-type]  # as it is

    async def renew(self, secret: bytes) -> ErrorCode:
        message = RenewDelegationTokenRequest(hmac=secret, renew_period=timedelta(milliseconds=-1))
        answer = await self.handler.renew(Asking(), message)  # type: ignore[arg-type]  # as above
        return answer["error_code"]


def test_expired_tokens_are_refused_and_forgotten() -> None:
    async def run() -> None:
        rig = Rig()
        first = await rig.create()
        rig.now_ms += LIMITS.expiry_ms
        assert await rig.renew(first["hmac"]) is ErrorCode.none
        rig.now_ms += LIMITS.expiry_ms + 1
        assert await rig.renew(first["hmac"]) is ErrorCode.delegation_token_expired
        second = await rig.create()
        assert {*rig.view.delegation_tokens.by_id} == {first["token_id"], second["token_id"]}
        rig.now_ms += FORGOTTEN_AFTER_MS
        third = await rig.create()
        assert {*rig.view.delegation_tokens.by_id} == {second["token_id"], third["token_id"]}
        (gone,) = (one for one in rig.changes.facts if isinstance(one, DelegationTokensForgotten))
        assert gone.token_ids == (first["token_id"],)
        assert await rig.renew(first["hmac"]) is ErrorCode.delegation_token_not_found

    asyncio.run(run())


def test_renewals_end_with_the_lifetime() -> None:
    async def run() -> None:
        rig = Rig()
        made = await rig.create()
        for _ in range(LIMITS.lifetime_ms_max // LIMITS.expiry_ms):
            rig.now_ms += LIMITS.expiry_ms
            assert await rig.renew(made["hmac"]) is ErrorCode.none
        (token,) = rig.view.delegation_tokens.by_id.values()
        assert token.expires_ms == token.identity.max_ms == rig.now_ms
        rig.now_ms += 1
        assert await rig.renew(made["hmac"]) is ErrorCode.delegation_token_expired

    asyncio.run(run())


def test_limits() -> None:
    async def run() -> None:
        rig = Rig()
        assert (await rig.create("bob", "eve"))["error_code"] is ErrorCode.policy_violation
        assert (await rig.create("b" * 2_000))["error_code"] is ErrorCode.policy_violation
        for _ in range(LIMITS.tokens_max):
            assert (await rig.create("bob"))["error_code"] is ErrorCode.none
        assert (await rig.create())["error_code"] is ErrorCode.policy_violation
        assert len(rig.view.delegation_tokens) == LIMITS.tokens_max

    asyncio.run(run())
