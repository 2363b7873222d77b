"""PLAIN: messages, and passwords that are checked against SCRAM credentials."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication import plain
from bucketlog.stateless_broker.authentication.plain import PasswordCheck, PlainExchange
from bucketlog.stateless_broker.authentication.scram import (
    LoginFailedError,
    ScramCredential,
    keys_of,
    salted,
)
from tests.rigs.patience import eventually_async

SALT = b"salt"
REMEMBERED_MS = 60_000


def credential(mechanism: ScramMechanism, password: str) -> ScramCredential:
    return ScramCredential(4096, SALT, keys_of(mechanism, salted(mechanism, password, SALT, 4096)))


class Checks:
    """Users with their credentials, a clock, and how often a password was hashed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, in_flight: int = 2) -> None:
        self.known = {
            ("ann", ScramMechanism.SHA_512): credential(ScramMechanism.SHA_512, "secret"),
            ("bob", ScramMechanism.SHA_256): credential(ScramMechanism.SHA_256, "sécret"),
            ("eve", ScramMechanism.SHA_256): credential(ScramMechanism.SHA_256, "old"),
            ("eve", ScramMechanism.SHA_512): credential(ScramMechanism.SHA_512, "new"),
        }
        self.now_s = 0.0
        self.hashed: list[tuple[ScramMechanism, int]] = []
        self.threads: set[int] = set()
        self.before: Callable[[], None] = lambda: None
        monkeypatch.setattr(plain, "salted", self._salted)
        self.check = PasswordCheck(
            find=lambda user, mechanism: self.known.get((user, mechanism)),
            secret=b"a secret of the process",
            checks_in_flight=in_flight,
            remembered_ms=REMEMBERED_MS,
            now_s=lambda: self.now_s,
        )

    def _salted(
        self, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
    ) -> bytes:
        self.before()
        self.hashed.append((mechanism, iterations))
        self.threads.add(threading.get_ident())
        return salted(mechanism, password, salt, iterations)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    return Checks(monkeypatch)


@pytest.mark.parametrize(
    ("user", "password", "is_right"),
    [
        ("ann", "secret", True),
        ("ann", "Secret", False),
        ("ann", "", False),
        ("bob", "sécret", True),
        ("bob", "secret", False),
        ("eve", "new", True),
        ("eve", "old", False),
        ("nobody", "secret", False),
        ("", "", False),
    ],
)
async def test_passwords(checks: Checks, user: str, password: str, is_right: bool) -> None:
    assert await checks.check.is_right(user, password) == is_right
    assert len(checks.hashed) == 1
    assert threading.get_ident() not in checks.threads


async def test_the_check_of_an_unknown_user_does_the_same_work(checks: Checks) -> None:
    for user in ("ann", "nobody"):
        await checks.check.is_right(user, "wrong")
    assert checks.hashed == [(ScramMechanism.SHA_512, 4096)] * 2


async def test_a_right_password_is_remembered_for_a_time(checks: Checks) -> None:
    for _ in range(3):
        assert await checks.check.is_right("ann", "secret")
    assert len(checks.hashed) == 1
    assert not await checks.check.is_right("ann", "secreta")
    checks.known["anns", ScramMechanism.SHA_512] = checks.known["ann", ScramMechanism.SHA_512]
    assert not await checks.check.is_right("anns", "ecret")
    assert len(checks.hashed) == 3
    checks.now_s = REMEMBERED_MS / 1000
    assert await checks.check.is_right("ann", "secret")
    assert len(checks.hashed) == 4


async def test_a_wrong_password_is_not_remembered(checks: Checks) -> None:
    for _ in range(2):
        assert not await checks.check.is_right("ann", "wrong")
    assert len(checks.hashed) == 2


async def test_a_changed_or_deleted_credential_ends_the_memory(checks: Checks) -> None:
    name = ("ann", ScramMechanism.SHA_512)
    assert await checks.check.is_right("ann", "secret")
    checks.known[name] = credential(ScramMechanism.SHA_512, "other")
    assert not await checks.check.is_right("ann", "secret")
    assert await checks.check.is_right("ann", "other")
    del checks.known[name]
    assert not await checks.check.is_right("ann", "other")


async def test_few_passwords_are_checked_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks(monkeypatch, in_flight=2)
    gate, lock = threading.Event(), threading.Lock()
    running = most = 0

    def wait() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait()
        with lock:
            running -= 1

    checks.before = wait
    tries = [asyncio.create_task(checks.check.is_right("ann", f"{n}")) for n in range(10)]
    try:
        await eventually_async(lambda: running >= 2)
    finally:
        gate.set()
    assert await asyncio.gather(*tries) == [False] * 10
    assert most == 2


@pytest.mark.parametrize("message", [b"\0ann\0secret", b"ann\0ann\0secret"])
async def test_messages_that_are_taken(checks: Checks, message: bytes) -> None:
    exchange = PlainExchange(checks.check)
    assert await exchange.answer(message) == b""
    assert exchange.user == "ann"


@pytest.mark.parametrize(
    ("message", "public"),
    [
        (b"\0ann\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0ann\0", "Authentication failed: password not specified"),
        (
            b"bob\0ann\0secret",
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
        (b"bob\0ann\0wrong", "Authentication failed: Invalid username or password"),
        (b"", None),
        (b"ann\0secret", None),
        (b"\0ann\0secret\0", None),
        (b"\0ann\0\xff", None),
    ],
)
async def test_messages_that_are_refused(
    checks: Checks, message: bytes, public: str | None
) -> None:
    exchange = PlainExchange(checks.check)
    with pytest.raises(LoginFailedError) as caught:
        await exchange.answer(message)
    assert exchange.user is None
    assert (str(caught.value) if caught.value.is_public else None) == public
    assert "secret" not in str(caught.value)
