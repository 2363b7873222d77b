"""Logins by SCRAM with `tokenauth=true`: the name is the id of a delegation token (KIP-48).

Invariants: the user of such a login is the token's owner, and its session ends with the token. The
exchange of an unknown or expired token takes the same steps as one with a wrong secret. Source:
Kafka's ScramSaslServer and DelegationTokenCredentialCallback.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication.scram import (
    ScramCredential,
    ScramExchange,
    token_named_by,
)

Find = Callable[[str], ScramCredential | None]


class TokenLogin(NamedTuple):
    """The login by a token. `owner` is a name without a type, `valid_s` the time until the token
    expires."""

    owner: str
    valid_s: float
    credential: ScramCredential


FindToken: TypeAlias = Callable[[str, ScramMechanism], Awaitable[TokenLogin | None]]
"""Returns the login that the token with an id permits; None: nobody can log in with the token."""


class ScramOrTokenExchange:
    """A login of a user, or by a token if the client's first message says so. `exchange` makes an
    exchange with the given look-up; the flag says whether it is one by token."""

    refusal: str | None = None

    def __init__(
        self,
        *,
        users: Find,
        tokens: Callable[[str], Awaitable[TokenLogin | None]],
        exchange: Callable[[Find, bool], ScramExchange],
    ) -> None:
        self._users = users
        self._tokens = tokens
        self._make = exchange
        self._exchange: ScramExchange | None = None
        self._token: TokenLogin | None = None
        self.token_id: str | None = None
        """The id of the token that the client wants to log in with."""

    @property
    def claimed(self) -> str | None:
        return None if self._exchange is None else self._exchange.claimed

    @property
    def user(self) -> str | None:
        found = None if self._exchange is None else self._exchange.user
        return found if found is None or self._token is None else self._token.owner

    @property
    def session_s(self) -> float | None:
        return None if self._token is None else self._token.valid_s

    def answer(self, message: bytes) -> bytes | Awaitable[bytes]:
        """The server's next message. Raises `LoginFailedError`."""
        if self._exchange is None:
            self.token_id = token_named_by(message)
            if self.token_id is not None:
                return self._begin_by_token(self.token_id, message)
            self._exchange = self._make(self._users, False)
        return self._exchange.answer(message)

    async def _begin_by_token(self, token_id: str, message: bytes) -> bytes:
        token = self._token = await self._tokens(token_id)
        self._exchange = self._make(lambda _: None if token is None else token.credential, True)
        return self._exchange.answer(message)
