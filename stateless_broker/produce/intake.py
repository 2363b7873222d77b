"""The batches and facts that handlers pass to the log, and their outcomes.

Invariants: batches leave in arrival order, and batches that were put back leave first. So an
idempotent producer's batches reach the sequencer in sequence. The intake outlives epochs: batches
that wait here when an epoch ends go into the next epoch, in order, unless their client gives up.
No batch that waits here was ever reserved. A batch that may be in the log is never reported as
refused, and a refused batch is not in the log. Only the newest epoch's sequencer may report an
error of a producer: an older sequencer does not know the producer's later writes, and the client
would not retry.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol, Self

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import BatchHeader, RefusedRecord
from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import FactEntry, TopicIdPartition
from bucketlog.metadata.facts import Fact, encode_fact
from bucketlog.metadata.sequencer.requests import FactStatus, WantedFact
from bucketlog.metadata.sequencer.transaction_requests import (
    BatchTransaction,
    WantedTransactionEntry,
)
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.produce.pending_facts import (
    PendingFact,
    TransactionOutcome,
    take_facts,
)
from bucketlog.stateless_broker.produce.refused_batches import ProducedTo, RefusedBatches
from bucketlog.stateless_broker.produce.step_durations import StepDurations

_STEP_S = 0.05


class BatchOutcome(NamedTuple):
    """The outcome of a batch. `base_offset` is -1 with an error."""

    error: ErrorCode
    base_offset: int
    message: str | None = None
    refused_records: tuple[RefusedRecord, ...] = ()

    @classmethod
    def not_written(cls, reason: str) -> Self:
        """NOT_ENOUGH_REPLICAS: retriable, and means that nothing was appended."""
        return cls(ErrorCode.not_enough_replicas, -1, reason)


TIMED_OUT = BatchOutcome(ErrorCode.request_timed_out, -1)


class ProduceCall(Protocol):
    """The request that a batch belongs to."""

    @property
    def answered(self) -> bool:
        """Whether the request is answered already, usually by a timeout: the client waits no
        more."""
        ...

    def settle(self, row: int, outcome: BatchOutcome) -> None: ...


class TimedCall(Protocol):
    """A request with a deadline."""

    def wait_among(self, due: "set[TimedCall]") -> None:
        """Stay in `due` until the request is answered."""
        ...

    def give_up(self, outcome: BatchOutcome) -> None:
        """Answer now, with `outcome` for the unsettled batches."""
        ...


class AnswerDeadlines:
    """Answers requests after their deadline, up to `_STEP_S` late. All requests of a step share one
    timer, which costs less than a timer for each request. Calls `given_up` after the answers."""

    def __init__(self, given_up: Callable[[], None]) -> None:
        self._given_up = given_up
        self._due: dict[int, set[TimedCall]] = {}

    def add(self, call: TimedCall, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        step = math.ceil((loop.time() + timeout_ms / 1000) / _STEP_S)
        due = self._due.get(step)
        if due is None:
            due = self._due[step] = set()
            loop.call_at(step * _STEP_S, self._expire, step)
        call.wait_among(due)

    def _expire(self, step: int) -> None:
        self._give_up(self._due.pop(step), TIMED_OUT)

    def give_up_all(self, outcome: BatchOutcome) -> None:
        """Answer all requests now."""
        for due in list(self._due.values()):
            self._give_up(due, outcome)

    def _give_up(self, due: set[TimedCall], outcome: BatchOutcome) -> None:
        if due:
            for call in list(due):
                call.give_up(outcome)
            self._given_up()


@dataclass(slots=True)
class PendingBatch:
    """A view of a received frame, or a sealed batch; `row` is the batch's index in its request.
    `is_placed`: a mirrored batch, which gets the base offset in its header, or none."""

    topic_name: str
    partition: TopicIdPartition
    data: memoryview
    header: BatchHeader
    call: ProduceCall
    row: int
    transaction: BatchTransaction | None = None
    is_placed: bool = False
    release: Callable[[], None] | None = None
    """Frees memory of the batch that is not the frame's. It may be called more than once."""
    arrived_s: float = 0.0
    """Time of arrival at the intake, by the intake's clock."""

    def settle(self, outcome: BatchOutcome) -> None:
        if self.release is not None:
            self.release()
        self.call.settle(self.row, outcome)

    @property
    def produced_to(self) -> ProducedTo:
        header, number = self.header, self.partition.partition
        return ProducedTo(self.topic_name, number, header.producer_id, header.producer_epoch)

    def copy(self) -> "PendingBatch":
        """The same batch in separate memory. A PUT may still be sending the frame's bytes, which
        must not change meanwhile."""
        return PendingBatch(
            self.topic_name,
            self.partition,
            memoryview(bytearray(self.data)),
            self.header,
            self.call,
            self.row,
            self.transaction,
            self.is_placed,
            self.release,
            self.arrived_s,
        )


