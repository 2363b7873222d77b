"""Facts about delegation tokens (KIP-48)."""

from typing import Annotated, Literal, TypeAlias

from pydantic import FailFast, Field

from bucketlog.metadata.fact_model import FactKind, FactModel, Milliseconds, Principal, ShortBytes

TokenId = Annotated[str, Field(min_length=1, max_length=64)]


class DelegationTokenCreated(FactModel):
    """A token from now on. All fields but `expires_ms` are fixed, and the token's HMAC covers them.
    The HMAC is in no fact: brokers compute it with the secret key of id `key_id`
    (docs/format/segment.md)."""

    kind: Literal[FactKind.DELEGATION_TOKEN_CREATED] = Field(
        FactKind.DELEGATION_TOKEN_CREATED, exclude=True
    )
    token_id: TokenId
    owner: Principal
    requester: Principal
    renewers: Annotated[tuple[Principal, ...], FailFast()]
    issued_ms: Milliseconds
    max_ms: Milliseconds
    expires_ms: Milliseconds
    key_id: ShortBytes


class DelegationTokenRenewed(FactModel):
    """The token expires then, but not after its `max_ms`. `by`: the principal that asked for it."""

    kind: Literal[FactKind.DELEGATION_TOKEN_RENEWED] = Field(
        FactKind.DELEGATION_TOKEN_RENEWED, exclude=True
    )
    token_id: TokenId
    expires_ms: Milliseconds
    by: Principal
    at_ms: Milliseconds


class DelegationTokensForgotten(FactModel):
    """Tokens that somebody ended, or that expired."""

    kind: Literal[FactKind.DELEGATION_TOKENS_FORGOTTEN] = Field(
        FactKind.DELEGATION_TOKENS_FORGOTTEN, exclude=True
    )
    token_ids: Annotated[tuple[TokenId, ...], FailFast()]
    by: Principal
    at_ms: Milliseconds


TokenFact: TypeAlias = DelegationTokenCreated | DelegationTokenRenewed | DelegationTokensForgotten
