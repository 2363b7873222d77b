"""Control over where consumers read: seek, pause, resume, position, committed, lag."""

import threading
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from confluent_kafka import TopicPartition

import bucketlog
from bucketlog import GroupConsumer, Log, Record, Topic
from bucketlog.client import message_buffer
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConcurrentUseError, ConfigurationError, LogError
from tests.rigs.group_members import fill, poll_until
from tests.rigs.patience import PATIENCE_S, Deadline

_numbers = count()
Text = Topic[bytes, str]


@pytest.fixture
def name() -> str:
    return f"control-{next(_numbers)}"


def member(log: Log, topic: Text, **options: Any) -> GroupConsumer[bytes, str]:
    settings = {"start": "earliest", "commit_interval_s": 3600, **options}
    return log.consumer(topic, group=topic.name, **settings)


def committed(log: Log, group: str) -> list[int | None]:
    return [row.committed for row in log.groups.describe(group).positions]


def offsets(records: list[Record[bytes, str]]) -> list[int]:
    return [record.offset for record in records]


def next_records(consumer: bucketlog.Consumer[bytes, str], number: int) -> list[int]:
    found: list[int] = []
    deadline = Deadline(lambda: found)
    while len(found) < number:
        deadline.check()
        found += offsets(consumer.poll(number - len(found), 0.5))
    return found


# Seeking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [False, True])
def test_a_seek_moves_behind_and_ahead_of_what_was_read_ahead(
    log: Log, name: str, group: bool
) -> None:
    topic = fill(log, name, 1, 50)
    opened = member(log, topic) if group else log.consumer(topic, start="earliest")
    with opened as consumer:
        assert next_records(consumer, 5) == [0, 1, 2, 3, 4]
        assert consumer.position() == {0: 5}
        for to, first in ((2, 2), ("earliest", 0), ({0: 40}, 40), (7, 7)):
            consumer.seek(to)  # type: ignore[arg-type]  # a tuple of mixed types
            assert consumer.position() == {0: first}
            assert next_records(consumer, 3) == [first, first + 1, first + 2]
            assert consumer.position() == {0: first + 3}
        consumer.seek("latest")
        assert consumer.position() == {0: 50}
        assert consumer.lag() == {0: 0}
        with log.producer() as producer:
            producer.send(topic, "new", partition=0)
        assert next_records(consumer, 1) == [50]


@pytest.mark.parametrize("group", [False, True])
def test_a_seek_to_a_time(log: Log, name: str, group: bool) -> None:
    topic = Topic(name, value=str)
    log.topics.ensure(topic, partitions=1)
    with log.producer() as producer:
        for at in range(10):
            producer.send(topic, str(at), timestamp_ms=1_600_000_000_000 + at * 1000)
    opened = member(log, topic) if group else log.consumer(topic, start="earliest")
    with opened as consumer:
        assert next(consumer).offset == 0
        consumer.seek(datetime.fromtimestamp(1_600_000_006, UTC))
        assert next(consumer).offset == 6
        consumer.seek(datetime.fromtimestamp(1_600_000_600, UTC))
        assert consumer.position() == {0: 10}


@pytest.mark.parametrize("group", [False, True])
def test_a_seek_keeps_the_end_of_reading(log: Log, name: str, group: bool) -> None:
    topic = fill(log, name, 2, 10)
    opened = (
        member(log, topic, until="end")
        if group
        else log.consumer(topic, start="latest", until="end")
    )
    with opened as consumer:
        assert len(list(consumer)) == (20 if group else 0)
        assert consumer.finished
        consumer.seek({1: 7})
        with log.producer() as producer:
            producer.send(topic, "later", partition=1)
        assert [(record.partition, record.offset) for record in consumer] == [
            (1, 7),
            (1, 8),
            (1, 9),
        ]
        consumer.seek(10)
        assert list(consumer) == []
        consumer.seek("earliest", [0])
        assert next(consumer).offset == 0
        consumer.seek("latest")
        assert list(consumer) == []


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
def test_a_group_begins_where_on_assigned_seeks(log: Log, name: str, assignor: str) -> None:
    topic = fill(log, name, 2, 10)
    opened: list[GroupConsumer[bytes, str]] = []
    begin = lambda came: opened[0].seek(8, came)  # noqa: E731  # the consumer is not open yet
    with member(log, topic, on_assigned=begin, assignor=assignor) as consumer:
        opened.append(consumer)
        seen = [next(consumer) for _ in range(4)]
    assert {(record.partition, record.offset) for record in seen} == {
        (0, 8),
        (0, 9),
        (1, 8),
        (1, 9),
    }
    assert committed(log, name) == [10, 10]


def test_a_sought_record_is_not_done(log: Log, name: str) -> None:
    """The record in the body is read again, and no commit passes it before."""
    topic = fill(log, name, 1, 10)

    def fail() -> None:
        with member(log, topic) as consumer:
            for record in consumer:
                if record.offset == 4:
                    consumer.seek({0: 4})
                    assert next(consumer).offset == 4
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert committed(log, name) == [4]