class FlushInput(NamedTuple):
    """The content of one flush; `stamps` are partitions that need a fresh stamp."""

    batches: list[PendingBatch]
    facts: list[PendingFact]
    stamps: list[TopicIdPartition]


class ProduceBuffer:
    """Batches, facts and stamps for the next flush. The memory budget of frames bounds it."""

    def __init__(self) -> None:
        self._batches: deque[PendingBatch] = deque()
        self._facts: deque[PendingFact] = deque()
        self._stamps: dict[TopicIdPartition, None] = {}
        self._wake = asyncio.Event()
        self.waiting_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._batches or self._facts or self._stamps)

    @property
    def waiting_batches(self) -> int:
        return len(self._batches)

    @property
    def waiting(self) -> int:
        """The number of batches and facts."""
        return len(self._batches) + len(self._facts)

    def add(self, batch: PendingBatch) -> None:
        self._batches.append(batch)
        self.waiting_bytes += len(batch.data)
        self._wake.set()

    def add_fact(self, fact: PendingFact) -> None:
        self._facts.append(fact)
        self._wake.set()

    def add_stamps(self, partitions: Iterable[TopicIdPartition]) -> None:
        self._stamps.update(dict.fromkeys(partitions))
        self._wake.set()

    def put_back(self, batches: list[PendingBatch], facts: list[PendingFact]) -> None:
        """Put back what must be reserved again, before all others."""
        self._batches.extendleft(reversed(batches))
        self._facts.extendleft(reversed(facts))
        self.waiting_bytes += sum(len(batch.data) for batch in batches)
        self._wake.set()

    def take(self, max_bytes: int, max_batches: int, max_stamps: int) -> FlushInput:
        """The next flush: at most `max_batches` batches of up to `max_bytes` together, facts of up
        to `max_bytes`, at least one of each if present, and at most `max_stamps` stamps. Work of
        answered requests is dropped: their clients know that the work may not be in the log."""
        batches: list[PendingBatch] = []
        taken = 0
        while (
            self._batches
            and len(batches) < max_batches
            and (not batches or taken + len(self._batches[0].data) <= max_bytes)
        ):
            batch = self._batches.popleft()
            self.waiting_bytes -= len(batch.data)
            if batch.call.answered:
                batch.settle(TIMED_OUT)
                continue
            taken += len(batch.data)
            batches.append(batch)
        stamps = list(islice(self._stamps, max_stamps))
        for partition in stamps:
            del self._stamps[partition]
        taken_now = FlushInput(batches, self._take_facts(max_bytes), stamps)
        if not self:
            self._wake.clear()
        return taken_now

    def _take_facts(self, max_bytes: int) -> list[PendingFact]:
        return take_facts(self._facts, max_bytes) if self._facts else []

    def drop_answered(self) -> None:
        """Drop work that its client has given up, and free its memory."""
        kept: deque[PendingBatch] = deque()
        for batch in self._batches:
            if batch.call.answered:
                self.waiting_bytes -= len(batch.data)
                batch.settle(TIMED_OUT)
            else:
                kept.append(batch)
        self._batches = kept
        self._facts = deque(fact for fact in self._facts if not fact.given_up)

    def take_facts_of_one_epoch(self) -> list[PendingFact]:
        """Take all waiting facts of one epoch; the others stay."""
        taken = [fact for fact in self._facts if fact.is_of_one_epoch]
        self._facts = deque(fact for fact in self._facts if not fact.is_of_one_epoch)
        return taken

    async def wait(self) -> None:
        """Wait until there is something to take."""
        while not self:
            self._wake.clear()
            await self._wake.wait()

    def drain(self, settle: Callable[[PendingBatch], None]) -> list[PendingFact]:
        """Empty the buffer for good. Calls `settle` for each batch, and returns the facts."""
        while self._batches:
            settle(self._batches.popleft())
        self.waiting_bytes = 0
        facts = list(self._facts)
        self._facts.clear()
        return facts


