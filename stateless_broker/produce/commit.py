"""The commit path: reserve, write, publish, and acknowledge when visible.

Invariants (commit protocol, "Produce"): reservations of a chain are made one after another;
several PUTs may be in flight; publishing is in chain order; a batch is acknowledged only when this
broker's view shows it. If a PUT does not finish in time, or another broker sealed the chain, the
writer is given up. The bucket decides which of its segments count. The content of void segments
goes into a new writer's chain, like new input. If the sequencer's state is lost, the epoch ends
(`EpochEnd`): nothing is settled here any more, and work with an unknown outcome is handed over
(`UnsettledWork`). `commit_steps` runs and repeats the single steps.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from bucketlog.log_format.errors import (
    BucketlogError,
    CorruptObjectError,
    SequencerError,
    WriterFencedError,
)
from bucketlog.log_format.model import SegmentId, TopicId, TopicIdPartition, WallClock, WriterId
from bucketlog.metadata.facts import GroupFact
from bucketlog.metadata.sequencer.requests import (
    BatchStatus,
    FactStatus,
    Reservation,
    WantedGroupEntry,
)
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.epochs.sealing import Sealer
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.stateless_broker.produce.commit_steps import (
    AssembledSegment,
    CommitSteps,
    Flush,
    WriterLostError,
    assemble,
)
from bucketlog.stateless_broker.produce.intake import (
    Intake,
    PendingBatch,
)
from bucketlog.stateless_broker.produce.pending_facts import PendingFact, settle_refused
from bucketlog.stateless_broker.produce.refusals import refused
from bucketlog.stateless_broker.produce.unsettled import UnsettledWork
from bucketlog.stateless_broker.supervision import Supervision

logger = logging.getLogger(__name__)

ASK_AGAIN_MS = 20


@dataclass(frozen=True, slots=True)
class CommitSettings:
    flush_interval_ms: int
    flush_bytes: int
    flush_batches_max: int
    flush_stamps_max: int
    puts_in_flight: int


@dataclass(frozen=True, slots=True)
class Writers:
    """The writers of one broker in one epoch: the `first`, and `register` for each that follows.
    `is_newest` returns whether no later epoch is claimed; `sealer` closes the chain of a
    writer that is given up."""

    first: WriterId
    register: Callable[[], Awaitable[WriterId]]
    is_newest: Callable[[], Awaitable[bool]]
    sealer: Sealer


@dataclass(slots=True)
class OwnChain:
    """The chain that this broker writes now: one writer, its segments in flight, and why it ended.
    A lost chain stays lost. Its successor begins only when the bucket has decided which segments of
    the lost chain count."""

    writer: WriterId
    next_seq: int = 0
    first_unpublished: int = 0
    published: asyncio.Future[None] | None = None
    """The future of the latest segment; set when the segment needs no more work."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    lost: str | None = None
    """Why the writer cannot continue: sealed by another broker, or given up here."""

    def next_segment(self) -> SegmentId:
        return SegmentId(self.writer, self.next_seq)

    def begin(self) -> tuple[asyncio.Future[None] | None, asyncio.Future[None]]:
        """Count a reserved segment. Returns the previous segment's future, and its own."""
        before = self.published
        self.published = asyncio.get_running_loop().create_future()
        self.next_seq += 1
        return before, self.published

    async def abandon(self) -> None:
        """Cancel all tasks in flight."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class Committer:
    """Writes one chain after another, all of them in the epoch that ends with `end`."""

    def __init__(
        self,
        *,
        end: EpochEnd,
        intake: Intake,
        writers: Writers,
        steps: CommitSteps,
        topic_name: Callable[[TopicId], str | None],
        supervision: Supervision,
        settings: CommitSettings,
        now_ms: WallClock,
    ) -> None:
        self.buffer = intake.buffer
        self._end = end
        self._intake = intake
        self._register_writer = writers.register
        self._is_newest = writers.is_newest
        self._topic_name = topic_name
        self._sealer = writers.sealer
        self._steps = steps
        self._supervision = supervision
        self._health = supervision.health
        self._settings = settings
        self._now_ms = now_ms
        self._durations = intake.durations
        self._now_s = intake.now_s
        self._chain = OwnChain(writers.first)
        self._chain_works = asyncio.Event()
        self._chain_works.set()
        self._slots = asyncio.Semaphore(settings.puts_in_flight)
        self._in_hand: Flush | None = None
        """Taken from the buffer, its reservation not known yet."""
        self._hand = asyncio.Lock()
        """Held from taking a flush until its segment has begun or its batches are back."""
        self._awaited: dict[SegmentId, AssembledSegment] = {}
        self._note_published: Callable[[AssembledSegment, int], None] = lambda segment, number: None
        self._idle = asyncio.Event()
        intake.on_drop(self._note_idle)

    def on_publish(self, note: Callable[[AssembledSegment, int], None]) -> None:
        """`note` gets each segment whose publication made it visible, and its number in the
        stream."""
        self._note_published = note

    async def commit_fact(
        self, fact: GroupFact, wanted: WantedGroupEntry, *, when_reserved: bool = False
    ) -> FactStatus:
        """Commit the fact as `Intake.commit_fact` does, in this epoch or not at all."""
        self._end.check()
        return await self._intake.commit_fact(fact, wanted, when_reserved=when_reserved)

    def stamps_in_flight(self) -> dict[TopicIdPartition, int]:
        """The highest hw stamp of each partition in segments that are not visible yet."""
        stamps: dict[TopicIdPartition, int] = {}
        for assembled in self._awaited.values():
            for part in assembled.index.partitions:
                stamps[part.partition] = max(stamps.get(part.partition, 0), part.hw_stamp)
        return stamps

    @property
    def writer(self) -> WriterId:
        return self._chain.writer

    def awaited(self) -> list[SegmentId]:
        """Segments of this broker that are not visible yet, as far as this broker knows."""
        return list(self._awaited)

    def shown(self, segment: SegmentId) -> AssembledSegment | None:
        """Return the segment's own assembly, if this broker wrote the segment and waits for it."""
        return self._awaited.get(segment)

    def became_visible(self, segment: SegmentId) -> None:
        """The view shows the segment: acknowledge."""
        assembled = self._awaited.pop(segment, None)
        if assembled is None:
            return
        assembled.acknowledge()
        self._note_idle()

    def unsettled(self) -> UnsettledWork:
        """Return the unanswered work that has left the buffer."""
        return UnsettledWork(list(self._awaited.values()), self._in_hand)

    def give_up(self) -> UnsettledWork:
        """Give up what is not answered yet, because the epoch is over. The next epoch settles
        it."""
        held = self.unsettled()
        self._awaited.clear()
        self._in_hand = None
        return held

    def _note_idle(self) -> None:
        if self.is_idle:
            self._idle.set()

    @property
    def is_idle(self) -> bool:
        return not self._awaited and not self.buffer and self._in_hand is None

    async def drained(self) -> None:
        """Wait until everything taken so far is settled."""
        while not self.is_idle:
            self._idle.clear()
            await self._idle.wait()

    # The loop --------------------------------------------------------------------------------

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        last_flush = float("-inf")
        while self._end.reason is None:
            await self.buffer.wait()
            await self._slots.acquire()
            await self._chain_works.wait()
            await self._pace(last_flush)
            last_flush = loop.time()
            async with self._hand:
                settings = self._settings
                taken = self.buffer.take(
                    settings.flush_bytes, settings.flush_batches_max, settings.flush_stamps_max
                )
                if taken.batches:
                    self._durations.waiting.add(self._now_s() - taken.batches[0].arrived_s)
                flush = Flush.of(taken, self._topic_name)
                begun = await self._flush(self._chain, flush)
            if not begun:
                self._slots.release()
                self._note_idle()

    async def _pace(self, last_flush: float) -> None:
        """Wait so that there is at most one flush an interval, unless a full one waits. After an
        idle interval, there is no wait."""
        pause_s = last_flush + self._settings.flush_interval_ms / 1000
        pause_s -= asyncio.get_running_loop().time()
        if pause_s <= 0 or self._intake.is_full:
            return
        self._intake.full.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._intake.full.wait()

    async def _flush(self, chain: OwnChain, flush: Flush) -> bool:
        """Reserve, then let the rest run by itself. True if a PUT slot is in use."""
        if not flush.groups and not flush.facts:
            return False
        segment = chain.next_segment()
        self._in_hand = flush
        asked_at = self._now_s()
        try:
            reservation = await self._steps.reserve(flush, segment)
            self._durations.reserve.add(self._now_s() - asked_at)
            is_newest = not reservation.holds_against_producers or await self._is_newest()
        except WriterFencedError as error:
            self._lose(chain, str(error))
            self._take_back(flush)
            return False
        except SequencerError as error:
            self._end.end(str(error))
            return False
        if self._end.reason is not None:  # meanwhile: what was in hand is handed over
            return False
        if chain.lost is not None:  # what was reserved is void, or will be before the next chain
            self._take_back(flush)
            return False
        put_back = self._settle_refused(flush, reservation, is_newest=is_newest)
        if reservation.ticket is None:
            self._in_hand = None
        if put_back and reservation.ticket is None:
            await asyncio.sleep(ASK_AGAIN_MS / 1000)
        if reservation.ticket is None:
            return False
        before, published = chain.begin()
        assembled = assemble(flush, reservation, segment, created_ms=self._now_ms())
        self._awaited[segment], self._in_hand = assembled, None
        for fact in assembled.facts:
            if fact.when_reserved:
                fact.settle(FactStatus.OK)
        task = self._supervision.spawn(
            self._write_and_publish(chain, assembled, before, published),
            f"segment {segment.seq}",
        )
        chain.tasks.add(task)
        task.add_done_callback(chain.tasks.discard)
        return True

    def _take_back(self, flush: Flush) -> None:
        batches = [batch for _, group in flush.groups for batch in group]
        self.buffer.put_back(batches, flush.facts)
        self._in_hand = None

    def _settle_refused(self, flush: Flush, reservation: Reservation, *, is_newest: bool) -> bool:
        """Answer what was not accepted, and put back what must be requested again. Returns whether
        anything was put back."""
        again: list[PendingBatch] = []
        for (_, batches), answers in zip(flush.groups, reservation.batches, strict=True):
            for batch, answer in zip(batches, answers, strict=True):
                if answer.status in (BatchStatus.WAIT, BatchStatus.OPEN):
                    again.append(batch)
                elif answer.status is not BatchStatus.OK:
                    earlier = self._intake.refused
                    batch.settle(refused(batch, answer, earlier, is_newest=is_newest))
        facts_again: list[PendingFact] = []
        if flush.facts:
            facts_again = settle_refused(flush.facts, reservation, is_newest=is_newest)
        self.buffer.put_back(again, facts_again)
        return bool(again or facts_again)

    async def _write_and_publish(
        self,
        chain: OwnChain,
        assembled: AssembledSegment,
        before: asyncio.Future[None] | None,
        published: asyncio.Future[None],
    ) -> None:
        begun_at = self._now_s()
        try:
            await self._steps.write(assembled)
            written_at = self._now_s()
            self._durations.put.add(written_at - begun_at)
            if before is not None and not before.done():
                await asyncio.wait([before])
            if chain.lost is None and self._end.reason is None:
                number = await self._steps.publish(assembled)
                self._durations.publish.add(self._now_s() - written_at)
                chain.first_unpublished = assembled.index.segment.seq + 1
                self._note_published(assembled, number)
        except WriterLostError as error:
            self._lose(chain, str(error))
        except (SequencerError, CorruptObjectError) as error:
            self._end.end(str(error))
        finally:
            published.set_result(None)
            self._slots.release()

    # Giving a writer up ----------------------------------------------------------------------

    def _lose(self, chain: OwnChain, reason: str) -> None:
        if chain.lost is not None or self._end.reason is not None:
            return
        chain.lost = reason
        self._chain_works.clear()
        self._health.degrade(BrokerPart.WRITER, f"writer {chain.writer} is given up: {reason}")
        self._supervision.spawn(
            self._replace_chain(chain),
            f"the end of writer {chain.writer}",
        )

    async def _replace_chain(self, chain: OwnChain) -> None:
        try:
            await self._succeed(chain)
        except BucketlogError as error:  # another epoch is claimed, or the chain is not as it was
            self._end.end(f"writer {chain.writer} could not be given up: {error}")

    async def _succeed(self, chain: OwnChain) -> None:
        """Have the chain decided, take back what is void, and continue with a new writer."""
        fenced_seq = await self._sealer.close(SegmentId(chain.writer, chain.first_unpublished))
        await chain.abandon()
        async with self._hand:  # what was being reserved came later, and must not get before these
            void = self._take_void(chain.writer, fenced_seq)
            self.buffer.put_back(
                [batch.copy() for one in void for batch, _ in one.batches],
                [fact for one in void for fact in one.facts],
            )
        writer = await self._steps.until_answered(self._register_writer, BrokerPart.BUCKET)
        self._chain = OwnChain(writer)
        self._chain_works.set()
        self._health.recover(BrokerPart.WRITER)
        logger.info("writer %s follows; %d segments were void", writer, len(void))

    def _take_void(self, writer: WriterId, fenced_seq: int) -> list[AssembledSegment]:
        """The writer's segments from `fenced_seq` on; from the moment they are taken on, they are
        the buffer's."""
        void = [
            segment
            for segment in self._awaited
            if segment.writer == writer and segment.seq >= fenced_seq
        ]
        return [self._awaited.pop(segment) for segment in sorted(void)]