def test_a_failed_body_does_not_commit_its_seek(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)

    def fail() -> None:
        with member(log, topic) as consumer:
            for record in consumer:
                if record.offset == 4:
                    consumer.seek("latest")
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert committed(log, name) == [4]


@pytest.mark.parametrize("auto_commit", [True, False, "ack"])
def test_a_seek_moves_what_is_committed_back_and_ahead(
    log: Log, name: str, auto_commit: bool | str
) -> None:
    topic = fill(log, name, 1, 50)
    with member(log, topic, auto_commit=auto_commit) as consumer:
        for record in consumer.poll(50, PATIENCE_S):
            if auto_commit == "ack":
                consumer.done(record)
        consumer.commit()
        first = consumer.committed()[0]
        assert first is not None
        assert first > 0
        consumer.seek(0)
        consumer.commit()
        assert consumer.committed() == {0: 0}
        consumer.seek(45)
        consumer.commit()
        assert committed(log, name) == [45]
        consumer.seek(20)
        assert next_records(consumer, 1) == [20]
    if auto_commit is True:
        assert committed(log, name) == [21]
    else:
        assert committed(log, name) == [20 if auto_commit else 45]


def test_no_later_commit_undoes_a_seek_back(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 20)
    with member(log, topic, commit_interval_s=0.02) as consumer:
        assert next_records(consumer, 15)[-1] == 14
        consumer.commit()
        consumer.seek(3)
        assert next_records(consumer, 4) == [3, 4, 5, 6]
    assert committed(log, name) == [7]


