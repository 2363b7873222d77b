"""Where a claim says that its server is: written by whoever may write to the bucket."""

import json
from typing import Any

import pytest

from bucketlog.log_format.model import WriterId
from bucketlog.metadata.sequencer.endpoint import Endpoint, decode_endpoint, encode_endpoint
from bucketlog.stateless_broker.epochs.activation import CLAIM_BYTES_MAX, Claim, EpochStarter
from bucketlog.stateless_broker.process.embedded_redis import valkey_settings
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket

PASSWORD = "0123456789abcdef" * 4
GOOD = {"version": 1, "host": "broker-1.example", "port": 6400, "password": PASSWORD}
HOSTS = ("b", "broker-1", "10.0.0.7", "a.b.example", "x_y", "::1", "2001:db8::7", "a" * 253)
NOT_HOSTS = (
    *("", " ", "a b", "a\nb", "a\x00", "-a", "a-", ".a", "a/b", "a@b", "user:p@h", "a" * 254, "ä"),
    *("[::1]", ":", "1:2", "::1%eth0", "::ffff:1.2.3.4.5", "http://h", "h?x", "h#x", "${x}"),
)


@pytest.mark.parametrize("host", HOSTS)
def test_an_endpoint_is_read_as_it_was_written(host: str) -> None:
    endpoint = Endpoint(host, 6400, PASSWORD)
    assert decode_endpoint(json.loads(json.dumps(encode_endpoint(endpoint)))) == endpoint


@pytest.mark.parametrize("host", NOT_HOSTS)
def test_what_is_no_host_is_not_followed(host: str) -> None:
    assert decode_endpoint(GOOD | {"host": host}) is None


@pytest.mark.parametrize(
    "change",
    [
        *({"version": number} for number in (0, 2, -1, True, "1", None, 1.0)),
        *({"port": number} for number in (0, -1, 65_536, "6400", 6400.5, None, True, 2**70)),
        *({"password": text} for text in ("", "a" * 31, "a" * 129, "g" * 64, "A" * 64, None, 7)),
        *({"password": PASSWORD + end} for end in ("\n", "\r\nFLUSHALL", " ", "\x00")),
        *({"host": value} for value in (None, 7, ["a"], {"a": 1})),
    ],
    ids=repr,
)
def test_what_is_no_endpoint_is_not_followed(change: dict[str, Any]) -> None:
    assert decode_endpoint(GOOD | change) is None


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [GOOD], {"version": 1}])
def test_what_is_no_object_is_not_followed(value: Any) -> None:
    assert decode_endpoint(value) is None


def test_the_password_is_in_no_text() -> None:
    endpoint = Endpoint("h", 6400, PASSWORD)
    claim = Claim(1, "me", "run", "repl", 7, endpoint)
    for text in (repr(endpoint), str(endpoint), f"{endpoint}", repr(claim), str([claim])):
        assert PASSWORD not in text
    assert str(Endpoint("::1", 6400, PASSWORD)) == "[::1]:6400"


# The claim around it -----------------------------------------------------------------------------


async def claim_of(content: bytes) -> Claim:
    memory = MemoryBucket()
    assert memory.create(keys.epoch_claim(3), [content])
    nothing: Any = None
    starter = EpochStarter(
        bucket=ThreadedBucket(memory),
        committed=nothing,
        sequencer=nothing,
        incarnation="me",
        now_ms=lambda: 1,
        new_id=lambda: WriterId("0" * 32),
    )
    return await starter.highest_claim()


OLD = {"run_id": "r", "master_replid": "m", "nonce": "n", "incarnation": "one", "claimed_ms": 7}


async def test_a_claim_of_an_older_version_names_no_server() -> None:
    assert await claim_of(json.dumps(OLD).encode()) == Claim(3, "one", "r", "m", 7, None)


async def test_a_claim_names_its_server() -> None:
    claim = await claim_of(json.dumps(OLD | {"valkey": GOOD, "bucket": "mark"}).encode())
    endpoint = Endpoint("broker-1.example", 6400, PASSWORD)
    assert claim == Claim(3, "one", "r", "m", 7, endpoint, "mark")


@pytest.mark.parametrize("valkey", [GOOD | {"version": 2}, GOOD | {"host": "a b"}, 7, [[[]]]])
async def test_a_claim_with_an_endpoint_that_is_none_is_good(
    valkey: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers wait for its claimant, as for any epoch on a server that is out of reach."""
    claim = await claim_of(json.dumps(OLD | {"valkey": valkey}).encode())
    assert claim == Claim(3, "one", "r", "m", 7, None)
    assert "names no server" in caplog.text
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"7",
        b"[" * 4000,
        json.dumps(OLD | {"claimed_ms": PASSWORD}).encode(),
        json.dumps(OLD | {"valkey": GOOD, "more": "x" * CLAIM_BYTES_MAX}).encode(),
    ],
    ids=["empty", "cut", "number", "deep", "type", "long"],
)
async def test_what_is_no_claim_is_passed_over(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert await claim_of(content) == Claim(3, "")
    assert "is not a claim" in caplog.text
    assert PASSWORD not in caplog.text


# Where a broker's own is -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "bind", "host"),
    [
        ({}, "127.0.0.1", "127.0.0.1"),
        ({"host": "0.0.0.0"}, "0.0.0.0", "127.0.0.1"),
        ({"host": "::"}, "::", "::1"),
        ({"host": "0.0.0.0", "advertised_host": "b1"}, "0.0.0.0", "b1"),
        ({"embedded_redis_host": "10.0.0.7"}, "10.0.0.7", "10.0.0.7"),
        (
            {"advertised_host": "public", "embedded_redis_advertised_host": "private"},
            "127.0.0.1",
            "private",
        ),
    ],
)
def test_others_reach_a_valkey_where_they_reach_its_broker(
    given: dict[str, Any], bind: str, host: str
) -> None:
    found = valkey_settings(BrokerSettings(bucket_url="memory://x", **given))
    assert (found.bind, found.host, found.port) == (bind, host, 0)
