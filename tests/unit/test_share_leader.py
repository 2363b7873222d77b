"""Leaders of share-partitions on one log: whoever's fact comes first leads, whatever the other one
believes."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.leader import HeldPartition, ShareKey, ShareLeader
from bucketlog.consumers.share.settings import ShareRules
from bucketlog.consumers.share.window import Acknowledgement, AcquiredRange, AcquireLimits, Extent
from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.sequencer.requests import FactStatus, WantedShareEntry
from bucketlog.metadata.share_facts import ShareFact, ShareOffsetsSet, ShareStartRow
from tests.models.indexes import create, partition, segment
from tests.rigs.patience import Deadline

KEY = ShareKey("g", partition(1))
RULES = ShareRules(None, False, 100, 3, 10, True)
WANTED = AcquireLimits(100, 100, False)


@dataclass
class Log:
    """One log that all brokers see at once. `holding` keeps facts back until `flush`."""

    state: LogState = field(default_factory=LogState)
    tickets: int = 0
    holding: bool = False
    held: list[tuple[ShareFact, asyncio.Event]] = field(default_factory=list)
    broken: bool = False
    facts: list[ShareFact] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.apply(create(1, 2))

    def apply(self, fact: Any) -> None:
        self.state.apply(segment(self.tickets, {}, fact))
        self.tickets += 1

    async def commit_fact(self, fact: ShareFact, wanted: WantedShareEntry) -> FactStatus:
        if self.broken:
            raise SequencerError("writing is stopped")
        if self.holding:
            done = asyncio.Event()
            self.held.append((fact, done))
            await done.wait()
        else:
            self.write(fact)
        return FactStatus.OK

    def write(self, fact: ShareFact) -> None:
        self.facts.append(fact)
        self.apply(fact)

    async def holds(self, count: int) -> None:
        """Wait until this number of facts is kept back."""
        deadline = Deadline(f"{count} facts")
        while len(self.held) < count:
            await deadline.pause_async(0)

    def flush(self) -> None:
        for fact, done in self.held:
            self.write(fact)
            done.set()
        self.held.clear()


class Broker:
    def __init__(self, log: Log, name: str) -> None:
        self.now_ms = 0
        self.owns = True
        self.tasks: set[asyncio.Task[None]] = set()
        self.leader = ShareLeader(
            incarnation=name,
            shares=lambda: log.state.share_groups,
            log=log,
            owns=lambda _: self.owns,
            start_of=self._start_of,
            rules=lambda _: RULES,
            catch_up=self._catch_up,
            partitions_max=2,
            write_timeout_ms=60_000,
            now_ms=lambda: self.now_ms,
            spawn=self._spawn,
        )

    async def _start_of(self, _: TopicIdPartition, rules: ShareRules) -> int:
        return 5

    async def _catch_up(self) -> bool:
        return True

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def hold(self, key: ShareKey = KEY) -> HeldPartition:
        held = await self.leader.hold(key)
        assert isinstance(held, HeldPartition)
        return held

    async def acquire(self, member: str, last: int = 9) -> list[AcquiredRange]:
        held = await self.hold()
        at = held.window.next_offset
        read = [Extent(5, last, True)]
        return self.leader.acquire(held, member, read, WANTED, read_from=at)

    async def accept(self, member: str, first: int, last: int) -> ErrorCode:
        return await self.leader.acknowledge(KEY, member, [Acknowledgement(first, last, [1])])


async def test_the_state_outlives_its_leader() -> None:
    log = Log()
    first, second = Broker(log, "a"), Broker(log, "b")
    assert await first.acquire("m") == [(5, 9, 1)]
    assert await first.accept("m", 5, 6) is ErrorCode.none
    assert await first.leader.acknowledge(KEY, "m", [Acknowledgement(7, 7, [2])]) is ErrorCode.none
    state = log.state.share_groups.by_group["g"][partition(1)]
    assert (state.leader, state.leader_epoch, state.start_offset) == ("a", 1, 7)
    assert await second.acquire("n") == [(7, 7, 2), (8, 9, 1)]


async def test_a_leader_that_was_replaced_cannot_acknowledge() -> None:
    log = Log()
    first, second = Broker(log, "a"), Broker(log, "b")
    assert await first.acquire("m") == [(5, 9, 1)]
    assert await second.acquire("n") == [(5, 9, 1)]  # twice, which at-least-once allows
    assert await second.accept("n", 5, 9) is ErrorCode.none
    first.owns = False
    assert await first.accept("m", 5, 9) is ErrorCode.not_leader_or_follower
    assert log.state.share_groups.by_group["g"][partition(1)].leader == "b"


async def test_what_is_written_behind_a_new_leader_does_not_count() -> None:
    log = Log()
    first, second = Broker(log, "a"), Broker(log, "b")
    assert await first.acquire("m") == [(5, 9, 1)]
    log.holding = True
    late = asyncio.ensure_future(first.accept("m", 5, 9))
    await log.holds(1)
    (fact, done), log.held, log.holding = log.held[0], [], False
    assert await second.acquire("n") == [(5, 9, 1)]
    log.write(fact)
    done.set()
    assert await late is ErrorCode.not_leader_or_follower
    state = log.state.share_groups.by_group["g"][partition(1)]
    assert (state.leader, state.start_offset, state.batches) == ("b", 5, ())


async def test_of_two_claims_the_first_counts() -> None:
    log = Log(holding=True)
    brokers = Broker(log, "a"), Broker(log, "b")
    claims = [asyncio.ensure_future(each.leader.hold(KEY)) for each in brokers]
    await log.holds(2)
    log.flush()
    first, second = await asyncio.gather(*claims)
    assert isinstance(first, HeldPartition)
    assert second is ErrorCode.not_leader_or_follower


async def test_a_start_that_an_administrator_sets_ends_the_window() -> None:
    log = Log()
    broker = Broker(log, "a")
    assert await broker.acquire("m") == [(5, 9, 1)]
    row = ShareStartRow(UUID(int=1), 0, 8)
    log.write(ShareOffsetsSet(group="g", rows=(row,)))
    assert await broker.accept("m", 5, 9) is ErrorCode.invalid_request
    assert await broker.acquire("m") == [(8, 9, 1)]


async def test_a_write_whose_outcome_is_unknown_ends_the_window() -> None:
    log = Log()
    broker = Broker(log, "a")
    assert await broker.acquire("m") == [(5, 9, 1)]
    log.broken = True
    assert await broker.accept("m", 5, 9) is ErrorCode.not_leader_or_follower
    log.broken = False
    assert await broker.acquire("n") == [(5, 9, 1)]


async def test_locks_end_in_time_and_the_delivery_is_written() -> None:
    log = Log()
    broker = Broker(log, "a")
    assert await broker.acquire("m") == [(5, 9, 1)]
    broker.now_ms = RULES.lock_ms - 1
    broker.leader.expire()
    assert not broker.tasks
    broker.now_ms += 1
    broker.leader.expire()
    await asyncio.gather(*broker.tasks)
    await asyncio.gather(*broker.tasks)
    (batch,) = log.state.share_groups.by_group["g"][partition(1)].batches
    assert batch == (5, 9, 0, 1)
    assert await broker.acquire("n") == [(5, 9, 2)]


async def test_the_number_of_share_partitions_is_limited() -> None:
    log = Log()
    broker = Broker(log, "a")
    await broker.hold()
    await broker.hold(ShareKey("h", partition(1)))
    third = await broker.leader.hold(ShareKey("i", partition(1)))
    assert third is ErrorCode.unknown_server_error