def test_a_seek_ends_an_offset_that_is_out_of_range(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with log.consumer(topic, start=500) as consumer:
        with pytest.raises(LogError):
            next(consumer)
        consumer.seek(6)
        assert next(consumer).offset == 6


def test_records_that_are_deleted_meanwhile_do_not_end_earliest(
    log: Log, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earliest offset is gone when the broker is asked for its records."""
    topic = fill(log, name, 1, 10)
    rows = [TopicPartition(name, 0, 6)]
    log.topics._admin.client.delete_records(rows)[rows[0]].result()
    monkeypatch.setattr(message_buffer, "found_offsets", lambda *_: {(name, 0): 0})
    with log.consumer(topic, start="earliest") as consumer:
        assert next(consumer).offset == 6


# Acknowledgements ------------------------------------------------------------------------------


def test_records_of_before_a_seek_are_not_acknowledged(log: Log, name: str) -> None:
    """Also those that were returned again since: `done` of the earlier ones says nothing."""
    topic = fill(log, name, 2, 10)
    with member(log, topic, auto_commit="ack") as consumer:
        seen: list[Record[bytes, str]] = []
        poll_until([consumer], lambda: len(seen) == 20, seen)
        old = {(record.partition, record.offset): record for record in seen}
        consumer.seek(2, [0])
        assert not consumer.is_in_flight(old[0, 0])
        assert not consumer.done(old[0, 5])
        assert consumer.done(old[1, 0]), "the other partition was not sought"
        again: list[Record[bytes, str]] = []
        poll_until([consumer], lambda: len(again) == 8, again)
        assert not consumer.done(old[0, 2]), "it is the record of before the seek"
        assert not consumer.is_in_flight(old[0, 2])
        assert consumer.is_in_flight(again[0])
        consumer.commit()
        assert committed(log, name) == [2, 1]
        for record in again[:3]:
            assert consumer.done(record)
    assert committed(log, name) == [5, 1]


def test_a_seek_frees_the_room_of_records_in_flight(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with member(log, topic, auto_commit="ack", in_flight_records_max=4) as consumer:
        assert offsets(consumer.poll(10, PATIENCE_S)) == [0, 1, 2, 3]
        consumer.seek(1)
        assert offsets(consumer.poll(10, PATIENCE_S)) == [1, 2, 3, 4]


# Pausing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [False, True])
def test_paused_partitions_keep_their_records_and_their_order(
    log: Log, name: str, group: bool
) -> None:
    topic = fill(log, name, 2, 30)
    opened = (
        member(log, topic, until="end")
        if group
        else log.consumer(topic, start="earliest", until="end")
    )
    with opened as consumer:
        seen = {(record.partition, record.offset) for record in (next(consumer),)}
        consumer.pause([0])
        assert consumer.paused == {0}
        before = consumer.position()[0]
        while consumer.position()[1] < 30:
            for record in consumer.poll(7, 0.1):
                assert record.partition == 1
                seen.add((record.partition, record.offset))
        assert not consumer.finished
        assert consumer.position()[0] == before
        assert consumer.lag() == {0: 30 - before, 1: 0}
        assert consumer.poll(10, 0.3) == []
        consumer.resume()
        assert consumer.paused == frozenset()
        rest = list(consumer)
        assert offsets(rest) == list(range(before, 30))
        assert len(seen | {(record.partition, record.offset) for record in rest}) == 60


@pytest.mark.parametrize("group", [False, True])
def test_a_paused_partition_can_be_sought(log: Log, name: str, group: bool) -> None:
    topic = fill(log, name, 1, 30)
    opened = member(log, topic) if group else log.consumer(topic, start="earliest")
    with opened as consumer:
        assert next(consumer).offset == 0
        consumer.pause()
        consumer.seek(25)
        assert consumer.poll(10, 0.5) == []
        consumer.resume()
        assert next_records(consumer, 5) == [25, 26, 27, 28, 29]


def test_a_pause_ends_where_the_partition_moves(log: Log, name: str) -> None:
    topic = fill(log, name, 2, 200)
    seen: list[Record[bytes, str]] = []
    with member(log, topic) as first:
        poll_until([first], lambda: len(first.assignment) == 2, seen)
        first.pause()
        taken = len(seen)
        with member(log, topic) as second:
            poll_until([first, second], lambda: len(second.assignment) == 1, seen)
            mine = set(first.assignment)
            assert first.paused == mine
            poll_until([first, second], lambda: len(seen) >= taken + 1, seen)
            assert {record.partition for record in seen[taken:]} == set(second.assignment)
        poll_until([first], lambda: len(first.assignment) == 2, seen)
        assert first.paused == mine
        with log.producer() as producer:
            for partition in (0, 1):
                producer.send(topic, "last", partition=partition)
        (moved,) = {0, 1} - mine
        poll_until([first], lambda: (moved, 200) in {(r.partition, r.offset) for r in seen}, seen)
        first.resume()
        poll_until([first], lambda: len({(r.partition, r.offset) for r in seen}) == 402, seen)
    assert committed(log, name) == [201, 201]


# What is refused -------------------------------------------------------------------------------


def test_positions_that_are_none(log: Log, name: str) -> None:
    topic = fill(log, name, 2, 5)
    with log.consumer(topic, start="earliest", partitions=[1]) as consumer:
        for to in ("erliest", -1, True, 1.5, [3], {1: -3}, {1: "latest"}):
            with pytest.raises(ConfigurationError, match="to is"):
                consumer.seek(to)  # type: ignore[arg-type]  # a wrong position is what is tested
        for call in (consumer.pause, consumer.resume, lambda names: consumer.seek(0, names)):
            with pytest.raises(ConfigurationError, match="it has: 1"):
                call([0])
        with pytest.raises(ConfigurationError, match="no offset for partition 1"):
            consumer.seek({0: 3}, [1])
        with pytest.raises(ConfigurationError, match="open it with group"):
            consumer.committed()
        assert next(consumer).offset == 0
    with pytest.raises(ConfigurationError, match="is closed"):
        consumer.seek(0)
    with member(log, topic) as unassigned:
        assert unassigned.position() == unassigned.lag() == unassigned.committed() == {}
        with pytest.raises(ConfigurationError, match="on_assigned"):
            unassigned.seek(0)


def test_another_thread_may_not_seek(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 5)
    refused: list[BaseException] = []

    def meddle(call: Any) -> None:
        try:
            call()
        except ConcurrentUseError as error:
            refused.append(error)

    with member(log, topic) as consumer:
        next(consumer)
        calls = (lambda: consumer.seek(3), consumer.pause, consumer.resume, consumer.position)
        for call in (*calls, consumer.lag, consumer.committed):
            other = threading.Thread(target=meddle, args=(call,))
            other.start()
            other.join()
        assert len(refused) == 6
        assert next(consumer).offset == 1


# Without waiting -------------------------------------------------------------------------------


async def test_control_with_await(broker: EmbeddedCluster, log: Log, name: str) -> None:
    topic = fill(log, name, 2, 10)
    async with bucketlog.aconnect(broker.bootstrap) as alog:
        consumer = alog.consumer(topic, group=name, start="earliest", until="end")
        async with consumer:
            assert await consumer.position() == {}
            first = await anext(consumer)
            await consumer.pause([1 - first.partition])
            assert consumer.paused == {1 - first.partition}
            await consumer.seek({first.partition: 8})
            assert offsets(await consumer.poll(5, PATIENCE_S)) == [8, 9]
            assert (await consumer.position())[first.partition] == 10
            assert (await consumer.lag())[1 - first.partition] == 10
            await consumer.resume()
            assert len([record async for record in consumer]) == 10
            await consumer.commit()
            assert await consumer.committed() == {0: 10, 1: 10}
        async with alog.consumer(topic, start="latest") as explicit:
            assert await explicit.position() == {0: 10, 1: 10}
            await explicit.seek(9)
            assert (await anext(explicit)).offset == 9
