"""OAUTHBEARER: the client's message, the answers, and the keys that are loaded in between."""

import asyncio
import logging
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.authentication.access_token import TokenRules
from bucketlog.stateless_broker.authentication.key_document import (
    KeyFile,
    KeysUnavailableError,
    KeyUrl,
    trusting,
)
from bucketlog.stateless_broker.authentication.key_set import KeySet
from bucketlog.stateless_broker.authentication.oauthbearer import (
    INVALID_TOKEN,
    SESSION_S_MAX,
    OauthbearerExchange,
    read_message,
)
from bucketlog.stateless_broker.authentication.scram import LoginFailedError
from bucketlog.stateless_broker.authentication.verification_keys import (
    KeySchedule,
    VerificationKeys,
)
from bucketlog.stateless_broker.health import BrokerPart, Health
from tests.rigs.tokens import AUDIENCE, ISSUER, Provider, claims, signed

NOW_S = 1_000_000.0
RULES = TokenRules(
    issuer=ISSUER,
    audiences=frozenset({AUDIENCE}),
    algorithms=frozenset({"RS256"}),
    clock_skew_s=0,
    scope_claim="scope",
    user_claim="sub",
    token_bytes_max=4096,
    user_bytes_max=100,
)
SLOW_PARTS = 200
SCHEDULE = KeySchedule(refresh_ms=3_600_000, unknown_key_ms_min=10_000, retry=Backoff(100, 400))


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


class Clock:
    now_s = 50.0


class Source:
    """What the keys are loaded from. `down`: the next loads fail."""

    def __init__(self, provider: Provider) -> None:
        self.document = provider.document
        self.loads = 0
        self.down = False

    async def load(self) -> bytes:
        self.loads += 1
        await asyncio.sleep(0)
        if self.down:
            raise KeysUnavailableError("nobody is there")
        return self.document

    def keys(self, clock: Clock, health: Health | None = None) -> VerificationKeys:
        return VerificationKeys(self.load, SCHEDULE, health or Health(), now_s=lambda: clock.now_s)


def message(token: str, authorization: str = "", extensions: str = "") -> bytes:
    who = f"a={authorization}" if authorization else ""
    return f"n,{who},\x01auth=Bearer {token}\x01{extensions}\x01".encode()


def token(provider: Provider, **changes: object) -> str:
    return signed(provider.key, claims(NOW_S, **changes), kid=provider.kid)


def exchange(keys: VerificationKeys) -> OauthbearerExchange:
    return OauthbearerExchange(RULES, keys, lambda: NOW_S)


async def loaded(provider: Provider) -> VerificationKeys:
    keys = Source(provider).keys(Clock())
    await keys.attempt()
    return keys


@pytest.mark.parametrize(
    ("text", "authorization", "extensions"),
    [
        ("n,,\x01auth=Bearer a.b-_.9\x01\x01", "", {}),
        ("n,,\x01auth=bearer   a.b-_.9\x01\x01", "", {}),
        ("n,a=ann,\x01auth=BEARER a.b-_.9\x01\x01", "ann", {}),
        ("n,a=a=2Cb=3D,\x01auth=Bearer a.b-_.9\x01\x01", "a=2Cb=3D", {}),
        (
            "n,,\x01auth=Bearer a.b-_.9\x01k=v 1=,\x01other=\t\x01\x01",
            "",
            {"k": "v 1=,", "other": "\t"},
        ),
        ("n,,\x01k=v\x01auth=Bearer a.b-_.9\x01\x01", "", {"k": "v"}),
    ],
)
def test_a_first_message(text: str, authorization: str, extensions: dict[str, str]) -> None:
    assert read_message(text.encode()) == ("a.b-_.9", authorization, extensions)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x01",
        b"\xff",
        b"n,,auth=Bearer a\x01\x01",
        b"y,,\x01auth=Bearer a\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Bearer a\x01",
        b"n,,\x01auth=Bearer a\x01\x01\x01",
        b"n,,\x01auth=Bearer a\x01\x01 ",
        b"n,,\x01auth=Bearer a\x01\x01\n",
        b"n,,\x01\x01",
        b"n,,\x01host=x\x01\x01",
        b"n,,\x01auth=Basic a\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a/b\x01\x01",
        b"n,a=,\x01auth=Bearer a\x01\x01",
        b"n,a=a=2cb,\x01auth=Bearer a\x01\x01",
        b"n,a=\xc3\xa9,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Bearer a\x01k1=v\x01\x01",
        b"n,,\x01auth=Bearer a\x01k=\x01\x01",
        b"n,,\x01auth=Bearer a\x01k=\xc3\xa9\x01\x01",
        b"n,,\x01auth=Bearer a\x01k=\x02\x01\x01",
    ],
)
def test_what_is_no_first_message(text: bytes) -> None:
    with pytest.raises(LoginFailedError) as caught:
        read_message(text)
    assert caught.value.client_text is None  # as Kafka: one text for all


