"""What the introductions to Kafka show of consumer groups, seen through the SDK."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

import bucketlog
from bucketlog import Log, Record, Topic
from bucketlog.client.membership import Assignor
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.group_members import (
    QUICK_SESSIONS,
    SESSION_S,
    Text,
    fill,
    leave_in_turn,
    poll_until,
    shares,
    spots,
    worker,
)
from tests.rigs.patience import Deadline
from tests.servers.cluster import running_cluster

pytestmark = pytest.mark.long

EACH = 40
_numbers = count()
Records = list[Record[bytes, str]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    settings = QUICK_SESSIONS | {"log_retention_check_interval_ms": "0"}
    with EmbeddedCluster(tmp_path_factory.mktemp("scenes"), settings=settings) as cluster:
        yield cluster


@pytest.fixture
def log(cluster: EmbeddedCluster) -> Iterator[Log]:
    with bucketlog.connect(cluster.bootstrap) as connected:
        yield connected


@pytest.fixture
def name() -> str:
    return f"scene-{next(_numbers)}"


def rest_of(log: Log, topic: Text, group: str) -> Records:
    """What the group has left."""
    with log.consumer(
        topic, group=group, start="earliest", until="end", session_timeout_s=SESSION_S
    ) as consumer:
        return list(consumer)


def everything(partitions: int, each: int = EACH) -> list[tuple[int, int]]:
    return [(partition, at) for partition in range(partitions) for at in range(each)]


# Who reads what ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignor", "members", "expected"),
    [
        ("cooperative-sticky", 1, [4]),
        ("cooperative-sticky", 2, [2, 2]),
        ("cooperative-sticky", 3, [2, 1, 1]),
        ("cooperative-sticky", 4, [1, 1, 1, 1]),
        ("cooperative-sticky", 6, [1, 1, 1, 1, 0, 0]),
        ("range", 1, [4]),
        ("range", 2, [2, 2]),
        ("range", 3, [2, 1, 1]),
        ("range", 4, [1, 1, 1, 1]),
        ("range", 6, [1, 1, 1, 1, 0, 0]),
    ],
)
def test_fewer_members_than_partitions_as_many_and_more(
    log: Log, name: str, members: int, expected: list[int], assignor: Assignor
) -> None:
    topic = fill(log, name, 4, 0)
    with ExitStack() as stack:
        group = [
            stack.enter_context(
                log.consumer(topic, group=name, start="earliest", assignor=assignor)
            )
            for _ in range(members)
        ]
        seen: Records = []
        poll_until(group, lambda: shares(group) == expected, seen)
        fill(log, name, 4, EACH)
        poll_until(group, lambda: len(seen) >= 4 * EACH, seen)
        owned = [partition for member in group for partition in member.assignment]
        assert sorted(owned) == [0, 1, 2, 3], "each partition has one reader"
        leave_in_turn(group, seen)
    assert spots(seen) == everything(4), "every record once over the group"
    assert log.groups.describe(name).lag == 0


def test_a_member_is_added(log: Log, name: str) -> None:
    topic = fill(log, name, 4, EACH)
    seen: Records = []
    with log.consumer(topic, group=name, start="earliest") as first:
        poll_until([first], lambda: len(seen) > EACH, seen)
        with log.consumer(topic, group=name, start="earliest") as second:
            members = [first, second]
            poll_until(members, lambda: shares(members) == [2, 2], seen)
            fill(log, name, 4, EACH)
            poll_until(members, lambda: len(seen) >= 8 * EACH, seen)
    assert spots(seen) == everything(4, 2 * EACH)


def test_a_newcomer_until_the_end_waits_for_its_share(log: Log, name: str) -> None:
    """A newcomer's first cooperative assignment is empty: that is not the end."""
    topic = fill(log, name, 4, EACH)
    seen: Records = []
    with log.consumer(topic, group=name, start="earliest") as first:
        poll_until([first], lambda: len(seen) == 4 * EACH, seen)
        with log.consumer(topic, group=name, until="end") as second:
            poll_until([first, second], lambda: len(second.assignment) == 2, seen)
            poll_until([first, second], lambda: second.finished, seen)
        fill(log, name, 4, EACH)
        with log.consumer(topic, group=name, start="earliest", until="end") as third:
            poll_until([first, third], lambda: third.finished, seen)
            assert len(third.assignment) == 2
        poll_until([first], lambda: len(first.assignment) == 4, seen)
        poll_until([first], lambda: len(seen) == 8 * EACH, seen)
        details = log.groups.describe(name)
        assert (details.state, len(details.members)) == ("Stable", 1)
    assert spots(seen) == everything(4, 2 * EACH)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
def test_one_too_many_until_the_end_is_finished(log: Log, name: str, assignor: Assignor) -> None:
    topic = fill(log, name, 1, EACH)
    seen: Records = []
    options: dict[str, Any] = {"group": name, "start": "earliest", "assignor": assignor}
    with log.consumer(topic, **options) as first:
        poll_until([first], lambda: len(seen) == EACH, seen)
        with log.consumer(topic, until="end", **options) as second:
            poll_until([first, second], lambda: second.finished, seen)
            # an eager member gives all it has away first and gets its share at a later poll
            held = [first, second]
            poll_until(held, lambda: sum(len(each.assignment) for each in held) == 1, seen)
    assert spots(seen) == everything(1)


