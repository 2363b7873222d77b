"""Consumer groups through the SDK: when what is committed, and what a caller is told."""

from itertools import count
from typing import Any

import pytest

from bucketlog import Log, Topic
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError, LogError
from tests.rigs.group_members import fill, poll_until
from tests.rigs.patience import PATIENCE_S, eventually

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"group-{next(_numbers)}"


def committed(log: Log, group: str) -> list[int | None]:
    return [position.committed for position in log.groups.describe(group).positions]


def test_leaving_the_block_normally_commits_the_last_record(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with log.consumer(topic, group=name, start="earliest") as consumer:
        for record in consumer:
            if record.offset == 4:
                break
    assert committed(log, name) == [5]


def test_an_exception_leaves_its_record_uncommitted(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)

    def fail_at(offset: int) -> None:
        with log.consumer(topic, group=name, start="earliest") as consumer:
            for record in consumer:
                assert record.offset != offset

    for offset in (4, 7):
        with pytest.raises(AssertionError):
            fail_at(offset)
        assert committed(log, name) == [offset]
    with log.consumer(topic, group=name, until="end") as consumer:
        assert [record.offset for record in consumer] == [7, 8, 9]


def test_an_exception_leaves_its_batch_uncommitted(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)

    def fail() -> None:
        with log.consumer(topic, group=name, start="earliest") as consumer:
            for batch in consumer.batches(3):
                if batch[0].offset == 6:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert committed(log, name) == [6]


def test_closing_commits_what_is_known_to_be_done(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    consumer = log.consumer(topic, group=name, start="earliest")
    assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
    consumer.close()
    consumer.close()
    assert committed(log, name) == [2]


def test_commits_come_at_their_interval_while_a_record_is_worked_on(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with log.consumer(topic, group=name, start="earliest", commit_interval_s=0.05) as consumer:
        for record in consumer:
            if record.offset == 6:
                break
        eventually(lambda: committed(log, name) == [6])


def test_committing_by_hand(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    options: dict[str, Any] = {"group": name, "start": "earliest", "auto_commit": False}
    with log.consumer(topic, **options) as consumer:
        assert len(consumer.poll(4, PATIENCE_S)) == 4
        consumer.commit()
        assert committed(log, name) == [4]
        assert len(consumer.poll(4, PATIENCE_S)) == 4
    assert committed(log, name) == [4], "nothing else is committed"
    with log.consumer(topic, **options) as consumer:
        assert next(consumer).offset == 4


def test_a_partition_that_goes_takes_what_is_done_with_it(log: Log, name: str) -> None:
    """The new reader begins after what the old one was done with: nothing twice, nothing left."""
    topic = fill(log, name, 2, 500)
    gone: list[tuple[int, ...]] = []
    came: list[tuple[int, ...]] = []
    with log.consumer(
        topic,
        group=name,
        start="earliest",
        commit_interval_s=3600,
        on_assigned=came.append,
        on_revoked=gone.append,
    ) as first:
        seen = [next(first) for _ in range(300)]
        with log.consumer(topic, group=name, start="earliest") as second:
            poll_until([first, second], lambda: len(second.assignment) == 1, seen)
            poll_until([first, second], lambda: len(seen) >= 1000, seen)
            assert came[0] == (0, 1)
            assert gone[0] == tuple(second.assignment)
    assert len({(record.partition, record.offset) for record in seen}) == len(seen) == 1000
    assert committed(log, name) == [500, 500]


def test_a_poison_record_stays_until_it_is_passed(log: Log, name: str) -> None:
    raw = Topic(name)
    log.topics.create(raw)
    with log.producer() as producer:
        for data in (b"1", b"poison", b"3"):
            producer.send(raw, data)
    numbers = Topic(name, value=int)

    def read() -> None:
        with log.consumer(numbers, group=name, start="earliest") as consumer:
            for _ in consumer:
                pass

    for _ in range(2):
        with pytest.raises(InvalidDataError, match=rf"{name}\[0\]@1"):
            read()
        assert committed(log, name) == [1]
    with log.consumer(numbers, group=name, until="end") as consumer:
        with pytest.raises(InvalidDataError):
            next(consumer)
        assert [record.value for record in consumer] == [3]
    assert committed(log, name) == [3]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"start": 5}, "groups.reset"),
        ({"start": {0: 5}}, "groups.reset"),
        ({"partitions": [0]}, "leave out partitions"),
        ({"group": ""}, "billing"),
        ({"commit_interval_s": 0}, "from 0.001 to 86,400"),
        ({"group": None, "auto_commit": False}, "add group"),
    ],
)
def test_what_does_not_go_together(
    log: Log, name: str, options: dict[str, Any], remedy: str
) -> None:
    topic = fill(log, name, 1, 0)
    with pytest.raises(ConfigurationError, match=remedy):
        log.consumer(topic, **({"group": name} | options))