def test_a_large_message_is_read_once() -> None:
    """Each of these took minutes if a part were tried again and again."""
    for text in ("n,,\x01" + "a=b\x01" * 16_000, "n,a=" + "=2C" * 20_000, "n,,\x01" + "a" * 64_000):
        with pytest.raises(LoginFailedError):
            read_message(text.encode())


async def test_a_good_token_logs_in(provider: Provider) -> None:
    for extensions, authorization in (("", ""), ("", "ann"), ("logicalCluster=x\x01", "")):
        one = exchange(await loaded(provider))
        text = message(token(provider), authorization, extensions)
        assert await one.answer(text) == b""
        assert (one.user, one.session_s, one.refusal) == ("ann", 300, None)
    one = exchange(await loaded(provider))
    await one.answer(message(token(provider, exp=10**15)))
    assert one.session_s == SESSION_S_MAX


async def test_a_refused_token_gets_json_and_then_the_failure(provider: Provider) -> None:
    for last in (b"\x01", message(token(provider)), b""):
        one = exchange(await loaded(provider))
        assert await one.answer(message(token(provider, iss="x"))) == INVALID_TOKEN.encode()
        assert one.user is None
        assert "its issuer 'x'" in (one.refusal or "")
        with pytest.raises(LoginFailedError, match="its issuer 'x'") as caught:
            await one.answer(last)
        assert caught.value.client_text == '{"status":"invalid_token"}'
        assert one.user is None


async def test_another_authorization_id_is_refused(provider: Provider) -> None:
    one = exchange(await loaded(provider))
    with pytest.raises(LoginFailedError) as caught:
        await one.answer(message(token(provider), "eve"))
    assert caught.value.client_text == (
        "Authentication failed: Client requested an authorization id (eve) that is different "
        "from the token's principal name (ann)"
    )
    assert one.user is None


async def test_an_unknown_key_is_looked_for_at_most_once_in_a_time(provider: Provider) -> None:
    clock, source = Clock(), Source(provider)
    keys = source.keys(clock)
    following = asyncio.create_task(keys.follow())
    try:
        assert await exchange(keys).answer(message(token(provider))) == b""  # waits for the start
        assert source.loads == 1
        newer = Provider(generation=2)
        source.document = newer.document
        assert await exchange(keys).answer(message(token(newer))) == INVALID_TOKEN.encode()
        assert source.loads == 1
        clock.now_s += SCHEDULE.unknown_key_ms_min / 1000
        many = [exchange(keys) for _ in range(20)]
        answers = await asyncio.gather(*(one.answer(message(token(newer))) for one in many))
        assert set(answers) == {b""}
        assert source.loads == 2
        assert await exchange(keys).answer(message(token(provider))) == INVALID_TOKEN.encode()
        assert source.loads == 2
    finally:
        following.cancel()


async def test_a_login_waits_for_a_load_that_is_under_way(provider: Provider) -> None:
    source, may_end = Source(provider), asyncio.Event()

    async def load() -> bytes:
        await may_end.wait()
        return await source.load()

    keys = VerificationKeys(load, SCHEDULE, Health(), now_s=lambda: Clock.now_s)
    loading = asyncio.create_task(keys.attempt())
    await asyncio.sleep(0)
    answer = asyncio.create_task(exchange(keys).answer(message(token(provider))))
    await asyncio.sleep(0)
    may_end.set()
    assert await answer == b""
    await loading


