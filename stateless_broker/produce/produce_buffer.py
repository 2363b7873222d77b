"""Produced batches and facts that wait for the next flush; bounded by the frames' memory budget.

Invariant: batches leave in the order in which they came, those that were put back before all
others: an idempotent producer's batches reach the sequencer in sequence.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import BatchHeader, RefusedRecord
from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import FactEntry, TopicIdPartition
from bucketlog.metadata.sequencer.requests import FactStatus, WantedFact, WantedGroupEntry


class BatchOutcome(NamedTuple):
    """What became of a batch. `base_offset` is -1 with an error."""

    error: ErrorCode
    base_offset: int
    message: str | None = None
    refused_records: tuple[RefusedRecord, ...] = ()


class ProduceCall(Protocol):
    """The request a batch came with."""

    @property
    def answered(self) -> bool:
        """True once its client has its answer, a timeout most likely: nobody waits any more."""
        ...

    def settle(self, row: int, outcome: BatchOutcome) -> None: ...


@dataclass(slots=True)
class PendingBatch:
    """A view of a received frame; `row` is the batch's place in its request."""

    topic_name: str
    partition: TopicIdPartition
    data: memoryview
    header: BatchHeader
    call: ProduceCall
    row: int

    def settle(self, outcome: BatchOutcome) -> None:
        self.call.settle(self.row, outcome)

    def copy(self) -> "PendingBatch":
        """The same batch in memory of its own: a request may still be under way with the frame's,
        which must not change then."""
        return PendingBatch(
            self.topic_name,
            self.partition,
            memoryview(bytearray(self.data)),
            self.header,
            self.call,
            self.row,
        )


@dataclass(slots=True)
class PendingFact:
    """A topic change or a group's offsets on the way into the log. `when_reserved`: whoever waits
    is answered before it is there."""

    entry: FactEntry
    wanted: WantedFact
    future: asyncio.Future[FactStatus]
    when_reserved: bool = False

    @property
    def given_up(self) -> bool:
        """True once whoever waited for it was told that it may not be in the log."""
        return self.future.cancelled()

    @property
    def is_of_one_epoch(self) -> bool:
        """A coordinator's term is of its epoch: another one's may have the same number."""
        return isinstance(self.wanted, WantedGroupEntry)

    @property
    def is_promised(self) -> bool:
        """Acknowledged before it was in the log."""
        if not self.when_reserved or not self.future.done() or self.future.cancelled():
            return False
        return self.future.exception() is None and self.future.result() is FactStatus.OK

    def settle(self, status: FactStatus) -> None:
        if not self.future.done():
            self.future.set_result(status)

    def fail(self, error: SequencerError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class FlushInput(NamedTuple):
    """What goes into one flush; `stamps` are partitions whose readers wait for a fresh stamp."""

    batches: list[PendingBatch]
    facts: list[PendingFact]
    stamps: set[TopicIdPartition]


class ProduceBuffer:
    def __init__(self) -> None:
        self._batches: deque[PendingBatch] = deque()
        self._facts: deque[PendingFact] = deque()
        self._stamps: set[TopicIdPartition] = set()
        self._wake = asyncio.Event()
        self.waiting_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._batches or self._facts or self._stamps)

    @property
    def waiting(self) -> int:
        """Batches and facts."""
        return len(self._batches) + len(self._facts)

    def add(self, batch: PendingBatch) -> None:
        self._batches.append(batch)
        self.waiting_bytes += len(batch.data)
        self._wake.set()

    def add_fact(self, fact: PendingFact) -> None:
        self._facts.append(fact)
        self._wake.set()

    def add_stamps(self, partitions: Iterable[TopicIdPartition]) -> None:
        self._stamps.update(partitions)
        self._wake.set()

    def put_back(self, batches: list[PendingBatch], facts: list[PendingFact]) -> None:
        """Return what must be asked again; it will be first."""
        self._batches.extendleft(reversed(batches))
        self._facts.extendleft(reversed(facts))
        self.waiting_bytes += sum(len(batch.data) for batch in batches)
        self._wake.set()

    def take(self, max_bytes: int) -> FlushInput:
        """The next flush: up to `max_bytes` of batches and as much of facts, at least one of each
        if there is one. What its client has given up is dropped: it was told that this may not be
        in the log."""
        batches: list[PendingBatch] = []
        taken = 0
        while self._batches and (not batches or taken + len(self._batches[0].data) <= max_bytes):
            batch = self._batches.popleft()
            self.waiting_bytes -= len(batch.data)
            if batch.call.answered:
                batch.settle(BatchOutcome(ErrorCode.request_timed_out, -1))
                continue
            taken += len(batch.data)
            batches.append(batch)
        taken_now = FlushInput(batches, self._take_facts(max_bytes), self._stamps)
        self._stamps = set()
        if not self:
            self._wake.clear()
        return taken_now

    def _take_facts(self, max_bytes: int) -> list[PendingFact]:
        facts: list[PendingFact] = []
        left = max_bytes
        while self._facts and (not facts or len(self._facts[0].entry.payload) <= left):
            fact = self._facts.popleft()
            if not fact.given_up:
                left -= len(fact.entry.payload)
                facts.append(fact)
        return facts

    def drop_answered(self) -> None:
        """Let go of what its client has given up, and so of its memory."""
        kept: deque[PendingBatch] = deque()
        for batch in self._batches:
            if batch.call.answered:
                self.waiting_bytes -= len(batch.data)
                batch.settle(BatchOutcome(ErrorCode.request_timed_out, -1))
            else:
                kept.append(batch)
        self._batches = kept
        self._facts = deque(fact for fact in self._facts if not fact.given_up)

    def take_facts_of_one_epoch(self) -> list[PendingFact]:
        """All that wait; the others stay."""
        taken = [fact for fact in self._facts if fact.is_of_one_epoch]
        self._facts = deque(fact for fact in self._facts if not fact.is_of_one_epoch)
        return taken

    async def wait(self) -> None:
        """Until there is something to take."""
        while not self:
            self._wake.clear()
            await self._wake.wait()

    def drain(self, settle: Callable[[PendingBatch], None]) -> list[PendingFact]:
        """Empty the buffer for good; returns the facts, batches go through `settle`."""
        while self._batches:
            settle(self._batches.popleft())
        self.waiting_bytes = 0
        facts = list(self._facts)
        self._facts.clear()
        return facts