def test_a_group_of_a_topic_that_is_not_there(log: Log, name: str) -> None:
    with pytest.raises(LogError) as caught:
        log.consumer(Topic(name), group=name)
    assert caught.value.code == "UNKNOWN_TOPIC_OR_PARTITION"


def test_members_that_know_no_common_assignor(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 1)
    with log.consumer(topic, group=name, start="earliest", assignor="range") as first:
        assert next(first).offset == 0
        with log.consumer(topic, group=name, assignor="roundrobin") as second:
            with pytest.raises(LogError) as caught:
                next(second)
            assert caught.value.code == "INCONSISTENT_GROUP_PROTOCOL"
            assert "assignor" in caught.value.remedy


def test_a_static_member_is_fenced_by_its_double(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    first = log.consumer(topic, group=name, start="earliest", instance_id="one")
    assert next(first).offset == 0
    with log.consumer(topic, group=name, start="earliest", instance_id="one") as second:
        assert next(second).offset == 0
        (member,) = log.groups.describe(name).members
        assert member.instance_id == "one"
        with pytest.raises(LogError) as caught:
            poll_until([first], lambda: False, [])
        assert caught.value.code == "FENCED_INSTANCE_ID"
        assert not caught.value.retriable
        assert "its own" in caught.value.remedy
    with pytest.raises(LogError, match="FENCED_INSTANCE_ID"):
        first.close()


def test_a_reset_is_planned_then_done(log: Log, name: str) -> None:
    topic = fill(log, name, 2, 10)
    with log.consumer(topic, group=name, start="earliest", until="end") as consumer:
        assert len(list(consumer)) == 20
    plan = log.groups.reset(name, topic, shift=-3, dry_run=True)
    assert [(row.before, row.after) for row in plan] == [(10, 7), (10, 7)]
    assert committed(log, name) == [10, 10]
    assert log.groups.reset(name, shift=-3) == plan
    assert log.groups.describe(name).lag == 6
    log.groups.reset(name, topic, to={1: 2})
    assert committed(log, name) == [7, 2]
    log.groups.reset(name, topic, to=99, partitions=[0])
    assert committed(log, name) == [10, 2]
    log.groups.reset(name, to="earliest")
    assert committed(log, name) == [0, 0]
    with pytest.raises(ConfigurationError, match="no partition 2"):
        log.groups.reset(name, topic, to=0, partitions=[2])
    with pytest.raises(ConfigurationError, match="either to or shift"):
        log.groups.reset(name, topic)
    with pytest.raises(ConfigurationError, match="to or shift, not both"):
        log.groups.reset(name, topic, to=0, shift=1)


def test_the_lag_of_a_group_that_committed_nothing_is_not_known(log: Log, name: str) -> None:
    topic = fill(log, name, 2, 10)
    with log.consumer(topic, group=name, start="earliest", auto_commit=False) as consumer:
        assert consumer.poll(4, PATIENCE_S)
        reading = log.groups.describe(name)
        assert [(row.committed, row.lag) for row in reading.positions] == [(None, None)] * 2
        assert reading.lag is None
    log.groups.reset(name, topic, to={0: 7})
    details = log.groups.describe(name)
    assert [row.lag for row in details.positions] == [3, None]
    assert details.lag == 3


def test_administration_of_a_group_in_use(log: Log, name: str) -> None:
    topic = fill(log, name, 2, 10)
    with log.consumer(topic, group=name, start="earliest") as consumer:
        assert len(consumer.poll(4, PATIENCE_S)) == 4
        consumer.commit()
        details = log.groups.describe(name)
        (member,) = details.members
        assert (details.state, details.assignor) == ("Stable", "cooperative-sticky")
        assert (member.client_id, member.host) == ("bucketlog", "127.0.0.1")
        assert member.partitions == ((name, 0), (name, 1))
        assert {position.member_id for position in details.positions} == {member.member_id}
        lags = [position.lag for position in details.positions]
        assert sum(10 if lag is None else lag for lag in lags) == 16
        plan = log.groups.reset(name, to="latest", dry_run=True)
        assert [row.after for row in plan] == [10, 10]
        for change in (
            lambda: log.groups.reset(name, to="latest"),
            lambda: log.groups.delete(name),
        ):
            with pytest.raises(LogError) as caught:
                change()
            assert caught.value.code == "NON_EMPTY_GROUP"
            assert "stop its members" in caught.value.remedy
    assert name in {info.group for info in log.groups.list()}
    log.groups.delete(name)
    for ask in (log.groups.describe, log.groups.delete, lambda at: log.groups.reset(at, to=0)):
        with pytest.raises(LogError) as missing:
            ask(name)
        assert missing.value.code == "GROUP_ID_NOT_FOUND"
