"""Which fetch sessions are kept: Kafka's rules for one owner, and fair shares for several."""

from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

import pytest

from bucketlog.log_format.wire.fetch import FetchedPartition
from bucketlog.metadata.facts import TopicCreated
from bucketlog.metadata.topic_checks import NAME_LENGTH_MAX
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.fetch.fetch_session import FetchSession
from bucketlog.stateless_broker.fetch.session_cache import (
    EVICTION_MS,
    FetchSessions,
    SessionLimits,
    use_of,
)
from bucketlog.stateless_broker.fetch.watching import Watchers
from tests.models.indexes import segment
from tests.rigs.traced_memory import TracedMemory

PARTITIONS = 1_000
ROOMY = use_of(1_000_000).bytes


@dataclass
class Line:
    """A connection."""

    is_gone: bool = False


@dataclass
class Cache:
    """A cache whose clock a test sets."""

    slots: int = 3
    bytes_max: int = ROOMY
    partitions_max: int = 1_000
    now_ms: int = 0
    line: Line = field(default_factory=Line)

    def __post_init__(self) -> None:
        self.sessions = FetchSessions(
            view=View(),
            watchers=Watchers(),
            limits=SessionLimits(self.slots, self.bytes_max, self.partitions_max),
            random=Random(7),
            now_ms=lambda: self.now_ms,
        )

    def open(self, partitions: int, owner: str = "a", line: Line | None = None) -> Any:
        return self.sessions.open(partitions, owner, line or self.line, uses_topic_ids=False)

    def has(self, session: FetchSession) -> bool:
        return self.sessions.find(session.id, session.owner) is session


def name_of(number: int, filler: str) -> str:
    return f"t{number}".ljust(NAME_LENGTH_MAX, filler) if filler else f"t{number}"


def test_a_session_is_of_its_owner_alone() -> None:
    cache = Cache()
    session = cache.open(1, "a")
    assert cache.sessions.find(session.id, "b") is None
    cache.sessions.close(session.id, "b")
    assert cache.has(session)
    cache.sessions.close(session.id, "a")
    assert not cache.has(session)
    assert session.is_closed
    assert (len(cache.sessions), cache.sessions.bytes) == (0, 0)


def test_without_slots_there_are_no_sessions() -> None:
    assert Cache(slots=0).open(1) is None


def test_a_session_has_a_limit_of_partitions() -> None:
    cache = Cache(partitions_max=2)
    assert cache.open(3) is None
    session = cache.open(2)
    assert cache.sessions.use(session, cache.line, 2)
    assert not cache.sessions.use(session, cache.line, 3)
    assert not cache.has(session)


def test_a_new_session_does_not_evict_young_ones_of_its_owner() -> None:
    cache = Cache()
    kept = [cache.open(1) for _ in range(3)]
    cache.now_ms = EVICTION_MS
    for session in kept:
        cache.sessions.use(session, cache.line, 1)
    assert cache.open(10) is None
    assert all(map(cache.has, kept))


def test_an_old_smaller_session_gives_way_to_a_larger_one() -> None:
    cache = Cache()
    large, small, other = cache.open(5), cache.open(2), cache.open(3)
    cache.now_ms = EVICTION_MS + 1
    for session, partitions in ((large, 5), (small, 2), (other, 3)):
        cache.sessions.use(session, cache.line, partitions)
    assert cache.open(2) is None, "not larger than the smallest"
    assert cache.open(3) is not None
    assert [cache.has(each) for each in (large, small, other)] == [True, False, True]
    assert cache.sessions.evictions == 1


def test_a_session_that_nobody_uses_gives_way_first() -> None:
    cache = Cache()
    unused, used, large = cache.open(9), cache.open(1), cache.open(9)
    cache.now_ms = EVICTION_MS + 1
    for session, partitions in ((used, 1), (large, 9)):
        cache.sessions.use(session, cache.line, partitions)
    assert cache.open(1) is not None
    assert [cache.has(each) for each in (unused, used, large)] == [False, True, True]


def test_a_session_of_a_lost_connection_gives_way_first() -> None:
    cache = Cache()
    lost = Line()
    kept, gone = cache.open(1), cache.open(9, line=lost)
    cache.open(1)
    lost.is_gone = True
    assert cache.open(1) is not None
    assert (cache.has(kept), cache.has(gone)) == (True, False)


def test_the_owner_of_most_sessions_gives_way_to_others() -> None:
    cache = Cache(slots=4)
    many = [cache.open(100, "many") for _ in range(4)]
    first, second = cache.open(1, "few"), cache.open(1, "few")
    assert [cache.has(each) for each in many] == [False, False, True, True]
    assert cache.open(1, "few") is None, "would become the largest"
    assert cache.open(100, "many") is None, "is as large as the other"
    assert cache.open(1, "new") is not None
    assert cache.has(first) + cache.has(second) + sum(map(cache.has, many)) == 3


def test_the_owner_of_most_memory_gives_way_to_others() -> None:
    cache = Cache(slots=100, bytes_max=3 * use_of(100).bytes)
    many = [cache.open(100, "many") for _ in range(3)]
    few = cache.open(50, "few")
    assert few is not None
    assert [cache.has(each) for each in many] == [False, True, True]
    assert cache.sessions.bytes <= cache.bytes_max
    assert cache.sessions.use(few, cache.line, 90), "a session may grow"
    assert not cache.sessions.use(few, cache.line, 300)
    assert [cache.has(each) for each in (few, many[1], many[2])] == [False, True, True]


def test_a_closed_session_watches_nothing() -> None:
    cache = Cache()
    session = cache.open(2)
    for number in range(2):
        session.put(FetchedPartition("unknown", None, number, -1, 0, 1))
    assert len(session) == 2
    session.forget(("unknown", None), 1)
    session.forget(("other", None), 1)
    assert (len(session), session.topic_count) == (1, 1)
    session.forget(("unknown", None), 0)
    assert (len(session), session.topic_count) == (0, 0)


@pytest.mark.parametrize(
    ("topics", "filler"),
    [(1, ""), (PARTITIONS, ""), (PARTITIONS, "x"), (PARTITIONS, "\N{GRINNING FACE}")],
)
def test_the_memory_of_a_session_is_not_underestimated(
    topics: int, filler: str, traced_memory: TracedMemory
) -> None:
    """`topics`: in how many topics the partitions are. `filler` makes their names as long as a
    session may keep; no topics have such names as the last one."""
    view = View()
    per_topic = PARTITIONS // topics
    if filler.isascii():
        for number in range(topics):
            name = name_of(number, filler)
            fact = TopicCreated(topic_id=UUID(int=number), name=name, partitions=per_topic)
            view.apply(segment(number, {}, fact))
    sessions = FetchSessions(
        view=view,
        watchers=Watchers(),
        limits=SessionLimits(1, ROOMY, PARTITIONS),
        random=Random(7),
        now_ms=lambda: 0,
    )
    with traced_memory.measured() as found:
        session = sessions.open(PARTITIONS, "a", Line(), uses_topic_ids=False)
        assert session is not None
        for number in range(PARTITIONS):
            topic, partition = divmod(number, per_topic)
            name = name_of(topic, filler)
            session.put(FetchedPartition(name, None, partition, -1, 10**6 + number, 1 << 20))
    used = found.held
    assert sessions.bytes / 3 < used < sessions.bytes, f"{used / PARTITIONS:.0f} bytes each"
