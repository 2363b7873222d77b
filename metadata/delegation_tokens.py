"""Delegation tokens in the fold (KIP-48). Pure.

Invariants: what `TokenIdentity` has never changes. A token that expires late does so at its
`max_ms`. The secret of a token is not here: it is an HMAC over the identity.
"""

from typing import NamedTuple

from bucketlog.metadata.token_facts import (
    DelegationTokenCreated,
    DelegationTokenRenewed,
    DelegationTokensForgotten,
    TokenFact,
)


class TokenIdentity(NamedTuple):
    """Principals are as in `User:ann`. `key_id` names the key of the token's HMAC."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    key_id: bytes

    def may_renew(self, principal: str) -> bool:
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Return whether the principal may see the token without a right."""
        return principal == self.requester or self.may_renew(principal)


class DelegationToken(NamedTuple):
    identity: TokenIdentity
    expires_ms: int


class DelegationTokens:
    """All tokens of the log by id, in the order of their creation."""

    def __init__(self) -> None:
        self.by_id: dict[str, DelegationToken] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DelegationTokens) and self.by_id == other.by_id

    __hash__ = None  # type: ignore[assignment]  # values change

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, token: DelegationToken) -> None:
        """Add a token, unless its id is there already."""
        identity, expires_ms = token
        bounded = DelegationToken(identity, min(expires_ms, identity.max_ms))
        self.by_id.setdefault(identity.token_id, bounded)

    def apply(self, fact: TokenFact) -> None:
        """Apply the fact. A fact about a token that is not there has no effect: two clients may end
        a token at the same time."""
        match fact:
            case DelegationTokenCreated():
                identity = TokenIdentity(
                    fact.token_id,
                    fact.owner,
                    fact.requester,
                    fact.renewers,
                    fact.issued_ms,
                    fact.max_ms,
                    fact.key_id,
                )
                self.add(DelegationToken(identity, fact.expires_ms))
            case DelegationTokenRenewed():
                known = self.by_id.get(fact.token_id)
                if known is not None:
                    expires_ms = min(fact.expires_ms, known.identity.max_ms)
                    self.by_id[fact.token_id] = DelegationToken(known.identity, expires_ms)
            case DelegationTokensForgotten():
                for token_id in fact.token_ids:
                    self.by_id.pop(token_id, None)
