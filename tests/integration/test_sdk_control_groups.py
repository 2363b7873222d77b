"""Members of groups: seeks in transactions, and the log line of a member that waits."""

import logging
from itertools import count

import pytest

from bucketlog import Log, Topic
from tests.rigs.group_members import fill
from tests.rigs.patience import PATIENCE_S, Deadline

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"control-of-groups-{next(_numbers)}"


def committed(log: Log, group: str) -> list[int | None]:
    return [row.committed for row in log.groups.describe(group).positions]


def test_a_transaction_commits_the_position_that_was_sought(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 20)
    out = Topic(f"{name}-out", value=str)
    log.topics.create(out)
    with log.consumer(topic, group=name, start="earliest", auto_commit=False) as consumer:
        for to, after in ((12, 13), (4, 5)):
            consumer.poll(1, PATIENCE_S)
            with log.transaction(name, consumer=consumer) as transaction:
                consumer.seek(to)
                assert next(consumer).offset == to
                transaction.send(out, str(to))
            assert committed(log, name) == [after]
        assert consumer.position() == {0: 5}


def test_an_abort_undoes_the_seeks_of_its_block_alone(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 20)
    with log.consumer(topic, group=name, start="earliest", auto_commit=False) as consumer:
        assert next(consumer).offset == 0
        consumer.seek(7)
        for _ in range(2):
            with log.transaction(name, consumer=consumer) as transaction:
                consumer.seek(15)
                assert next(consumer).offset == 15
                transaction.abort()
            assert consumer.position() == {0: 7}
            assert next(consumer).offset == 7
        with log.transaction(name, consumer=consumer):
            pass
    assert committed(log, name) == [8]


def test_a_member_that_waits_says_why_once(
    log: Log, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The first member is not polled, so that the group waits for it as for a dead one."""
    topic = fill(log, name, 2, 5)
    caplog.set_level(logging.WARNING, "bucketlog.consumer")

    def lines() -> list[str]:
        return [row for row in caplog.messages if "has waited for partitions" in row]

    with log.consumer(topic, group=name, start="earliest", assignor="range") as first:
        next(first)
        assert lines() == []
        with log.consumer(topic, group=name, start="earliest", assignor="range") as second:
            deadline = Deadline("the line")
            while not lines():
                deadline.check()
                second.poll(10, 0.1)
            second.poll(10, 0.3)
            (line,) = lines()
            while not second.assignment:
                deadline.check()
                first.poll(10, 0.05)
                second.poll(10, 0.05)
    for part in (name, "rebalancing", "bucketlog at 127.0.0.1", "session ends"):
        assert part in line
    for remedy in ("session_timeout_s", "instance_id", "close()"):
        assert remedy in line


def test_a_member_without_a_share_says_who_has_the_partitions(
    log: Log, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = fill(log, name, 1, 5)
    caplog.set_level(logging.WARNING, "bucketlog.consumer")
    options = {"group": name, "start": "earliest"}
    with log.consumer(topic, **options) as first, log.consumer(topic, **options) as second:  # type: ignore[call-overload]  # options of one type
        deadline = Deadline("the line")
        while not any("Other members have the partitions" in row for row in caplog.messages):
            deadline.check()
            first.poll(10, 0.05)
            second.poll(10, 0.05)
