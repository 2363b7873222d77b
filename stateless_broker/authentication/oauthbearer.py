"""The server's side of OAUTHBEARER: the client sends an access token.

Invariants: a token is checked at most twice: again only if keys were loaded in between. After a
refused token, the client gets the reason as JSON, and its next message ends the login. Source:
RFC 7628, KIP-255, KIP-768; Kafka's OAuthBearerSaslServer and OAuthBearerClientInitialResponse,
whose texts clients get.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol

from bucketlog.stateless_broker.authentication.access_token import (
    AcceptedToken,
    TokenRefusedError,
    TokenRules,
    UnknownKeyError,
    accept_token,
)
from bucketlog.stateless_broker.authentication.key_set import KeySet
from bucketlog.stateless_broker.authentication.realms import REALM_MARK
from bucketlog.stateless_broker.authentication.scram import LoginFailedError

INVALID_TOKEN = '{"status":"invalid_token"}'
SESSION_S_MAX = 366 * 24 * 3600.0
_INVALID = "Invalid OAUTHBEARER client first message"
_FIRST = re.compile(r"n,(?:a=(?P<authorization>(?:[^=,\x00\x80-\U0010ffff]|=2C|=3D)+))?,\x01")
_PAIR = re.compile(r"(?P<key>[A-Za-z]+)=(?P<value>[\x21-\x7e \t\r\n]+)\x01")
_AUTH = re.compile(r"(?P<scheme>[A-Za-z0-9_]+) +(?P<token>[-_.a-zA-Z0-9]+)")


class ClientMessage(NamedTuple):
    """The first message. `extensions` are pairs besides the token; brokers do not use them."""

    token: str
    authorization: str
    extensions: dict[str, str]


def read_message(message: bytes) -> ClientMessage:
    """Takes time in proportion to the message's size. Raises `LoginFailedError`."""
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise LoginFailedError(_INVALID) from None
    first = _FIRST.match(text)
    if first is None:
        raise LoginFailedError(_INVALID)
    end, pairs = first.end(), dict[str, str]()
    while (pair := _PAIR.match(text, end)) is not None:
        pairs[pair["key"]] = pair["value"]
        end = pair.end()
    if text[end:] != "\x01":
        raise LoginFailedError(_INVALID)
    if "auth" not in pairs:
        raise LoginFailedError(f"{_INVALID}: 'auth' not specified")
    auth = _AUTH.fullmatch(pairs.pop("auth"))
    if auth is None:
        raise LoginFailedError(f"{_INVALID}: invalid 'auth' format")
    if auth["scheme"].lower() != "bearer":
        raise LoginFailedError(f"Invalid scheme in OAUTHBEARER client first message: {auth[1]!r}")
    return ClientMessage(auth["token"], first["authorization"] or "", pairs)


class Keys(Protocol):
    @property
    def current(self) -> KeySet: ...

    async def look_again(self) -> None:
        """Load the keys again, unless they were loaded lately."""


class OauthbearerExchange:
    """An exchange by access token. `now_s` is Unix time. `has_realms`: `user` is `USER@TENANT`."""

    def __init__(
        self,
        rules: TokenRules,
        keys: Keys,
        now_s: Callable[[], float],
        *,
        has_realms: bool = False,
    ) -> None:
        self._rules = rules
        self._keys = keys
        self._now_s = now_s
        self._has_realms = has_realms
        self.token_id: str | None = None
        self.refusal: str | None = None
        """Why the token was refused, for the log."""
        self.claimed: str | None = None
        self.user: str | None = None
        self.session_s: float | None = None

    async def answer(self, message: bytes) -> bytes:
        """Answer the client's message. Raises `LoginFailedError`."""
        if self.refusal is not None:
            raise LoginFailedError(self.refusal, client_text=INVALID_TOKEN)
        asked = read_message(message)
        self.claimed = asked.authorization or None
        try:
            accepted = await self._accepted(asked.token)
        except TokenRefusedError as error:
            self.refusal = f"the token is refused: {error}"
            return INVALID_TOKEN.encode()
        if asked.authorization and asked.authorization != accepted.user:
            raise LoginFailedError(
                f"Authentication failed: Client requested an authorization id "
                f"({asked.authorization}) that is different from the token's principal name "
                f"({accepted.user})",
                is_public=True,
            )
        realm = f"{REALM_MARK}{accepted.tenant}" if self._has_realms else ""
        self.user = accepted.user + realm
        self.session_s = min(accepted.session_s, SESSION_S_MAX)
        return b""

    async def _accepted(self, token: str) -> AcceptedToken:
        """Check the token. Raises `TokenRefusedError`."""
        try:
            return accept_token(token, self._keys.current, self._rules, self._now_s())
        except UnknownKeyError:
            await self._keys.look_again()
        return accept_token(token, self._keys.current, self._rules, self._now_s())
