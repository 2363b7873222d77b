"""PLAIN, checked against SCRAM credentials.

Invariants: at most `checks_in_flight` passwords are checked at a time, in threads, because a check
takes milliseconds. A password that was right is remembered for a time, as a keyed hash, and is
forgotten when the user's credential changes. The check of an unknown user is the work of one with
SCRAM-SHA-512 and the fewest iterations. Source: RFC 4616; Kafka's PlainSaslServer, whose texts
clients get.
"""

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass

from bucketlog.log_format.lru import LruCache
from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    LoginFailedError,
    ScramCredential,
    ScramKeys,
    keys_of,
    salted,
)

REMEMBERED_MAX = 10_000
_FIELDS = 3
_INVALID = "Authentication failed: Invalid username or password"


@dataclass(frozen=True, slots=True)
class _Remembered:
    credential: ScramCredential
    until_s: float


class PasswordCheck:
    """Shared by all connections. `find` gives a user's credential of a mechanism, or None."""

    def __init__(
        self,
        *,
        find: Callable[[str, ScramMechanism], ScramCredential | None],
        secret: bytes,
        checks_in_flight: int,
        remembered_ms: int,
        now_s: Callable[[], float],
    ) -> None:
        self._find = find
        self._secret = secret
        self._turn = asyncio.Semaphore(checks_in_flight)
        self._remembered_s = remembered_ms / 1000
        self._now_s = now_s
        self._remembered: LruCache[bytes, _Remembered] = LruCache(REMEMBERED_MAX)

    def _credential(self, user: str) -> tuple[ScramMechanism, ScramCredential | None]:
        for mechanism in (ScramMechanism.SHA_512, ScramMechanism.SHA_256):
            found = self._find(user, mechanism)
            if found is not None:
                return mechanism, found
        return ScramMechanism.SHA_512, None

    async def is_right(self, user: str, password: str) -> bool:
        mechanism, found = self._credential(user)
        name = user.encode()
        about = len(name).to_bytes(4, "big") + name + password.encode()
        key = hmac.digest(self._secret, about, "sha256")
        known = self._remembered.find(key)
        if known is not None and known.credential == found and self._now_s() < known.until_s:
            return True
        async with self._turn:
            made = await asyncio.to_thread(_keys, mechanism, password, found)
        is_right = found is not None and hmac.compare_digest(made.stored_key, found.keys.stored_key)
        if found is not None and is_right:
            self._remembered.keep(key, _Remembered(found, self._now_s() + self._remembered_s))
        return is_right


def _keys(mechanism: ScramMechanism, password: str, found: ScramCredential | None) -> ScramKeys:
    if found is None:
        found = ScramCredential(ITERATIONS_MIN, bytes(SALT_BYTES), ScramKeys(b"", b""))
    return keys_of(mechanism, salted(mechanism, password, found.salt, found.iterations))


class PlainExchange:
    session_s: float | None = None
    refusal: str | None = None
    token_id: str | None = None

    def __init__(self, check: PasswordCheck) -> None:
        self._check = check
        self.claimed: str | None = None
        self.user: str | None = None

    async def answer(self, message: bytes) -> bytes:
        """Answer the client's message. Raises `LoginFailedError`."""
        try:
            fields = message.decode().split("\0")
        except UnicodeDecodeError:
            raise LoginFailedError("the message of PLAIN is not UTF-8") from None
        if len(fields) != _FIELDS:
            raise LoginFailedError(
                "Invalid SASL/PLAIN response: expected 3 tokens, got " + str(len(fields))
            )
        authorization, user, password = fields
        self.claimed = user
        for name, value in (("username", user), ("password", password)):
            if not value:
                raise LoginFailedError(
                    f"Authentication failed: {name} not specified", is_public=True
                )
        if not await self._check.is_right(user, password):
            raise LoginFailedError(_INVALID, is_public=True)
        if authorization and authorization != user:
            raise LoginFailedError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username",
                is_public=True,
            )
        self.user = user
        return b""
