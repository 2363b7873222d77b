"""The login of a connection: every step at every request, and re-authentication."""

from collections.abc import Awaitable

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from bucketlog.stateless_broker.authentication.login import Login, LoginRules
from bucketlog.stateless_broker.authentication.scram import LoginFailedError

SESSION_MS = 10_000
BEFORE_HANDSHAKE = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
LOGIN_APIS = BEFORE_HANDSHAKE | {ApiKey.SASL_AUTHENTICATE}


class Exchange:
    """The token is what happens: `more`, `fail`, `tell` (fail, with a public reason), `refuse`
    (the next token fails), or a user, perhaps with the seconds of a session: `ann 5`."""

    session_s: float | None = None
    refusal: str | None = None
    token_id: str | None = None

    def __init__(self, *, waits: bool = False) -> None:
        self.claimed: str | None = None
        self.user: str | None = None
        self._waits = waits

    def answer(self, message: bytes) -> bytes | Awaitable[bytes]:
        return self._later(message) if self._waits else self._answer(message)

    async def _later(self, message: bytes) -> bytes:
        return self._answer(message)

    def _answer(self, message: bytes) -> bytes:
        match message:
            case b"more":
                return b"go on"
            case b"fail":
                raise LoginFailedError("a reason for the log")
            case b"tell":
                raise LoginFailedError("a public reason", is_public=True)
            case b"refuse":
                self.refusal = "a reason for the log"
                return b"refused"
        if self.refusal is not None:
            raise LoginFailedError(self.refusal, client_text="a text for the client")
        user, _, seconds = message.decode().partition(" ")
        self.session_s = float(seconds) if seconds else None
        self.user = user
        return b"welcome"


class Clock:
    now_s = 100.0


def login(clock: Clock | None = None, *, session_ms: int = 0) -> Login:
    clock = clock or Clock()
    return Login(
        LoginRules(
            mechanisms={"AT-ONCE": Exchange, "LATER": lambda: Exchange(waits=True)},
            ms_max=10_000,
            failure_delay_ms=0,
            request_bytes_max=1000,
            reauthentication_ms_max=session_ms,
            now_s=lambda: clock.now_s,
        )
    )


async def logged_in(clock: Clock | None = None, *, session_ms: int = 0) -> Login:
    one = login(clock, session_ms=session_ms)
    assert one.handshake("AT-ONCE") is ErrorCode.none
    assert (await one.authenticate(b"ann")).error is ErrorCode.none
    return one


def served(one: Login) -> set[ApiKey]:
    return {key for key in SERVED_VERSIONS if one.problem(key) is None}


async def test_what_is_served_at_each_step() -> None:
    one = login()
    assert served(one) == BEFORE_HANDSHAKE
    assert one.handshake("AT-ONCE") is ErrorCode.none
    assert served(one) == {ApiKey.SASL_AUTHENTICATE}
    assert (await one.authenticate(b"more")).token == b"go on"
    assert served(one) == {ApiKey.SASL_AUTHENTICATE}
    assert (one.is_done, one.principal) == (False, None)
    answer = await one.authenticate(b"ann")
    assert (answer.error, answer.token, answer.session_ms) == (ErrorCode.none, b"welcome", 0)
    assert (one.is_done, one.principal) == (True, "User:ann")
    assert served(one) == set(SERVED_VERSIONS)
    problem = login().problem(ApiKey.METADATA)
    assert problem == "a request of API key 3 before the login"


@pytest.mark.parametrize("mechanism", ["AT-ONCE", "LATER"])
@pytest.mark.parametrize("token", [b"fail", b"tell"])
async def test_a_failed_login_admits_nothing_more(mechanism: str, token: bytes) -> None:
    one = login()
    one.handshake(mechanism)
    answer = await one.authenticate(token)
    assert answer.error is ErrorCode.sasl_authentication_failed
    assert answer.token == b""
    public = "a public reason"
    hidden = (
        "Authentication failed during authentication due to invalid credentials with SASL "
        f"mechanism {mechanism}"
    )
    assert answer.message == (public if token == b"tell" else hidden)
    assert one.failure is not None
    assert "reason" in one.failure
    assert served(one) == set()
    again = await one.authenticate(b"ann")
    assert again.error is ErrorCode.illegal_sasl_state
    assert served(one) == set()
    assert one.principal is None
    assert not one.is_done


@pytest.mark.parametrize("mechanism", ["", "at-once", "GSSAPI", "x" * 30_000])
async def test_an_unknown_mechanism_ends_the_login(mechanism: str) -> None:
    one = login()
    assert one.handshake(mechanism) is ErrorCode.unsupported_sasl_mechanism
    assert served(one) == set()
    assert one.failure is not None
    assert len(one.failure) < 200


async def test_a_token_before_the_handshake_is_refused() -> None:
    one = login()
    assert (await one.authenticate(b"ann")).error is ErrorCode.illegal_sasl_state
    assert one.principal is None
    assert served(one) == BEFORE_HANDSHAKE


async def test_without_sessions_nobody_authenticates_again() -> None:
    clock = Clock()
    one = await logged_in(clock)
    clock.now_s += 1_000_000
    assert one.handshake("AT-ONCE") is ErrorCode.illegal_sasl_state
    assert (await one.authenticate(b"bob")).error is ErrorCode.illegal_sasl_state
    assert one.is_done
    assert one.principal == "User:ann"
    assert served(one) == set(SERVED_VERSIONS)


