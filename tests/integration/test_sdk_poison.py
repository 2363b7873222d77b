"""Records that do not decode, by what the caller chose, against a real broker."""

import logging
from itertools import count
from typing import Any

import pytest
from confluent_kafka import Message
from pydantic import BaseModel

import bucketlog
from bucketlog import Log, Topic
from bucketlog.client.decoding import UnreadableRecordError
from bucketlog.client.poison import Poison
from bucketlog.log_format.errors import ConfigurationError, LogError

_numbers = count()
POISON_AT = (1, 2, 5)


class Order(BaseModel):
    id: int


@pytest.fixture
def orders(log: Log) -> Topic[str, Order]:
    """Offsets 0 to 6 of one partition; those in POISON_AT do not decode."""
    name = f"poison-{next(_numbers)}"
    raw = Topic(name)
    log.topics.create(raw)
    with log.producer() as producer:
        for at in range(7):
            data = b"\xff poison" if at in POISON_AT else b'{"id":%d}' % at
            headers: list[tuple[str, bytes | None]] = [("h", b"\x00\xfe"), ("h", None), ("e", b"")]
            producer.send(raw, data, key=b"k%d" % at, headers=headers, timestamp_ms=1000 + at)
    return Topic(name, value=Order, key=str)


def read(log: Log, topic: Topic[Any, Any], **options: Any) -> list[bucketlog.Record[Any, Any]]:
    with log.consumer(topic, start="earliest", until="end", **options) as consumer:
        return list(consumer)


def committed(log: Log, group: str) -> list[int | None]:
    return [row.committed for row in log.groups.describe(group).positions]


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_skipped_ones_are_counted_and_told(
    log: Log,
    orders: Topic[str, Order],
    caplog: pytest.LogCaptureFixture,
    in_batches: bool,
    grouped: bool,
) -> None:
    options: dict[str, Any] = {"on_error": "skip", "start": "earliest", "until": "end"}
    options |= {"group": f"{orders.name}-{in_batches}"} if grouped else {}
    with caplog.at_level(logging.WARNING, "bucketlog.poison"):
        consumer = log.consumer(orders, **options)
        with consumer:
            if in_batches:
                seen = [record.value.id for batch in consumer.batches(2) for record in batch]
            else:
                seen = [record.value.id for record in consumer]
    assert seen == [0, 3, 4, 6]
    assert consumer.passed_over == len(POISON_AT)
    told = [record.message for record in caplog.records]
    assert len(told) == len(POISON_AT)
    for at, text in zip(POISON_AT, told, strict=True):
        assert f"{orders.name}[0]@{at}" in text
        assert "Order" in text
    if grouped:
        assert committed(log, options["group"]) == [7]


def test_set_aside_byte_for_byte_with_the_reason(log: Log, orders: Topic[str, Order]) -> None:
    aside = f"{orders.name}-dead"
    log.topics.create(aside)
    options = {"on_error": bucketlog.DeadLetter(aside), "group": orders.name}
    assert [record.value.id for record in read(log, orders, **options)] == [0, 3, 4, 6]
    found = read(log, Topic(aside))
    originals = {record.offset: record for record in read(log, Topic(orders.name))}
    assert [record.key for record in found] == [b"k1", b"k2", b"k5"]
    for at, record in zip(POISON_AT, found, strict=True):
        original = originals[at]
        assert (record.value, record.timestamp_ms) == (original.value, original.timestamp_ms)
        kept = len(original.headers)
        assert record.headers[:kept] == original.headers
        added = dict(record.headers[kept:])
        assert added["__connect.errors.topic"] == orders.name.encode()
        assert added["__connect.errors.partition"] == b"0"
        assert added["__connect.errors.offset"] == str(at).encode()
        assert added["__connect.errors.stage"] == b"VALUE_CONVERTER"
        name = b"bucketlog.InvalidDataError"
        assert added["__connect.errors.exception.class.name"] == name
        assert b"Order" in (added["__connect.errors.exception.message"] or b"")
    assert committed(log, orders.name) == [7]