async def test_keys_stay_while_the_provider_is_away(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    clock, source, health = Clock(), Source(provider), Health()
    keys = source.keys(clock, health)
    source.down = True
    assert [await keys.attempt() for _ in range(4)] == [0.1, 0.2, 0.4, 0.4]
    assert health.is_degraded(BrokerPart.TOKEN_KEYS)
    assert "nobody is there" in health.report()["token_keys"]
    assert (keys.age_s, keys.failures) == (None, 4)
    source.down = False
    assert await keys.attempt() == 3600
    assert not health.is_degraded(BrokerPart.TOKEN_KEYS)
    source.down = True
    clock.now_s += 7
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        assert [await keys.attempt() for _ in range(2)] == [0.1, 0.2]
    assert len(caplog.records) == 1  # not at each attempt
    assert not health.is_degraded(BrokerPart.TOKEN_KEYS)
    assert (keys.age_s, keys.failures) == (7, 6)
    assert await exchange(keys).answer(message(token(provider))) == b""
    source.down, source.document = False, b"<html>"
    await keys.attempt()
    assert keys.current != KeySet()


async def test_without_any_key_a_token_is_refused(provider: Provider) -> None:
    source = Source(provider)
    source.down = True
    keys = source.keys(Clock())
    await keys.attempt()
    assert await exchange(keys).answer(message(token(provider))) == INVALID_TOKEN.encode()


def test_a_key_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    with pytest.raises(KeysUnavailableError, match="cannot be read"):
        KeyFile(file, 10).read()
    file.write_bytes(b"x" * 10)
    assert KeyFile(file, 10).read() == b"x" * 10
    file.write_bytes(b"x" * 11)
    with pytest.raises(KeysUnavailableError, match="more than 10 bytes"):
        KeyFile(file, 10).read()


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        match self.path:
            case "/good?x=1":
                self._answer(200, b"x" * 100)
            case "/large":
                self._answer(200, b"x" * 101)
            case "/moved":
                self.send_response(302)
                self.send_header("Location", "/good?x=1")
                self.end_headers()
            case "/slow":
                self.send_response(200)
                self.end_headers()
                for _ in range(SLOW_PARTS):
                    self.wfile.write(b"x")
                    if self.server.ended.wait(0.05):  # type: ignore[attr-defined]  # the fixture's
                        return
                self.server.is_complete = True  # type: ignore[attr-defined]  # as above
            case "/was-complete":
                is_complete = self.server.is_complete  # type: ignore[attr-defined]  # as above
                self._answer(200 if is_complete else 500, b"")
            case _:
                self._answer(500, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as found:
        found.ended = threading.Event()  # type: ignore[attr-defined]  # ends slow answers
        found.is_complete = False  # type: ignore[attr-defined]  # whether a slow one was sent whole
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.ended.set()  # type: ignore[attr-defined]  # as above
        found.shutdown()
        thread.join()


def test_keys_by_http(server: str) -> None:
    assert KeyUrl(f"{server}/good?x=1", None, 100, 30_000).read() == b"x" * 100
    for path, words in (
        ("/large", "more than 100 bytes"),
        ("/moved", "status 302"),
        ("/error", "status 500"),
    ):
        with pytest.raises(KeysUnavailableError, match=words):
            KeyUrl(f"{server}{path}", None, 100, 30_000).read()


def test_a_slow_answer_is_interrupted(server: str) -> None:
    """Each part comes in time, and all of them together do not."""
    with pytest.raises(KeysUnavailableError, match="it took more than 1000 ms"):
        KeyUrl(f"{server}/slow", None, 1 << 20, 1000).read()
    with pytest.raises(KeysUnavailableError, match="status 500"):
        KeyUrl(f"{server}/was-complete", None, 100, 30_000).read()


def test_nobody_listens_and_unfit_authorities(tmp_path: Path) -> None:
    with pytest.raises(KeysUnavailableError, match="cannot be fetched"):
        KeyUrl("http://127.0.0.1:1/", None, 100, 1000).read()
    file = tmp_path / "ca.pem"
    for content in (None, b"none"):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigurationError, match="authorities"):
            trusting(file)
    assert trusting(None).verify_mode is ssl.CERT_REQUIRED