class Intake:
    """`full` is set when a flush is full before its time. `durations` are those of the commits of
    all epochs. `now_s` is the monotonic clock that measures them."""

    def __init__(
        self,
        health: Health,
        *,
        flush_bytes: int,
        flush_batches_max: int,
        durations: StepDurations,
        now_s: Callable[[], float],
    ) -> None:
        self.buffer = ProduceBuffer()
        self.durations = durations
        self.now_s = now_s
        self.full = asyncio.Event()
        self.refused = RefusedBatches()
        self.deadlines = AnswerDeadlines(self.given_up)
        self._health = health
        self._flush_bytes = flush_bytes
        self._flush_batches_max = flush_batches_max
        self._dropping = False
        self._on_drop: Callable[[], None] = lambda: None

    def on_drop(self, callback: Callable[[], None]) -> None:
        """Set the function to call when something that waited was dropped. It replaces an earlier
        one."""
        self._on_drop = callback

    def add(self, batch: PendingBatch) -> None:
        """Take a batch; its call is settled when its outcome is known."""
        if self._health.stopped is not None:
            batch.settle(BatchOutcome.not_written(self._health.stopped))
            return
        batch.arrived_s = self.now_s()
        self.buffer.add(batch)
        if self.is_full:
            self.full.set()

    @property
    def is_full(self) -> bool:
        """Whether the waiting batches fill a flush."""
        buffer = self.buffer
        return (
            buffer.waiting_bytes >= self._flush_bytes
            or buffer.waiting_batches >= self._flush_batches_max
        )

    def given_up(self) -> None:
        """Note that a request has timed out. Its batches that were not taken yet are dropped soon,
        in one pass for all requests that time out together."""
        if not self._dropping:
            self._dropping = True
            asyncio.get_running_loop().call_soon(self._drop_answered)

    def _drop_answered(self) -> None:
        self._dropping = False
        self.buffer.drop_answered()
        self._on_drop()

    async def commit_fact(
        self, fact: Fact, wanted: WantedFact, *, when_reserved: bool = False
    ) -> FactStatus:
        """Bring a fact into the log. Returns when it is visible here, or refused. Facts are
        reserved in the order of the calls; a fact whose call is cancelled may still get into the
        log.

        `when_reserved` returns as soon as the sequencer has accepted the fact. It continues into
        the log, but is lost with the sequencer's state and this broker. Raises `SequencerError` if
        writing is stopped, or if a fact that belongs to one epoch was not accepted in it in time.
        """
        if self._health.stopped is not None:
            raise SequencerError(self._health.stopped)
        future: asyncio.Future[FactStatus] = asyncio.get_running_loop().create_future()
        self.buffer.add_fact(PendingFact(encode_fact(fact), wanted, future, when_reserved))
        try:
            return await future
        except asyncio.CancelledError:
            self.given_up()
            raise

    async def commit_transaction_entry(
        self,
        wanted: WantedTransactionEntry,
        entry: FactEntry,
        *,
        wait_ms: int,
        is_stale: Callable[[], bool] | None = None,
    ) -> TransactionOutcome:
        """Bring an entry of a transactional id into the log; returns when it is visible here, or
        answered without one. The sequencer is asked for up to `wait_ms` while another entry of the
        id is open. Raises `SequencerError` as `commit_fact`."""
        if self._health.stopped is not None:
            raise SequencerError(self._health.stopped)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[FactStatus] = loop.create_future()
        fact = PendingFact(
            entry, wanted, future, wait_until=loop.time() + wait_ms / 1000, is_stale=is_stale
        )
        self.buffer.add_fact(fact)
        try:
            return TransactionOutcome(await future, fact.change)
        except asyncio.CancelledError:
            self.given_up()
            raise

    def request_stamps(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Let the next segments carry fresh high watermarks of `partitions`. If a request is lost
        with its segment, `FreshStamps` repeats it."""
        if self._health.stopped is None:
            self.buffer.add_stamps(partitions)

    def end_epoch(self, reason: str) -> None:
        """Facts of that epoch alone are never reserved in another one."""
        for fact in self.buffer.take_facts_of_one_epoch():
            fact.fail(SequencerError(reason))
        self._on_drop()

    def refuse_all(self, reason: str) -> None:
        """Refuse all that waits, because writing has stopped for good."""
        for fact in self.buffer.drain(lambda batch: batch.settle(BatchOutcome.not_written(reason))):
            fact.fail(SequencerError(reason))
        self._on_drop()
