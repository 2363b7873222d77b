"""The commit path: reserve, write, publish, and acknowledge when visible.

Invariants (commit protocol, "Produce"): reservations of a chain are made one after another;
several PUTs may be in flight; publishing is in chain order; a batch is acknowledged only when this
broker's view shows it. A PUT is retried with the same bytes under the same key until the bucket
answers; a refusal is settled by comparing. Whatever says that state was lost stops writing for
good (`Health`), and outcomes that are not known are left to their requests' timeouts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from kio.schema.errors import ErrorCode

from bucketlog.errors import BucketError, SequencerError, SequencerUnavailableError
from bucketlog.model import SegmentId, WallClock, WriterId
from metadata.facts import Fact
from metadata.sequencer.client import Sequencer
from metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    ControlStatus,
    PublishStatus,
    Reservation,
    WantedControl,
)
from stateless_broker.health import Health
from stateless_broker.produce_buffer import Outcome, PendingBatch, PendingFact, ProduceBuffer
from stateless_broker.segment_assembly import Assembled, Flush, assemble
from stateless_broker.supervisor import Supervisor
from tiered_storage import keys
from tiered_storage.bucket import Bucket

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE_MS = 20
ASK_AGAIN_MS = 20

REFUSALS: dict[BatchStatus, tuple[ErrorCode, str]] = {
    BatchStatus.OUT_OF_ORDER: (
        ErrorCode.out_of_order_sequence_number,
        "the batch's first sequence does not follow the producer's last one",
    ),
    BatchStatus.UNKNOWN_PRODUCER: (
        ErrorCode.unknown_producer_id,
        "nothing is known of this producer here: begin again with sequence 0",
    ),
    BatchStatus.FENCED: (
        ErrorCode.invalid_producer_epoch,
        "a newer epoch of this producer has written",
    ),
    BatchStatus.UNKNOWN_TOPIC: (
        ErrorCode.unknown_topic_or_partition,
        "the topic or partition does not exist any more",
    ),
    BatchStatus.OFFSET_LIMIT: (
        ErrorCode.policy_violation,
        "the partition has used up its offsets (2^53): create a new topic",
    ),
}


@dataclass(frozen=True, slots=True)
class CommitSettings:
    flush_interval_ms: int
    flush_bytes: int
    puts_in_flight: int
    put_retry_ms: int


class Committer:
    """One writer's chain."""

    def __init__(
        self,
        *,
        epoch: int,
        writer: WriterId,
        bucket: Bucket,
        sequencer: Sequencer,
        health: Health,
        supervisor: Supervisor,
        settings: CommitSettings,
        now_ms: WallClock,
    ) -> None:
        self.buffer = ProduceBuffer()
        self._epoch = epoch
        self._writer = writer
        self._bucket = bucket
        self._sequencer = sequencer
        self._health = health
        self._supervisor = supervisor
        self._settings = settings
        self._now_ms = now_ms
        self._next_seq = 0
        self._slots = asyncio.Semaphore(settings.puts_in_flight)
        self._published: asyncio.Future[None] | None = None
        self._in_hand: Flush | None = None
        """Taken from the buffer, its reservation not known yet."""
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
            batch.settle(_not_written(self._health.stopped))
            return
        self.buffer.add(batch)
        if self.buffer.waiting_bytes >= self._settings.flush_bytes:
            self._full.set()

    def given_up(self) -> None:
        """A request has timed out: its batches that were not taken yet are dropped, soon, in one
        pass for all that time out together."""
        if not self._dropping:
            self._dropping = True
            asyncio.get_running_loop().call_soon(self._drop_answered)

    def _drop_answered(self) -> None:
        self._dropping = False
        self.buffer.drop_answered()
        self._note_idle()

    async def commit_fact(self, fact: Fact, wanted: WantedControl) -> ControlStatus:
        """Bring a topic change into the log; returns when it is visible here, or refused.

        Raises `SequencerError` where writing is stopped.
        """
        if self._health.stopped is not None:
            raise SequencerError(self._health.stopped)
        future: asyncio.Future[ControlStatus] = asyncio.get_running_loop().create_future()
        self.buffer.add_fact(PendingFact(fact, wanted, future))
        return await future

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
            await self._pace(last_flush)
            last_flush = loop.time()
            batches, facts = self.buffer.take(self._settings.flush_bytes)
            if not await self._flush(Flush.of(batches, facts)):
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

    async def _flush(self, flush: Flush) -> bool:
        """Reserve, then let the rest run by itself. True if a PUT slot is in use."""
        if not flush.groups and not flush.facts:
            return False
        segment = SegmentId(self._writer, self._next_seq)
        self._in_hand = flush
        try:
            reservation = await self._reserve(flush, segment)
        except SequencerError as error:
            self._health.stop_writing(str(error))
            return False
        if self._health.stopped is not None:  # meanwhile: what was in hand is refused already
            return False
        put_back = self._settle_refused(flush, reservation)
        if reservation.ticket is None:
            self._in_hand = None
        if put_back and reservation.ticket is None:
            await asyncio.sleep(ASK_AGAIN_MS / 1000)
        if reservation.ticket is None:
            return False
        self._next_seq += 1
        assembled = assemble(flush, reservation, segment, created_ms=self._now_ms())
        self._awaited[segment], self._in_hand = assembled, None
        before = self._published
        self._published = asyncio.get_running_loop().create_future()
        self._supervisor.spawn(
            self._write_and_publish(assembled, before, self._published),
            f"segment {segment.seq}",
            on_failure=lambda error: self._health.stop_writing(f"the commit path failed: {error}"),
        )
        return True

    async def _reserve(self, flush: Flush, segment: SegmentId) -> Reservation:
        """A lost answer is asked for again, with the same request id: never guessed."""
        wanted = flush.wanted()
        control = [fact.wanted for fact in flush.facts]
        self._flushes += 1
        request_id = str(self._flushes)
        return await self._until_answered(
            lambda: self._sequencer.reserve(
                self._epoch,
                segment,
                request_id,
                partitions=wanted,
                control=control,
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
                    batch.settle(_refused(answer))
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
        assembled: Assembled,
        before: asyncio.Future[None] | None,
        published: asyncio.Future[None],
    ) -> None:
        try:
            written = await self._write(assembled)
            if before is not None:
                await before
            if written and self._health.stopped is None:
                await self._publish(assembled)
        finally:
            published.set_result(None)
            self._slots.release()

    async def _write(self, assembled: Assembled) -> bool:
        key = keys.segment(assembled.index.segment)
        try:
            created = await self._until_answered(
                lambda: self._bucket.create(key, assembled.parts), "bucket"
            )
            if created:
                return True
            body = await self._until_answered(lambda: self._bucket.get(key), "bucket")
        except SequencerError:
            return False
        if body.data == b"".join(assembled.parts):
            return True
        self._health.stop_writing(
            f"another broker sealed this one's chain at {key}: restart it to join again"
        )
        return False

    async def _publish(self, assembled: Assembled) -> None:
        segment = assembled.index.segment
        try:
            published = await self._until_answered(
                lambda: self._sequencer.publish(
                    self._epoch,
                    segment,
                    footer=assembled.footer,
                    object_size_bytes=sum(len(part) for part in assembled.parts),
                ),
                "redis",
            )
        except SequencerError as error:
            self._health.stop_writing(str(error))
            return
        if published.status is PublishStatus.VOID:
            self._health.stop_writing(
                f"segment {segment.seq} of this broker was voided: restart it to join again"
            )

    async def _until_answered(self, call: Callable[[], Awaitable[T]], part: str) -> T:
        """Repeat a call that may be repeated until there is an answer, whatever it is."""
        pause_ms = FIRST_PAUSE_MS
        while True:
            try:
                answer = await call()
            except (SequencerUnavailableError, BucketError) as error:
                self._health.degrade(part, str(error))
                if self._health.stopped is not None:
                    raise SequencerError(self._health.stopped) from error
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = min(pause_ms * 2, self._settings.put_retry_ms)
            else:
                self._health.recover(part)
                return answer

    def _refuse_waiting(self) -> None:
        """Writing has stopped. What waits or is in hand will never be written; what is further may
        be in the log or not: the next epoch decides, and a client that tries again finds out."""
        reason = self._health.stopped or ""
        facts = self.buffer.drain(lambda batch: batch.settle(_not_written(reason)))
        flush, self._in_hand = self._in_hand, None
        if flush is not None:
            facts += flush.facts
            for _, batches in flush.groups:
                for batch in batches:
                    batch.settle(_not_written(reason))
        for assembled in self._awaited.values():
            for batch, _ in assembled.batches:
                batch.settle(Outcome(ErrorCode.request_timed_out, -1, reason))
            facts += assembled.facts
        self._awaited.clear()
        for fact in facts:
            fact.fail(SequencerError(reason))
        self._note_idle()


def _refused(answer: BatchAnswer) -> Outcome:
    if answer.status is BatchStatus.DUPLICATE:
        return Outcome(ErrorCode.none, answer.base_offset)
    error, message = REFUSALS[answer.status]
    return Outcome(error, -1, message)


def _not_written(reason: str) -> Outcome:
    """NOT_ENOUGH_REPLICAS: retriable, and it says that nothing was appended."""
    return Outcome(ErrorCode.not_enough_replicas, -1, reason)
