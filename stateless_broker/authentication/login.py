"""The login of one connection: a state machine. Pure, except for the exchange that it drives.

Invariants: before the login, only ApiVersions, SaslHandshake and SaslAuthenticate are served. A
login that has failed admits nothing more. A re-authentication keeps mechanism and principal. After
the end of its session, a connection can only authenticate again. Source: KIP-43, KIP-152, KIP-368;
Kafka's SaslServerAuthenticator and KafkaChannel.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.authentication.realms import REALM_MARK
from bucketlog.stateless_broker.authentication.scram import LoginFailedError

REAUTHENTICATION_S_MIN = 1.0
"""Source: Kafka's KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS."""
_BEFORE_HANDSHAKE = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})


class Exchange(Protocol):
    """An exchange of a mechanism. `user` is None until the exchange has succeeded. `claimed` is the
    user that the client wants to be, as soon as the client has said so. `session_s` is how long the
    client's proof is valid; None: it does not expire. `refusal` is why the exchange will fail after
    the client's next message; None: it may succeed. `token_id` is the id of the delegation token by
    which the client wants to log in; None: the client logs in another way."""

    @property
    def token_id(self) -> str | None: ...

    @property
    def claimed(self) -> str | None: ...

    @property
    def user(self) -> str | None: ...

    @property
    def session_s(self) -> float | None: ...

    @property
    def refusal(self) -> str | None: ...

    def answer(self, message: bytes) -> bytes | Awaitable[bytes]:
        """The server's next message. Raises `LoginFailedError`."""


class _Step(Enum):
    BEGUN = auto()
    EXCHANGING = auto()
    DONE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class LoginRules:
    """`mechanisms` make an exchange each, in the order in which clients see them. `ms_max` bounds
    the time from the connection to the login. `reauthentication_ms_max` 0: sessions never end.
    `has_realms`: the users of exchanges are `USER@TENANT`."""

    mechanisms: Mapping[str, Callable[[], Exchange]]
    ms_max: int
    failure_delay_ms: int
    request_bytes_max: int
    reauthentication_ms_max: int
    now_s: Callable[[], float]
    has_realms: bool = False

    @property
    def too_slow(self) -> str:
        return f"it has not logged in for {self.ms_max} ms (BUCKETLOG_LOGIN_MS_MAX)"


class TokenAnswer(NamedTuple):
    error: ErrorCode
    message: str | None = None
    token: bytes = b""
    session_ms: int = 0


