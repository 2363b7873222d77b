"""Members of share groups, their assignments, and share sessions."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.assignment import assign
from bucketlog.consumers.share.coordinator import ShareCoordinator
from bucketlog.consumers.share.group import ShareHeartbeat
from bucketlog.consumers.share.sessions import SessionKey, ShareSessions
from bucketlog.consumers.share.settings import ShareMemberLimits
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import TopicState
from tests.models.indexes import partition, topic_id

TOPICS = ("t1", "t2", "t3")
LIMITS = ShareMemberLimits(
    session_timeout_ms=100,
    heartbeat_interval_ms=10,
    members_max=3,
    members_total_max=4,
    topics_max=2,
    id_bytes_max=20,
)


def parts(counts: dict[str, int]) -> dict[str, list[TopicIdPartition]]:
    return {
        name: [partition(int(name[1:]), number) for number in range(count)]
        for name, count in counts.items()
    }


names = st.frozensets(st.sampled_from(TOPICS), min_size=1)
subscriptions = st.dictionaries(st.sampled_from("abcdefgh"), names, max_size=8)
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), max_size=3)


@given(subscriptions, counts, st.data())
def test_everybody_has_something_and_nothing_is_left(
    wanted: dict[str, frozenset[str]], sizes: dict[str, int], data: st.DataObject
) -> None:
    there = parts(sizes)
    everywhere = [each for rows in there.values() for each in rows]
    current = {
        member: frozenset(data.draw(st.lists(st.sampled_from(everywhere)))) if everywhere else set()
        for member in "abcxyz"
    }
    found = assign(wanted, there, current)
    assert found.keys() == wanted.keys()
    for member, topics in wanted.items():
        allowed = {each for topic in topics for each in there.get(topic, ())}
        assert found[member] <= allowed
        assert bool(found[member]) is bool(allowed) or len(set(wanted.values())) > 1
    for topic, rows in there.items():
        readers = [member for member, topics in wanted.items() if topic in topics]
        for each in rows:
            assert any(each in found[member] for member in readers) or not readers
    if len(set(wanted.values())) == 1:
        (topics,) = set(wanted.values())
        pool = [each for topic in topics for each in there.get(topic, ())]
        sizes_now = [len(rows) for rows in found.values()]
        readers_now = [sum(each in rows for rows in found.values()) for each in pool]
        assert not pool or max(sizes_now) - min(sizes_now) <= 1
        assert not pool or max(readers_now) - min(readers_now) <= 1
    assert assign(wanted, there, found) == found or len(set(wanted.values())) > 1


def test_who_stays_keeps_most() -> None:
    everybody = {name: frozenset({"t1"}) for name in "abc"}
    before = assign(everybody, parts({"t1": 9}), {})
    after = assign({**everybody, "d": frozenset({"t1"})}, parts({"t1": 9}), before)
    assert all(len(before[name] - after[name]) <= 1 for name in "abc")


@dataclass
class Clock:
    ms: int = 0


def coordinator(
    clock: Clock, topics: dict[str, int], configs: dict[str, str] | None = None
) -> ShareCoordinator:
    def topic(name: str) -> TopicState | None:
        count = topics.get(name)
        return None if count is None else TopicState(topic_id(int(name[1:])), name, count, {})

    return ShareCoordinator(
        owns=lambda group: ErrorCode.not_coordinator if group == "far" else ErrorCode.none,
        stored=lambda: {"stored", "far"},
        is_other=lambda group: group == "classic",
        topic=topic,
        limits=LIMITS,
        configs_of=lambda _: configs or {},
        now_ms=lambda: clock.ms,
    )


def beat(member: str, epoch: int, *topics: str) -> ShareHeartbeat:
    return ShareHeartbeat(member, epoch, topics or None, None, "client", "/host")


def test_a_topic_that_grows_is_told_with_the_next_heartbeat() -> None:
    topics = {"t1": 1}
    here = coordinator(Clock(), topics)
    joined = here.heartbeat("g", beat("m", 0, "t1"))
    assert joined.assignment == frozenset({partition(1)})
    topics["t1"] = 2
    told = here.heartbeat("g", beat("m", joined.epoch))
    assert told.epoch == joined.epoch + 1
    assert told.assignment == frozenset({partition(1), partition(1, 1)})
    assert here.heartbeat("g", beat("m", told.epoch)).assignment is None
    assert here.heartbeat("g", beat("m", joined.epoch)).error is ErrorCode.none


def test_silent_members_are_removed() -> None:
    clock = Clock()
    here = coordinator(clock, {"t1": 1})
    here.heartbeat("g", beat("m", 0, "t1"))
    epoch = here.heartbeat("g", beat("n", 0, "t1")).epoch
    clock.ms = 99
    assert here.heartbeat("g", beat("n", epoch)).error is ErrorCode.none
    clock.ms = 100
    here.expire()
    group = here.find("g")
    assert group is not None
    assert set(group.members) == {"n"}
    clock.ms = 200
    here.expire()
    assert here.find("g") is None
    assert {row.group_id for row in here.list()} == {"stored"}


@pytest.mark.parametrize(
    ("group", "request_", "error"),
    [
        ("", beat("m", 0, "t1"), ErrorCode.invalid_request),
        ("g", beat("", 0, "t1"), ErrorCode.invalid_request),
        ("g", beat("m", -2, "t1"), ErrorCode.invalid_request),
        ("g", beat("m", 0), ErrorCode.invalid_request),
        ("g", beat("m", 0, "t1", "t2", "t3"), ErrorCode.invalid_request),
        ("g", beat("m" * 21, 0, "t1"), ErrorCode.invalid_request),
        ("g", beat("m", 3), ErrorCode.unknown_member_id),
        ("g", beat("m", -1), ErrorCode.unknown_member_id),
        ("far", beat("m", 0, "t1"), ErrorCode.not_coordinator),
        ("classic", beat("m", 0, "t1"), ErrorCode.group_id_not_found),
    ],
)
def test_refused_heartbeats(group: str, request_: ShareHeartbeat, error: ErrorCode) -> None:
    here = coordinator(Clock(), {"t1": 1})
    assert here.heartbeat(group, request_).error is error
    assert here.find(group) is None


def test_members_are_limited() -> None:
    here = coordinator(Clock(), {"t1": 1})
    for member in "abc":
        assert here.heartbeat("g", beat(member, 0, "t1")).error is ErrorCode.none
    assert here.heartbeat("g", beat("d", 0, "t1")).error is ErrorCode.group_max_size_reached
    assert here.heartbeat("g", beat("a", 0, "t1")).error is ErrorCode.none
    assert here.heartbeat("h", beat("a", 0, "t1")).error is ErrorCode.none
    refused = here.heartbeat("i", beat("a", 0, "t1"))
    assert refused.error is ErrorCode.coordinator_not_available
    here.heartbeat("h", beat("a", -1))
    assert here.heartbeat("i", beat("a", 0, "t1")).error is ErrorCode.none


@dataclass
class Line:
    is_gone: bool = False


def test_a_session_counts_and_ends_with_the_connection_that_opened_it() -> None:
    sessions, line, key = (
        ShareSessions(sessions_max=1, partitions_max=3),
        Line(),
        SessionKey("g", "m"),
    )
    session = sessions.open(key, line)
    assert not isinstance(session, ErrorCode)
    session.add([partition(1), partition(2)])
    assert session.rotate() == [partition(1), partition(2)]
    assert session.rotate() == [partition(2), partition(1)]
    assert sessions.has_room(session, 1)
    assert not sessions.has_room(session, 2)
    assert sessions.step(key, 1) is session
    assert sessions.step(key, 1) is ErrorCode.invalid_share_session_epoch
    assert sessions.step(SessionKey("g", "n"), 2) is ErrorCode.share_session_not_found
    session.epoch = 2**31 - 1
    assert sessions.step(key, 2**31 - 1) is session
    assert session.epoch == 1
    other = sessions.open(SessionKey("g", "n"), line)
    assert other is ErrorCode.share_session_limit_reached
    assert sessions.gone() == []
    line.is_gone = True
    assert sessions.gone() == [key]