async def test_a_session_ends() -> None:
    clock = Clock()
    one = await logged_in(clock, session_ms=SESSION_MS)
    clock.now_s += SESSION_MS / 1000 - 0.001
    assert served(one) == set(SERVED_VERSIONS)
    clock.now_s += 0.001
    assert served(one) == {ApiKey.SASL_HANDSHAKE}
    assert "BUCKETLOG_CONNECTIONS_REAUTH_MS_MAX" in (one.problem(ApiKey.PRODUCE) or "")


@pytest.mark.parametrize("after_s", [1.0, SESSION_MS / 1000 + 5])
async def test_a_client_authenticates_again(after_s: float) -> None:
    clock = Clock()
    one = await logged_in(clock, session_ms=SESSION_MS)
    clock.now_s += after_s
    assert one.handshake("AT-ONCE") is ErrorCode.none
    assert served(one) == {ApiKey.SASL_AUTHENTICATE}
    assert (await one.authenticate(b"more")).error is ErrorCode.none
    answer = await one.authenticate(b"ann")
    assert (answer.error, answer.session_ms) == (ErrorCode.none, SESSION_MS)
    assert served(one) == set(SERVED_VERSIONS)
    clock.now_s += SESSION_MS / 1000 - 0.001
    assert served(one) == set(SERVED_VERSIONS)
    clock.now_s += 0.001
    assert served(one) == {ApiKey.SASL_HANDSHAKE}


async def test_too_soon_to_authenticate_again() -> None:
    clock = Clock()
    one = await logged_in(clock, session_ms=SESSION_MS)
    clock.now_s += 0.999
    assert one.handshake("AT-ONCE") is ErrorCode.illegal_sasl_state
    assert one.failure is None
    assert served(one) == set(SERVED_VERSIONS)


async def test_another_principal_is_refused() -> None:
    clock = Clock()
    one = await logged_in(clock, session_ms=SESSION_MS)
    clock.now_s += 5
    one.handshake("AT-ONCE")
    answer = await one.authenticate(b"bob")
    assert answer.error is ErrorCode.sasl_authentication_failed
    assert answer.message == (
        "Cannot change principals during re-authentication from User:ann to User:bob"
    )
    assert one.principal == "User:ann"
    assert served(one) == set()


async def test_another_mechanism_is_refused() -> None:
    clock = Clock()
    one = await logged_in(clock, session_ms=SESSION_MS)
    clock.now_s += 5
    assert one.handshake("LATER") is ErrorCode.none  # as Kafka: the token gets the error
    answer = await one.authenticate(b"ann")
    assert answer.error is ErrorCode.sasl_authentication_failed
    assert answer.message == (
        "SASL mechanism 'LATER' requested by client is not supported for re-authentication of "
        "mechanism 'AT-ONCE'"
    )
    assert served(one) == set()


async def test_a_failed_reauthentication_ends_the_session() -> None:
    clock = Clock()
    one = await logged_in(clock, session_ms=SESSION_MS)
    clock.now_s += 5
    one.handshake("AT-ONCE")
    answer = await one.authenticate(b"fail")
    assert answer.message is not None
    assert "during re-authentication due to invalid credentials" in answer.message
    assert served(one) == set()


def test_every_api_of_the_login_is_served() -> None:
    assert set(SERVED_VERSIONS) >= LOGIN_APIS


@pytest.mark.parametrize(
    ("session_ms", "token", "granted_ms", "why"),
    [
        (0, b"ann 5", 5000, "its token has expired"),
        (SESSION_MS, b"ann 5", 5000, "its token has expired"),
        (SESSION_MS, b"ann 50", SESSION_MS, "BUCKETLOG_CONNECTIONS_REAUTH_MS_MAX"),
        (0, b"ann 0.0001", 1, "its token has expired"),
    ],
)
async def test_a_session_ends_with_what_the_client_has_shown(
    session_ms: int, token: bytes, granted_ms: int, why: str
) -> None:
    clock = Clock()
    one = login(clock, session_ms=session_ms)
    one.handshake("AT-ONCE")
    assert (await one.authenticate(token)).session_ms == granted_ms
    assert served(one) == set(SERVED_VERSIONS)
    clock.now_s += granted_ms / 1000
    assert served(one) == {ApiKey.SASL_HANDSHAKE}
    assert one.problem(ApiKey.PRODUCE) == f"its session has ended ({why})"


async def test_a_new_session_replaces_the_former_one() -> None:
    clock = Clock()
    one = login(clock)
    one.handshake("AT-ONCE")
    await one.authenticate(b"ann 5")
    clock.now_s += 4
    one.handshake("AT-ONCE")
    assert (await one.authenticate(b"ann 10")).session_ms == 10_000
    clock.now_s += 9.999
    assert served(one) == set(SERVED_VERSIONS)
    clock.now_s += 0.001
    assert served(one) == {ApiKey.SASL_HANDSHAKE}


async def test_after_a_refusal_the_next_token_ends_the_login() -> None:
    one = login()
    one.handshake("AT-ONCE")
    refused = await one.authenticate(b"refuse")
    assert (refused.error, refused.token) == (ErrorCode.none, b"refused")
    assert served(one) == {ApiKey.SASL_AUTHENTICATE}
    problem = one.problem(ApiKey.METADATA)
    assert problem == "a request of API key 3 before the login: a reason for the log"
    failed = await one.authenticate(b"ann")
    assert failed.error is ErrorCode.sasl_authentication_failed
    assert failed.message == "a text for the client"
    assert "a reason for the log" in (one.failure or "")
    assert served(one) == set()