def test_a_member_is_lost(log: Log, name: str) -> None:
    topic = fill(log, name, 4, 20 * EACH)
    seen: Records = []
    finished: list[tuple[int, int]] = []
    with ExitStack() as stack:
        lost = stack.enter_context(worker(log, topic, name))
        working_on = lost.next()
        survivor = stack.enter_context(
            log.consumer(topic, group=name, start="earliest", session_timeout_s=SESSION_S)
        )
        while len(survivor.assignment) < 2:  # a member gives partitions up where it asks for more
            lost.finish()
            finished.append(working_on)
            seen += survivor.poll(50, 0.02)
            working_on = lost.next()
        lost.kill()
        poll_until(
            [survivor], lambda: set(everything(4, 20 * EACH)) <= {*finished, *spots(seen)}, seen
        )
        assert len(survivor.assignment) == 4
    assert working_on in spots(seen), "what it did not finish is read again"
    assert log.groups.describe(name).lag == 0


def test_two_groups_read_at_their_own_pace(log: Log, name: str) -> None:
    topic = fill(log, name, 2, EACH)
    with log.consumer(topic, group=f"{name}-slow", start="earliest") as slow:
        begun = [next(slow) for _ in range(5)]
        assert spots(rest_of(log, topic, f"{name}-quick")) == everything(2)
    lags = [row.lag for row in log.groups.describe(f"{name}-slow").positions]
    assert sum(EACH if lag is None else lag for lag in lags) == 2 * EACH - 5
    assert log.groups.describe(f"{name}-quick").lag == 0
    left = rest_of(log, topic, f"{name}-slow")
    assert spots([*begun, *left]) == everything(2)


# Where to start ----------------------------------------------------------------------------------


def test_from_the_beginning_an_offset_and_a_time(log: Log, name: str) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic)
    with log.producer() as producer:
        for at in range(20):
            producer.send(topic, str(at), timestamp_ms=1_700_000_000_000 + 1000 * at)
    when = datetime.fromtimestamp(1_700_000_015, UTC)
    assert len(rest_of(log, topic, f"{name}-all")) == 20
    with log.consumer(topic, group=f"{name}-late", start=when, until="end") as consumer:
        assert [int(record.value) for record in consumer] == [15, 16, 17, 18, 19]
    with log.consumer(topic, group=f"{name}-late", start="earliest", until="end") as consumer:
        assert list(consumer) == [], "start is for what is not committed"
    log.groups.reset(f"{name}-late", topic, to=18)
    assert [record.offset for record in rest_of(log, topic, f"{name}-late")] == [18, 19]
    log.groups.reset(f"{name}-late", topic, to=when)
    assert rest_of(log, topic, f"{name}-late")[0].offset == 15


def test_from_the_end_is_kept_for_who_comes_later(log: Log, name: str) -> None:
    """A member that began at the end and read nothing leaves nothing out for its successor."""
    topic = fill(log, name, 1, 3)
    with log.consumer(topic, group=name) as first:
        poll_until([first], lambda: len(first.assignment) == 1, [])
    fill(log, name, 1, 2)
    with log.consumer(topic, group=name, until="end") as second:
        assert [record.offset for record in second] == [3, 4]


# Crashes -----------------------------------------------------------------------------------------


def committed(log: Log, group: str) -> int | None:
    (position,) = log.groups.describe(group).positions
    return position.committed


def test_at_least_once_across_a_crash(log: Log, name: str) -> None:
    """What was finished is committed, what was being worked on is not, and comes again."""
    topic = fill(log, name, 1, EACH)
    with worker(log, topic, name) as process:
        for at in range(7):
            assert process.next() == (0, at)
            process.finish()
        assert process.next() == (0, 7)
        deadline = Deadline("what is done is not committed")
        while (now := committed(log, name)) != 7:
            assert now is None or now < 7, "what it works on is not done"
            deadline.check()
        process.kill()
    left = rest_of(log, topic, name)
    assert [record.offset for record in left] == list(range(7, EACH))


def test_at_most_once_across_a_crash(log: Log, name: str) -> None:
    """What was handed out is committed before it is worked on: it never comes again."""
    topic = fill(log, name, 1, EACH)
    with worker(log, topic, name, "at-most-once") as process:
        for at in range(7):
            assert process.next() == (0, at)
            process.finish()
        assert process.next() == (0, 7)
        assert committed(log, name) == 10, "the second batch of five"
        process.kill()
    assert [record.offset for record in rest_of(log, topic, name)] == list(range(10, EACH))


# Clusters ----------------------------------------------------------------------------------------


def test_producing_to_a_topic_that_does_not_exist_creates_it(log: Log, name: str) -> None:
    topic = Topic(name, value=str)
    with log.producer() as producer:
        assert producer.send(topic, "first").result().offset == 0
    assert [record.value for record in rest_of(log, topic, name)] == ["first"]


def test_any_broker_is_a_way_in() -> None:
    """Each member and each producer knows another broker; they are one group on one topic."""
    settings = QUICK_SESSIONS | {"group_initial_rebalance_delay_ms": "0"}
    with running_cluster(3, settings=settings) as brokers, ExitStack() as stack:
        logs = [
            stack.enter_context(bucketlog.connect(broker.bootstrap)) for broker in brokers.brokers
        ]
        topic = fill(logs[0], "any", 6, 0)
        members = [
            stack.enter_context(log.consumer(topic, group="any", start="earliest")) for log in logs
        ]
        seen: Records = []
        poll_until(members, lambda: shares(members) == [2, 2, 2], seen)
        for log in logs:
            fill(log, "any", 6, 10)
        poll_until(members, lambda: len(seen) >= 180, seen)
        assert spots(seen) == everything(6, 30)
        told = {log.groups.describe("any").coordinator for log in logs}
        assert len(told) == 1, "all name the same coordinator"