class Login:
    def __init__(self, rules: LoginRules) -> None:
        self.rules = rules
        self.failure: str | None = None
        """Why the login has failed, for the log."""
        self.principal: str | None = None
        self.tenant = ""
        """The tenant that the login names; empty if logins have no realms."""
        self._named: str | None = None
        """The principal with its realm."""
        self.token_id: str | None = None
        """The id of the delegation token by which the client has logged in; None: it has used no
        token."""
        self.claimed: str | None = None
        """The user that the client wanted to be in the exchange that has failed."""
        self.complaint: str | None = None
        """Why a request before the login was refused."""
        self._step = _Step.BEGUN
        self._mechanism = self._wanted = ""
        self._exchange: Exchange | None = None
        self._done_s = 0.0
        self._expires_s: float | None = None
        self._session_ms = 0
        self._session_end = ""

    @property
    def mechanism(self) -> str:
        return self._mechanism or self._wanted

    @property
    def is_done(self) -> bool:
        return self._step is _Step.DONE

    def problem(self, api_key: int) -> str | None:
        """The reason to close the connection at a request; None: it may be served."""
        match self._step:
            case _Step.DONE:
                if self._expires_s is None or self.rules.now_s() < self._expires_s:
                    return None
                if api_key == ApiKey.SASL_HANDSHAKE:
                    return None
                return f"its session has ended ({self._session_end})"
            case _Step.BEGUN if api_key in _BEFORE_HANDSHAKE:
                return None
            case _Step.EXCHANGING if api_key == ApiKey.SASL_AUTHENTICATE:
                return None
            case _Step.FAILED:
                return self.failure
        self.complaint = f"a request of API key {api_key} before the login"
        refusal = None if self._exchange is None else self._exchange.refusal
        if refusal is not None:
            self.complaint += f": {refusal}"
        return self.complaint

    def handshake(self, mechanism: str) -> ErrorCode:
        """Begin an exchange. A connection that may not authenticate again stays as it is."""
        if self._step is _Step.DONE and not self._may_authenticate_again():
            return ErrorCode.illegal_sasl_state
        make = self.rules.mechanisms.get(mechanism)
        if make is None:
            self._fail(f"it wants the mechanism {mechanism[:40]!r}, which is not enabled")
            return ErrorCode.unsupported_sasl_mechanism
        self._wanted = mechanism
        if self.principal is None:
            self._mechanism = mechanism
        self._exchange = make() if mechanism == self._mechanism else None
        self._step = _Step.EXCHANGING
        return ErrorCode.none

    def _may_authenticate_again(self) -> bool:
        long_enough = self.rules.now_s() >= self._done_s + REAUTHENTICATION_S_MIN
        return self._expires_s is not None and long_enough

    async def authenticate(self, token: bytes) -> TokenAnswer:
        if self._step is not _Step.EXCHANGING:
            return TokenAnswer(
                ErrorCode.illegal_sasl_state,
                "SaslAuthenticate request received after successful authentication",
            )
        exchange = self._exchange
        try:
            if exchange is None:
                raise LoginFailedError(
                    f"SASL mechanism '{self._wanted}' requested by client is not supported for "
                    f"re-authentication of mechanism '{self._mechanism}'",
                    is_public=True,
                )
            answer = exchange.answer(token)
            if not isinstance(answer, bytes):
                answer = await answer
            if exchange.user is None:
                return TokenAnswer(ErrorCode.none, token=answer)
            self._succeed(f"User:{exchange.user}", exchange.session_s)
            self.token_id = exchange.token_id
        except LoginFailedError as error:
            self._fail(f"login by {self._mechanism} failed: {error}")
            return TokenAnswer(ErrorCode.sasl_authentication_failed, self._text(error))
        return TokenAnswer(ErrorCode.none, token=answer, session_ms=self._session_ms)

    def _succeed(self, principal: str, session_s: float | None) -> None:
        """Note that the exchange has succeeded. Raises `LoginFailedError`."""
        if self._named is not None and principal != self._named:
            raise LoginFailedError(
                f"Cannot change principals during re-authentication from {self._named} to "
                f"{principal}",
                is_public=True,
            )
        self._named, self._exchange = principal, None
        self.principal = principal
        if self.rules.has_realms:
            self.principal, _, self.tenant = principal.rpartition(REALM_MARK)
        self._step = _Step.DONE
        self._done_s = self.rules.now_s()
        session_ms = self.rules.reauthentication_ms_max
        self._session_end = "BUCKETLOG_CONNECTIONS_REAUTH_MS_MAX"
        if session_s is not None and (not session_ms or session_s * 1000 < session_ms):
            session_ms = max(1, int(session_s * 1000))  # for clients, 0 is a session without end
            self._session_end = "its token has expired"
        self._session_ms = session_ms
        self._expires_s = self._done_s + session_ms / 1000 if session_ms else None

    def _fail(self, reason: str) -> None:
        self.claimed = None if self._exchange is None else self._exchange.claimed
        self._step, self._exchange, self.failure = _Step.FAILED, None, reason

    def _text(self, error: LoginFailedError) -> str:
        """Return the text for the client: the same for an unknown user and for a wrong password."""
        if error.client_text is not None:
            return error.client_text
        again = "re-authentication" if self.principal is not None else "authentication"
        return (
            f"Authentication failed during {again} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )
