"""Consumers of several topics and of patterns, with and without a group."""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import bucketlog
from bucketlog import (
    ConfigurationError,
    Consumer,
    Log,
    LogError,
    Record,
    Topic,
    TopicPartition,
    TopicPattern,
)
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.group_members import fill, leave_in_turn, poll_until
from tests.rigs.patience import PATIENCE_S, Deadline

pytestmark = pytest.mark.long

_numbers = count()
SOON: dict[str, Any] = {"discovery_interval_s": 0.1, "start": "latest"}


@pytest.fixture
def name() -> str:
    return f"topics-{next(_numbers)}"


def values(records: list[Record[bytes, str]]) -> list[tuple[str, str]]:
    return sorted((record.topic, record.value) for record in records)


def expected(topics: list[str], partitions: int, each: int) -> list[tuple[str, str]]:
    return sorted(
        (topic, f"{partition}-{at}")
        for topic in topics
        for partition in range(partitions)
        for at in range(each)
    )


def read_until(
    consumer: Consumer[bytes, str, Any], is_done: Callable[[list[Record[bytes, str]]], bool]
) -> list[Record[bytes, str]]:
    seen: list[Record[bytes, str]] = []
    deadline = Deadline(lambda: seen)
    while not is_done(seen):
        deadline.check()
        seen += consumer.poll(100, 0.1)
    return seen


def test_records_have_their_topic_and_its_types(log: Log, name: str) -> None:
    words, numbers = Topic(f"{name}-words", value=str), Topic(f"{name}-numbers", value=int)
    for topic in (words, numbers):
        log.topics.create(topic, partitions=2)
    with log.producer() as producer:
        producer.send(words, "one", partition=1)
        producer.send(numbers, 1, partition=0)
    with log.consumer((words, numbers), start="earliest", until="end") as consumer:
        assert consumer.topics == (numbers.name, words.name)
        found = [(record.topic, record.partition, record.value) for record in consumer]
    assert sorted(found, key=str) == [(numbers.name, 0, 1), (words.name, 1, "one")]


def test_members_share_the_partitions_of_all_topics(log: Log, name: str) -> None:
    topics = [fill(log, f"{name}-{which}", 2, 30) for which in "ab"]
    names = [topic.name for topic in topics]
    options: dict[str, Any] = {"start": "earliest", "group": name}
    one, two = (log.consumer(topics, **options) for _ in range(2))
    seen: list[Record[bytes, str]] = []
    poll_until((one, two), lambda: len(one.assignment) == len(two.assignment) == 2, seen)
    assert one.assignment | two.assignment == {
        TopicPartition(topic, number) for topic in names for number in range(2)
    }
    poll_until((one, two), lambda: len(values(seen)) >= 120, seen)
    leave_in_turn((one, two), seen)
    assert sorted(set(values(seen))) == expected(names, 2, 30)
    for topic in names:
        rows = [row for row in log.groups.describe(name).positions if row.topic == topic]
        assert [row.committed for row in rows] == [30, 30]
    with log.consumer(topics, until="end", **options) as consumer:
        assert list(consumer) == []


@pytest.mark.parametrize("options", [{}, {"group": True}, {"group": True, "assignor": "range"}])
def test_topics_that_appear_later_are_read_from_their_start(
    log: Log, name: str, options: dict[str, Any]
) -> None:
    fill(log, f"{name}-first", 1, 5)
    if "group" in options:
        options = {**options, "group": name}
    pattern = TopicPattern(f"{name}-.*", value=str)
    with log.consumer(pattern, **SOON, **options) as consumer:
        first = fill_soon(log, consumer, f"{name}-first")
        late = f"{name}-late"
        fill(log, late, 2, 10)
        fill(log, f"x{name}-other", 1, 1)
        seen = read_until(consumer, lambda seen: len(values(seen)) >= 20)
        assert values([record for record in seen if record.topic == late]) == expected(
            [late], 2, 10
        )
        assert {record.topic for record in (*first, *seen)} == {f"{name}-first", late}
        assert consumer.topics == (f"{name}-first", late)
        log.topics.delete(late)
        read_until(consumer, lambda _: consumer.topics == (f"{name}-first",))
        assert fill_soon(log, consumer, f"{name}-first")
        assert consumer.partitions_of(late) == []


def fill_soon(log: Log, consumer: Consumer[bytes, str, Any], name: str) -> list[Record[bytes, str]]:
    """Records until the consumer, which begins at the end, has seen one."""
    topic = Topic(name, value=str)

    def is_there(seen: list[Record[bytes, str]]) -> bool:
        with log.producer(linger_ms=0) as producer:
            producer.send(topic, "soon")
        return bool(seen)

    return read_until(consumer, is_there)


def test_a_pattern_waits_for_its_first_topic(
    log: Log, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    pattern = TopicPattern(f"{name}-[ab]", value=str)
    with caplog.at_level(logging.WARNING, "bucketlog.consumer"):
        consumer = log.consumer(pattern, group=name, **SOON)
    assert f"no topic matches topics /{name}-[ab]/ yet" in caplog.text
    with consumer:
        assert consumer.poll(1, 0.01) == []
        fill(log, f"{name}-b", 1, 3)
        seen = read_until(consumer, lambda seen: len(seen) >= 3)
        assert values(seen) == expected([f"{name}-b"], 1, 3)
    without: dict[str, Any] = {}
    for options in (without, {"group": f"{name}-2"}):
        nothing = TopicPattern(f"{name}-nothing")
        with log.consumer(nothing, until="end", **options) as empty:
            assert list(empty) == []


def test_control_by_topic(log: Log, name: str) -> None:
    a, b = (fill(log, f"{name}-{which}", 2, 10) for which in "ab")
    spots = [TopicPartition(topic.name, number) for topic in (a, b) for number in range(2)]
    for group in (None, name):
        options: dict[str, Any] = {} if group is None else {"group": group}
        with log.consumer([a, b], start="earliest", **options) as consumer:
            read_until(consumer, lambda seen: len(seen) >= 40)
            assert consumer.position() == dict.fromkeys(spots, 10)
            assert consumer.lag() == dict.fromkeys(spots, 0)
            assert consumer.partitions_of(a) == spots[:2]
            consumer.pause(consumer.partitions_of(a))
            assert consumer.paused == set(spots[:2])
            consumer.seek({spots[0]: 7, spots[3]: 8})
            assert consumer.position()[spots[3]] == 8
            assert consumer.lag()[spots[0]] == 3
            back = read_until(consumer, lambda seen: len(seen) >= 2)
            assert values(back) == [(b.name, "1-8"), (b.name, "1-9")]
            consumer.resume()
            again = read_until(consumer, lambda seen: len(seen) >= 3)
            assert values(again) == [(a.name, f"0-{at}") for at in (7, 8, 9)]
            if group is not None:
                consumer.commit()
                assert consumer.committed() == dict.fromkeys(spots, 10)


def test_named_partitions_and_starts(log: Log, name: str) -> None:
    a, b = (fill(log, f"{name}-{which}", 2, 5) for which in "ab")
    spot, other = TopicPartition(a.name, 1), TopicPartition(b.name, 0)
    with log.consumer(
        [a, b], partitions=[spot, other], start={spot: 3}, until={spot: 4, other: 5}
    ) as consumer:
        assert consumer.partitions == (spot, other)
        assert values(list(consumer)) == [(a.name, "1-3")]


def test_each_topic_has_its_own_acknowledgements(log: Log, name: str) -> None:
    a, b = (fill(log, f"{name}-{which}", 1, 10) for which in "ab")
    with log.consumer([a, b], group=name, start="earliest", auto_commit="ack") as consumer:
        seen = read_until(consumer, lambda seen: len(seen) >= 20)
        for record in seen:
            if record.topic == b.name or record.offset < 4:
                assert consumer.done(record)
        assert {record.topic for record in seen if consumer.is_in_flight(record)} == {a.name}
    rows = {row.topic: row.committed for row in log.groups.describe(name).positions}
    assert rows == {a.name: 4, b.name: 10}


def test_processing_several_topics(log: Log, name: str) -> None:
    a, b = (fill(log, f"{name}-{which}", 2, 25) for which in "ab")
    handled: list[tuple[str, str]] = []
    with log.consumer(
        (a, b), group=name, start="earliest", until="end", auto_commit="ack"
    ) as consumer:
        count = consumer.process(
            lambda record: handled.append((record.topic, record.value)),
            concurrency=4,
            ordered_by="partition",
        )
    assert count == 100
    assert sorted(handled) == expected([a.name, b.name], 2, 25)
    for topic in (a.name, b.name):
        for number in range(2):
            mine = [value for of, value in handled if of == topic and value[0] == str(number)]
            assert mine == [f"{number}-{at}" for at in range(25)]
    assert log.groups.describe(name).lag == 0


def test_a_transaction_commits_the_offsets_of_all_topics(log: Log, name: str) -> None:
    a, b = (fill(log, f"{name}-{which}", 1, 5) for which in "ab")
    out = Topic(f"{name}-out", value=str)
    log.topics.create(out)
    with log.consumer(
        [a, b], group=name, start="earliest", until="end", auto_commit=False
    ) as consumer:
        count = log.transform(
            consumer,
            lambda record, transaction: transaction.send(out, record.where),
            transactional_id=name,
        )
    assert count == 10
    rows = {row.topic: row.committed for row in log.groups.describe(name).positions}
    assert rows == {a.name: 5, b.name: 5}


def test_callbacks_get_topics(log: Log, name: str) -> None:
    a, b = (fill(log, f"{name}-{which}", 1, 1) for which in "ab")
    came: list[tuple[TopicPartition, ...]] = []
    went: list[tuple[TopicPartition, ...]] = []
    with log.consumer(
        (a, b),
        group=name,
        start="earliest",
        until="end",
        on_assigned=came.append,
        on_revoked=went.append,
    ) as consumer:
        assert len(list(consumer)) == 2
    spots = (TopicPartition(a.name, 0), TopicPartition(b.name, 0))
    assert came == [spots]
    assert went == [spots]


def test_wrong_lists_and_names(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 1)
    wrong: list[tuple[Any, str]] = [
        ([], "the list of topics is empty"),
        ([topic, topic], "is named twice"),
        ([topic, name], "a Topic is needed"),
        (5, "a Topic is needed"),
    ]
    for given, reason in wrong:
        with pytest.raises(ConfigurationError, match=reason):
            log.consumer(given)
    with pytest.raises(ConfigurationError, match="is not a regular expression"):
        TopicPattern("orders-(")
    with pytest.raises(ConfigurationError, match="a pattern of 1,001 characters"):
        TopicPattern("x" * 1001)
    with pytest.raises(ConfigurationError, match="discovery_interval_s is 0"):
        log.consumer(TopicPattern("x"), discovery_interval_s=0)
    with pytest.raises(LogError) as caught:
        log.consumer((topic, Topic(f"{name}-missing")))
    assert caught.value.code == "UNKNOWN_TOPIC_OR_PARTITION"
    with pytest.raises(ConfigurationError, match="has no partition 7"):
        log.consumer([topic], partitions=[TopicPartition(name, 7)])
    with pytest.raises(ConfigurationError, match="is not one of topic"):
        log.consumer([topic], partitions=[TopicPartition("alien", 0)])
    with log.consumer([topic], start="earliest") as consumer:
        with pytest.raises(ConfigurationError, match="does not name a partition"):
            consumer.pause([0])  # type: ignore[list-item]  # a number is what is wrong
        with pytest.raises(ConfigurationError, match=rf"does not have partition {name}\[3\]"):
            consumer.pause([TopicPartition(name, 3)])
        with pytest.raises(ConfigurationError, match=r"use consumer\.topics"):
            _ = consumer.topic  # type: ignore[misc]  # it reads several


def test_patterns_leave_internal_topics_out() -> None:
    assert not TopicPattern(".*").matches("__consumer_offsets")
    assert TopicPattern("__consumer.*").matches("__consumer_offsets")
    assert not TopicPattern("orders").matches("orders-1")


def test_with_asyncio(broker: EmbeddedCluster, log: Log, name: str) -> None:
    fill(log, f"{name}-a", 1, 3)
    fill(log, f"{name}-b", 1, 3)

    async def read() -> None:
        async with bucketlog.aconnect(broker.bootstrap) as connected:
            pattern = TopicPattern(f"{name}-.*", value=str)
            async with connected.consumer(
                pattern, group=name, start="earliest", auto_commit="ack", discovery_interval_s=0.1
            ) as consumer:
                seen: list[Record[bytes, str]] = []
                deadline = Deadline(lambda: seen)
                while len(seen) < 6:
                    deadline.check()
                    seen += await consumer.poll(10, PATIENCE_S)
                assert consumer.topics == (f"{name}-a", f"{name}-b")
                spot = TopicPartition(f"{name}-b", 0)
                assert await consumer.partitions_of(spot.topic) == [spot]
                assert (await consumer.position())[spot] == 3
                fill(log, f"{name}-c", 1, 2)
                while len(seen) < 8:
                    deadline.check()
                    seen += await consumer.poll(10, 0.1)
                assert values(seen)[-2:] == expected([f"{name}-c"], 1, 2)
                assert all(consumer.done(record) for record in seen)
            async with connected.consumer(
                (Topic(f"{name}-a", value=str), pattern), start="earliest", until="end"
            ) as all_of_them:
                assert len([record async for record in all_of_them]) == 8

    asyncio.run(read())
    assert log.groups.describe(name).lag == 0
