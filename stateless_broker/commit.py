"""The commit path: reserve, write, publish, and acknowledge when visible.

Invariants (commit protocol, "Produce"): reservations of a chain are made one after another;
several PUTs may be in flight; publishing is in chain order; a batch is acknowledged only when this
broker's view shows it. A PUT is retried with the same bytes under the same key until the bucket
answers; a refusal is settled by comparing. Where a PUT does not come to an end, or somebody else
sealed the chain, the writer is given up: the bucket decides which of its segments count, and what
is void goes into a new writer's chain, as if it had just come. Whatever says that the sequencer's
state was lost stops writing for good (`Health`), and outcomes that are not known are left to their
requests' timeouts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.errors import SequencerError, WriterFencedError
from bucketlog.model import SegmentId, TopicId, TopicPartition, WallClock, WriterId
from metadata.facts import Fact, encode_fact
from metadata.sequencer.client import Sequencer
from metadata.sequencer.requests import (
    BatchStatus,
    ControlStatus,
    Reservation,
    WantedControl,
)
from stateless_broker.batch_outcomes import not_written, refused
from stateless_broker.health import Health
from stateless_broker.own_chain import OwnChain
from stateless_broker.produce_buffer import Outcome, PendingBatch, PendingFact, ProduceBuffer
from stateless_broker.sealing import Sealer
from stateless_broker.segment_assembly import Assembled, Flush, assemble
from stateless_broker.segment_writing import SegmentWriter, WriterLostError
from stateless_broker.supervisor import Supervisor
from stateless_broker.until_answered import UntilAnswered

logger = logging.getLogger(__name__)

ASK_AGAIN_MS = 20


@dataclass(frozen=True, slots=True)
class CommitSettings:
    flush_interval_ms: int
    flush_bytes: int
    puts_in_flight: int


class Committer:
    """One chain after another: `writer` begins, `register_writer` makes its successors."""

    def __init__(
        self,
        *,
        epoch: int,
        writer: WriterId,
        register_writer: Callable[[], Awaitable[WriterId]],
        topic_name: Callable[[TopicId], str | None],
        sequencer: Sequencer,
        segment_writer: SegmentWriter,
        sealer: Sealer,
        until_answered: UntilAnswered,
        health: Health,
        supervisor: Supervisor,
        settings: CommitSettings,
        now_ms: WallClock,
    ) -> None:
        self.buffer = ProduceBuffer()
        self._epoch = epoch
        self._register_writer = register_writer
        self._topic_name = topic_name
        self._sequencer = sequencer
        self._segment_writer = segment_writer
        self._sealer = sealer
        self._until_answered = until_answered
        self._health = health
        self._supervisor = supervisor
        self._settings = settings
        self._now_ms = now_ms
        self._chain = OwnChain(writer)
        self._chain_works = asyncio.Event()
        self._chain_works.set()
        self._slots = asyncio.Semaphore(settings.puts_in_flight)
        self._in_hand: Flush | None = None
        """Taken from the buffer, its reservation not known yet."""
        self._hand = asyncio.Lock()
        """Held from taking a flush until its segment has begun or its batches are back."""
        self._awaited: dict[SegmentId, Assembled] = {}
        self._full = asyncio.Event()
        self._idle = asyncio.Event()
        self._flushes = 0
        self._dropping = False
        health.on_stop(self._refuse_waiting)

    # What the handlers call ------------------------------------------------------------------

    def add(self, batch: PendingBatch) -> None:
        """Take a batch; its call is settled when its outcome is known."""
        if self._health.stopped is not None:
            batch.settle(not_written(self._health.stopped))
            return
        self.buffer.add(batch)
        if self.buffer.waiting_bytes >= self._settings.flush_bytes:
            self._full.set()

    def given_up(self) -> None:
        """A request has timed out: what of it was not taken yet is dropped, soon, in one pass for
        all that time out together."""
        if not self._dropping:
            self._dropping = True
            asyncio.get_running_loop().call_soon(self._drop_answered)

    def _drop_answered(self) -> None:
        self._dropping = False
        self.buffer.drop_answered()
        self._note_idle()

    async def commit_fact(
        self, fact: Fact, wanted: WantedControl, *, when_reserved: bool = False
    ) -> ControlStatus:
        """Bring a fact into the log; returns when it is visible here, or refused. Facts are
        reserved in the order of the calls; one that is cancelled may get into the log still.

        `when_reserved` returns as soon as the sequencer has accepted it: it goes on into the log,
        but is lost with the sequencer's state and this broker. Raises `SequencerError` where
        writing is stopped.
        """
        if self._health.stopped is not None:
            raise SequencerError(self._health.stopped)
        future: asyncio.Future[ControlStatus] = asyncio.get_running_loop().create_future()
        self.buffer.add_fact(PendingFact(encode_fact(fact), wanted, future, when_reserved))
        try:
            return await future
        except asyncio.CancelledError:
            self.given_up()
            raise

    def request_stamps(self, partitions: Iterable[TopicPartition]) -> None:
        """Have the next segment carry fresh high watermarks of `partitions`: readers of the bucket
        alone wait for them behind a void reservation."""
        wanted = set(partitions)
        if wanted and self._health.stopped is None:
            self.buffer.add_stamps(wanted)

    @property
    def writer(self) -> WriterId:
        return self._chain.writer

    def awaited(self) -> list[SegmentId]:
        """This broker's segments that are not visible yet, as far as it knows."""
        return list(self._awaited)

    def shown(self, segment: SegmentId) -> Assembled | None:
        """The segment's own assembly, where this broker wrote it and waits for it."""
        return self._awaited.get(segment)

    def became_visible(self, segment: SegmentId) -> None:
        """The view shows the segment: acknowledge."""
        assembled = self._awaited.pop(segment, None)
        if assembled is None:
            return
        for batch, base_offset in assembled.batches:
            batch.settle(Outcome(ErrorCode.none, base_offset))
        for fact in assembled.facts:
            fact.settle(ControlStatus.OK)
        self._note_idle()

    def _note_idle(self) -> None:
        if self._is_idle:
            self._idle.set()

    @property
    def _is_idle(self) -> bool:
        return not self._awaited and not self.buffer and self._in_hand is None

    async def drained(self) -> None:
        """Until everything taken so far is settled."""
        while not self._is_idle:
            self._idle.clear()
            await self._idle.wait()

    # The loop --------------------------------------------------------------------------------

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        last_flush = float("-inf")
        while self._health.stopped is None:
            await self.buffer.wait()
            await self._slots.acquire()
            await self._chain_works.wait()
            await self._pace(last_flush)
            last_flush = loop.time()
            async with self._hand:
                flush = Flush.of(self.buffer.take(self._settings.flush_bytes), self._topic_name)
                begun = await self._flush(self._chain, flush)
            if not begun:
                self._slots.release()
                self._note_idle()

    async def _pace(self, last_flush: float) -> None:
        """At most one flush an interval, unless a full one waits; none after an idle interval."""
        pause_s = last_flush + self._settings.flush_interval_ms / 1000
        pause_s -= asyncio.get_running_loop().time()
        if pause_s <= 0 or self.buffer.waiting_bytes >= self._settings.flush_bytes:
            return
        self._full.clear()
        try:
            await asyncio.wait_for(self._full.wait(), pause_s)
        except TimeoutError:
            pass

    async def _flush(self, chain: OwnChain, flush: Flush) -> bool:
        """Reserve, then let the rest run by itself. True if a PUT slot is in use."""
        if not flush.groups and not flush.facts:
            return False
        segment = chain.next_segment()
        self._in_hand = flush
        try:
            reservation = await self._reserve(flush, segment)
        except WriterFencedError as error:
            self._lose(chain, str(error))
            self._take_back(flush)
            return False
        except SequencerError as error:
            self._health.stop_writing(str(error))
            return False
        if self._health.stopped is not None:  # meanwhile: what was in hand is refused already
            return False
        if chain.lost is not None:  # what was reserved is void, or will be before the next chain
            self._take_back(flush)
            return False
        put_back = self._settle_refused(flush, reservation)
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
                fact.settle(ControlStatus.OK)
        task = self._supervisor.spawn(
            self._write_and_publish(chain, assembled, before, published),
            f"segment {segment.seq}",
            on_failure=lambda error: self._health.stop_writing(f"the commit path failed: {error}"),
        )
        chain.tasks.add(task)
        task.add_done_callback(chain.tasks.discard)
        return True

    def _take_back(self, flush: Flush) -> None:
        batches = [batch for _, group in flush.groups for batch in group]
        self.buffer.put_back(batches, flush.facts)
        self.buffer.add_stamps(partition for partition, group in flush.groups if not group)
        self._in_hand = None

    async def _reserve(self, flush: Flush, segment: SegmentId) -> Reservation:
        """A lost answer is asked for again, with the same request id: never guessed."""
        wanted = flush.wanted()
        control = [fact.wanted for fact in flush.facts]
        self._flushes += 1
        request_id = str(self._flushes)
        return await self._until_answered(
            lambda: self._sequencer.reserve(
                self._epoch, segment, request_id, partitions=wanted, control=control
            ),
            "redis",
        )

    def _settle_refused(self, flush: Flush, reservation: Reservation) -> bool:
        """Answer what was not accepted; put back what must be asked again. True if any."""
        again: list[PendingBatch] = []
        for (_, batches), answers in zip(flush.groups, reservation.batches, strict=True):
            for batch, answer in zip(batches, answers, strict=True):
                if answer.status in (BatchStatus.WAIT, BatchStatus.OPEN):
                    again.append(batch)
                elif answer.status is not BatchStatus.OK:
                    batch.settle(refused(answer))
        facts_again: list[PendingFact] = []
        for fact, status in zip(flush.facts, reservation.control, strict=True):
            if status is ControlStatus.WAIT:
                facts_again.append(fact)
            elif status is not ControlStatus.OK:
                fact.settle(status)
        self.buffer.put_back(again, facts_again)
        return bool(again or facts_again)

    async def _write_and_publish(
        self,
        chain: OwnChain,
        assembled: Assembled,
        before: asyncio.Future[None] | None,
        published: asyncio.Future[None],
    ) -> None:
        try:
            await self._segment_writer.write(assembled)
            if before is not None:
                await asyncio.wait([before])
            if chain.lost is None and self._health.stopped is None:
                await self._segment_writer.publish(assembled)
                chain.first_unpublished = assembled.index.segment.seq + 1
        except WriterLostError as error:
            self._lose(chain, str(error))
        except SequencerError as error:
            self._health.stop_writing(str(error))
        finally:
            published.set_result(None)
            self._slots.release()

    # Giving a writer up ----------------------------------------------------------------------

    def _lose(self, chain: OwnChain, reason: str) -> None:
        if chain.lost is not None or self._health.stopped is not None:
            return
        chain.lost = reason
        self._chain_works.clear()
        logger.warning("writer %s is given up: %s", chain.writer, reason)
        self._supervisor.spawn(
            self._succeed(chain),
            f"the end of writer {chain.writer}",
            on_failure=lambda error: self._health.stop_writing(
                f"writer {chain.writer} could not be given up: {error}"
            ),
        )

    async def _succeed(self, chain: OwnChain) -> None:
        """Have the chain decided, take back what is void, go on with a new writer."""
        closed = await self._sealer.close(SegmentId(chain.writer, chain.first_unpublished))
        await chain.abandon()
        void = [
            segment
            for segment in self._awaited
            if segment.writer == chain.writer and segment.seq >= closed.fenced_seq
        ]
        assembled = [self._awaited.pop(segment) for segment in sorted(void)]
        async with self._hand:  # what was being reserved came later, and must not get before these
            self.buffer.put_back(
                [batch.copy() for one in assembled for batch, _ in one.batches],
                [fact for one in assembled for fact in one.facts],
            )
        writer = await self._until_answered(self._register_writer, "bucket")
        self._chain = OwnChain(writer)
        self.request_stamps(closed.stamps_wanted)
        self._chain_works.set()
        logger.info("writer %s follows; %d segments were void", writer, len(void))

    def _refuse_waiting(self) -> None:
        """Writing has stopped. What waits or is in hand will never be written; what is further may
        be in the log or not: the next epoch decides, and a client that tries again finds out."""
        reason = self._health.stopped or ""
        facts = self.buffer.drain(lambda batch: batch.settle(not_written(reason)))
        flush, self._in_hand = self._in_hand, None
        if flush is not None:
            facts += flush.facts
            for _, batches in flush.groups:
                for batch in batches:
                    batch.settle(not_written(reason))
        for assembled in self._awaited.values():
            for batch, _ in assembled.batches:
                batch.settle(Outcome(ErrorCode.request_timed_out, -1, reason))
            facts += assembled.facts
        self._awaited.clear()
        for fact in facts:
            fact.fail(SequencerError(reason))
        self._note_idle()
