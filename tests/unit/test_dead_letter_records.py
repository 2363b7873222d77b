"""Origin and reason of dead letters, from their headers."""

import pytest

from bucketlog.client.dead_letters import DeadLetterFilter, DeadLetterRecord
from bucketlog.client.failures import origin_headers
from bucketlog.client.topic import Record

Headers = tuple[tuple[str, bytes | None], ...]
PREFIX = "__connect.errors."


def record(topic: str, offset: int, headers: Headers) -> Record[bytes, bytes]:
    return Record(topic, 0, offset, 1000, b"k", b"v", headers, raw_key=b"k", raw_value=b"v")


def set_aside(source: Record[bytes, bytes], error: Exception, attempts: int = 3) -> Headers:
    """The headers of its dead letter, as brokers return them."""
    added = origin_headers(source, error, attempts)
    return (
        *source.headers,
        *((name, text.encode() if isinstance(text, str) else text) for name, text in added),
    )


def letter(headers: Headers) -> DeadLetterRecord:
    return DeadLetterRecord.of(record("dead", 0, headers))


def test_origin_and_reason() -> None:
    own: Headers = (("h", b"1"), ("h", None), (f"{PREFIX}note", b"of the application"))
    found = letter(set_aside(record("orders", 17, own), ValueError("boom")))
    assert found.headers == own
    assert (found.origin, found.attempts, found.stage) == ("orders[0]@17", 3, "TASK_PUT")
    assert (found.exception, found.message) == ("builtins.ValueError", "boom")


def test_the_last_time_counts_and_the_earlier_one_stays() -> None:
    once = set_aside(record("orders", 17, (("h", b"1"),)), ValueError("first"))
    found = letter(set_aside(record("orders-dead", 4, once), KeyError("second")))
    assert (found.origin, found.exception) == ("orders-dead[0]@4", "builtins.KeyError")
    assert found.headers == once


def test_headers_of_kafka_connect() -> None:
    found = letter(
        (
            (f"{PREFIX}topic", b"orders"),
            (f"{PREFIX}partition", b"2"),
            ("mine", b"between"),
            (f"{PREFIX}offset", b"17"),
            (f"{PREFIX}exception.class.name", b"org.apache.kafka.Some"),
            (f"{PREFIX}exception.message", None),
            (f"{PREFIX}exception.stacktrace", b"at ..."),
        )
    )
    assert found.headers == (("mine", b"between"),)
    assert (found.origin, found.message, found.attempts) == ("orders[2]@17", None, None)


@pytest.mark.parametrize("value", [b"-1", b"1.5", b"x", b"9" * 5000, "²".encode(), b"\xff", b""])
def test_a_number_that_is_none(value: bytes) -> None:
    found = letter(((f"{PREFIX}topic", b"t"), (f"{PREFIX}partition", value)))
    assert (found.origin_topic, found.origin_partition) == ("t", None)


@pytest.mark.parametrize("headers", [(), (("h", b"1"),), ((f"{PREFIX}topic", None),)])
def test_no_origin(headers: Headers) -> None:
    found = letter(headers)
    assert (found.origin, found.headers) == (None, headers)


def test_filters() -> None:
    found = letter(set_aside(record("orders", 1, ()), ValueError("Out of Stock")))
    assert DeadLetterFilter().accepts(found)
    assert DeadLetterFilter(origins=("x", "orders"), reasons=("valueerror",)).accepts(found)
    assert DeadLetterFilter(reasons=("no", "out of stock")).accepts(found)
    assert not DeadLetterFilter(origins=("x",)).accepts(found)
    assert not DeadLetterFilter(reasons=("KeyError",)).accepts(found)
    assert not DeadLetterFilter(reasons=("x",)).accepts(letter(()))