def test_a_key_that_does_not_decode_says_so(log: Log) -> None:
    name = f"poison-{next(_numbers)}"
    log.topics.create(name)
    log.topics.create(f"{name}-dead")
    with log.producer() as producer:
        producer.send(Topic(name), b"value", key=b"\xff")
        producer.send(Topic(name), None, key=b"\xff")
    options = {"on_error": bucketlog.DeadLetter(f"{name}-dead")}
    assert read(log, Topic(name, key=str), **options) == []
    value, tombstone = read(log, Topic(f"{name}-dead"))
    assert dict(value.headers)["__connect.errors.stage"] == b"KEY_CONVERTER"
    assert tombstone.is_tombstone


@pytest.mark.parametrize("in_batches", [False, True])
def test_nothing_is_committed_past_one_that_could_not_be_set_aside(
    log: Log, orders: Topic[str, Order], in_batches: bool
) -> None:
    """The dead-letter topic refuses records of this size; nothing after the first poison record
    may count as done, however often the caller goes on."""
    aside = f"{orders.name}-dead"
    log.topics.create(aside, configs={"max.message.bytes": "100"})
    group = orders.name
    options = {"on_error": bucketlog.DeadLetter(aside), "group": group, "start": "earliest"}
    options["until"] = "end"
    seen: list[int] = []

    def go_on(consumer: bucketlog.Consumer[str, Order]) -> None:
        if in_batches:
            seen.extend(record.value.id for batch in consumer.batches(10) for record in batch)
        else:
            seen.extend(record.value.id for record in consumer)

    with log.consumer(orders, **options) as consumer:  # type: ignore[call-overload]  # options of both kinds
        for _ in range(3):
            with pytest.raises(LogError) as caught:
                go_on(consumer)
            assert caught.value.code == "MESSAGE_TOO_LARGE"
    assert committed(log, group) in ([1], [None], [])
    log.topics.configure(aside, configs={"max.message.bytes": "100000"})
    with log.consumer(orders, **options) as consumer:  # type: ignore[call-overload]  # options of both kinds
        seen += [record.value.id for record in consumer]
    assert seen == [0, 3, 4, 6]
    assert [record.key for record in read(log, Topic(aside))] == [b"k1", b"k2", b"k5"]


def test_acknowledged_before_anything_is_committed(
    log: Log, orders: Topic[str, Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the moment that a record is passed over, all before it is stored at most."""
    aside = f"{orders.name}-dead"
    log.topics.create(aside)
    latest: list[tuple[int, int]] = []
    passing = Poison.pass_over

    def watch(self: Poison, found: list[tuple[Message, UnreadableRecordError]]) -> None:
        passing(self, found)
        dead = log.topics.describe(aside).partitions[0].latest
        latest.append((found[-1][0].offset() or 0, dead))

    monkeypatch.setattr(Poison, "pass_over", watch)
    read(log, orders, on_error=bucketlog.DeadLetter(aside))
    assert latest == [(1, 1), (2, 2), (5, 3)]


def test_a_dead_letter_topic_that_is_not_there(log: Log, orders: Topic[str, Order]) -> None:
    with pytest.raises(LogError, match="nowhere") as caught:
        log.consumer(orders, on_error=bucketlog.DeadLetter("nowhere"))
    assert caught.value.code == "UNKNOWN_TOPIC_OR_PARTITION"


def test_what_is_no_choice(log: Log, orders: Topic[str, Order]) -> None:
    with pytest.raises(ConfigurationError, match="DeadLetter"):
        log.consumer(orders, on_error="ignore")  # type: ignore[call-overload]  # that is the point
    with pytest.raises(TypeError, match="on_eror"):
        log.consumer(orders, on_eror="skip")  # type: ignore[call-overload]  # that is the point


def test_retention_of_a_new_topic_and_of_one_that_is_there(log: Log) -> None:
    name = f"kept-{next(_numbers)}"
    log.topics.ensure(name, retention="7d")
    assert log.topics.describe(name).configs["retention.ms"] == "604800000"
    log.topics.ensure(name, retention="1w")
    with pytest.raises(ConfigurationError, match="604800000 ms, not 3600000"):
        log.topics.ensure(name, retention="1h")
    log.topics.configure(name, retention="1h", configs={"max.message.bytes": "2000"})
    log.topics.ensure(name, retention="1h")
    details = log.topics.describe(name)
    assert details.overrides == {"retention.ms", "max.message.bytes"}
    with pytest.raises(ConfigurationError, match="7d"):
        log.topics.ensure(name, retention="soon")
    with pytest.raises(ConfigurationError, match="one of them"):
        log.topics.create("x", retention="1h", configs={"retention.ms": "1"})
