"""The steps that commit a flush: reserve, assemble, write, publish, acknowledge.

Assembling is pure. Batches are sorted by (topic id, partition) and keep their arrival order within
a partition. Only base offsets, which no CRC covers, are written into the batches, in place.

Invariants: the result of a lost answer is never guessed. A reservation is requested again with the
same request id. A PUT is retried with the same bytes and the same key. If the key exists, the
objects are compared, because our own first attempt may have created the object. The claims are
checked before each publication. While Redis or the bucket does not answer, `/readyz` names it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from kio.schema.errors import ErrorCode

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.batch import stamp_base_offset
from bucketlog.log_format.errors import (
    BucketError,
    BucketlogError,
    SequencerLostError,
    SequencerUnavailableError,
)
from bucketlog.log_format.model import (
    Buffer,
    FactEntry,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicId,
    TopicIdPartition,
)
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    PublishStatus,
    Reservation,
    WantedBatch,
    WantedGroupEntry,
    WantedPartition,
    WantedSecurityEntry,
    WantedShareEntry,
    WantedTierEntry,
    WantedTopicChange,
)
from bucketlog.stateless_broker.epochs.claim_watch import ClaimWatch
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.produce.intake import (
    BatchOutcome,
    FlushInput,
    PendingBatch,
)
from bucketlog.stateless_broker.produce.pending_facts import PendingFact
from bucketlog.stateless_broker.produce.transaction_entries import (
    PlacedMarker,
    entry_facts,
    entry_markers,
)
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.segment import (
    HEADER,
    batch_row,
    body_crc32c,
    decode_seal,
    encode_footer,
    is_seal,
)

T = TypeVar("T")

FIRST_PAUSE_MS = 20
STALLED_TIMES = 4
PUTS_AVERAGED = 8


@dataclass(frozen=True, slots=True)
class Flush:
    """The content of one reservation, in the order of its answers. A group without batches requests
    only a stamp; `topic_names` has the name of its topic."""

    groups: list[tuple[TopicIdPartition, list[PendingBatch]]]
    facts: list[PendingFact]
    topic_names: Mapping[TopicId, str] = field(default_factory=dict)

    @classmethod
    def of(cls, taken: FlushInput, topic_name: Callable[[TopicId], str | None]) -> "Flush":
        """`topic_name` returns None for a deleted topic, whose partitions nobody reads."""
        groups: dict[TopicIdPartition, list[PendingBatch]] = {}
        for batch in taken.batches:
            groups.setdefault(batch.partition, []).append(batch)
        names: dict[TopicId, str] = {}
        for partition in taken.stamps:
            name = topic_name(partition.topic_id)
            if name is not None:
                names[partition.topic_id] = name
                groups.setdefault(partition, [])
        return cls(sorted(groups.items()), taken.facts, names)

    @property
    def size(self) -> int:
        """The number of batches and facts."""
        return sum(len(group) for _, group in self.groups) + len(self.facts)

    def wanted(self) -> list[WantedPartition]:
        return [
            WantedPartition(
                batches[0].topic_name if batches else self.topic_names[partition.topic_id],
                partition.topic_id,
                partition.partition,
                [_wanted(batch) for batch in batches],
            )
            for partition, batches in self.groups
        ]


def _wanted(batch: PendingBatch) -> WantedBatch:
    header = batch.header
    if batch.is_placed:
        span = header.last_offset_delta + 1
        return WantedBatch(span, "", -1, -1, placed_at=header.base_offset)
    if header.producer_id < 0:
        return WantedBatch(header.record_count, "", -1, -1)
    return WantedBatch(
        header.record_count,
        str(header.producer_id),
        header.producer_epoch,
        header.base_sequence,
        batch.transaction,
    )


@dataclass(frozen=True, slots=True)
class AssembledSegment:
    """A segment ready to be written. `parts` borrow the batches' frames."""

    index: SegmentIndex
    parts: list[Buffer]
    footer: bytes
    batches: list[tuple[PendingBatch, int]]
    """Accepted batches with their base offsets."""
    facts: list[PendingFact]

    def acknowledge(self) -> None:
        """Settle batches and facts, once the view shows the segment."""
        for batch, base_offset in self.batches:
            batch.settle(BatchOutcome(ErrorCode.none, base_offset))
        for fact in self.facts:
            fact.settle(FactStatus.OK)


def assemble(
    flush: Flush, reservation: Reservation, segment: SegmentId, *, created_ms: int
) -> AssembledSegment:
    """Stamp the accepted batches and build the segment. `reservation.ticket` must be set."""
    if reservation.ticket is None:
        raise ValueError("nothing was reserved")
    facts, entries, markers = _reserved_facts(flush, reservation, reservation.ticket, created_ms)
    parts: list[Buffer] = [HEADER]
    position = len(HEADER)
    partitions = []
    accepted: list[tuple[PendingBatch, int]] = []
    content = list(zip(flush.groups, reservation.batches, reservation.hw_stamps, strict=True))
    if markers:
        only_marked = markers.keys() - {partition for partition, _ in flush.groups}
        content = sorted(content + [((each, []), (), -1) for each in only_marked], key=_partition)
    for (partition, batches), answers, stamp in content:
        rows = []
        for marker in markers.get(partition, ()):
            rows.append(batch_row(marker.header, marker.base_offset, position, len(marker.data)))
            parts.append(marker.data)
            position += len(marker.data)
        stamp_alone = not batches and stamp >= 0
        for batch, answer in zip(batches, answers, strict=True):
            if answer.status is not BatchStatus.OK:
                continue
            stamp_base_offset(batch.data, answer.base_offset)
            size = len(batch.data)
            rows.append(batch_row(batch.header, answer.base_offset, position, size))
            parts.append(batch.data)
            position += size
            accepted.append((batch, answer.base_offset))
        if rows or stamp_alone:
            own = markers[partition][0].hw_stamp if partition in markers else stamp
            partitions.append(PartitionIndex(partition, own, tuple(rows)))
    index = SegmentIndex(
        segment=segment,
        ticket=reservation.ticket,
        low_ticket=reservation.low_ticket,
        created_ms=created_ms,
        partitions=tuple(partitions),
        facts=tuple(entries),
    )
    footer = encode_footer(index)
    parts.append(footer)
    return AssembledSegment(index, parts, footer, accepted, facts)


def _partition(
    content: tuple[tuple[TopicIdPartition, list[PendingBatch]], Sequence[BatchAnswer], int],
) -> TopicIdPartition:
    return content[0][0]


def _reserved_facts(
    flush: Flush, reservation: Reservation, ticket: Ticket, created_ms: int
) -> tuple[list[PendingFact], list[FactEntry], dict[TopicIdPartition, list[PlacedMarker]]]:
    """The accepted facts, their entries in the footer, and markers by partition."""
    facts: list[PendingFact] = []
    entries: list[FactEntry] = []
    markers: dict[TopicIdPartition, list[PlacedMarker]] = {}
    for at, (fact, status) in enumerate(zip(flush.facts, reservation.fact_statuses, strict=True)):
        if status is not FactStatus.OK:
            continue
        facts.append(fact)
        change, wanted = reservation.changes.get(at), fact.wanted
        if change is None or isinstance(
            wanted,
            WantedTopicChange
            | WantedGroupEntry
            | WantedTierEntry
            | WantedSecurityEntry
            | WantedShareEntry,
        ):
            entries.append(fact.entry)
            continue
        fact.change = change
        entries += entry_facts(wanted, change, fact.entry, created_ms)
        for marker in entry_markers(wanted, change, sequencer_epoch=ticket.epoch, at_ms=created_ms):
            markers.setdefault(marker.partition, []).append(marker)
    return facts, entries, markers


class WriterLostError(Exception):
    """Error of a writer whose chain is sealed, or whose PUT did not finish in time."""


class UntilAnswered:
    """Repeats an idempotent call until there is an answer of any kind."""

    def __init__(self, health: Health, end: EpochEnd, *, longest_pause_ms: int) -> None:
        self._health = health
        self._end = end
        self._backoff = Backoff(FIRST_PAUSE_MS, longest_pause_ms)
        self._silent: set[BrokerPart] = set()
        """Parts whose last call got no answer."""

    async def __call__(
        self, call: Callable[[], Awaitable[T]], part: BrokerPart, *, stalled_s: float | None = None
    ) -> T:
        """Call until there is an answer, and return it. After `stalled_s` without an answer, the
        part counts as degraded. Raises `SequencerLostError` once the epoch is over, and errors that
        a retry cannot resolve."""
        if stalled_s is None:
            return await self._answer(call, part)
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(stalled_s, self._note_stall, part, stalled_s)
        try:
            return await self._answer(call, part)
        finally:
            alarm.cancel()

    def _note_stall(self, part: BrokerPart, stalled_s: float) -> None:
        self._silent.add(part)
        self._health.degrade(part, f"no answer for {stalled_s:.1f} s")

    async def _answer(self, call: Callable[[], Awaitable[T]], part: BrokerPart) -> T:
        failures = 0
        while True:
            try:
                answer = await call()
            except (SequencerUnavailableError, BucketError) as error:
                self._silent.add(part)
                self._health.degrade(part, str(error))
                self._end.check()
                await asyncio.sleep(self._backoff.pause_s(failures))
                failures += 1
            except BucketlogError:  # an answer, too
                self._note_answer(part)
                raise
            else:
                self._note_answer(part)
                return answer

    def _note_answer(self, part: BrokerPart) -> None:
        if part in self._silent:
            self._silent.remove(part)
            self._health.recover(part)


class PutPace:
    """The usual time of PUTs. A PUT stalls after `stalled_ms` or `STALLED_TIMES` the usual time,
    whichever is longer. So a store that is slow for all brokers moves no roles."""

    def __init__(self, stalled_ms: int) -> None:
        self._stalled_s = stalled_ms / 1000
        self._usual_s = 0.0

    @property
    def stalled_s(self) -> float:
        return max(self._stalled_s, STALLED_TIMES * self._usual_s)

    def ended(self, seconds: float) -> None:
        """Note that a PUT took `seconds`."""
        self._usual_s += (seconds - self._usual_s) / PUTS_AVERAGED


class CommitSteps:
    """The steps for segments of `epoch`. `put_give_up_ms` bounds a PUT with all its retries."""

    def __init__(
        self,
        *,
        epoch: int,
        bucket: Bucket,
        sequencer: Sequencer,
        claims: ClaimWatch,
        until_answered: UntilAnswered,
        put_give_up_ms: int,
        pace: PutPace,
    ) -> None:
        self._epoch = epoch
        self._bucket = bucket
        self._sequencer = sequencer
        self._claims = claims
        self.until_answered = until_answered
        self._put_give_up_ms = put_give_up_ms
        self._pace = pace
        self._reservations = 0

    async def reserve(self, flush: Flush, segment: SegmentId) -> Reservation:
        """Reserve the flush. Raises `WriterFencedError`, `SequencerError`."""
        wanted = flush.wanted()
        control = [fact.wanted for fact in flush.facts]
        self._reservations += 1
        request_id = str(self._reservations)
        return await self.until_answered(
            lambda: self._sequencer.reserve(
                self._epoch, segment, request_id, partitions=wanted, facts=control
            ),
            BrokerPart.REDIS,
        )

    async def write(self, assembled: AssembledSegment) -> None:
        """Write the object. Raises `WriterLostError`, `SequencerError` and `CorruptObjectError`."""
        key = keys.segment(assembled.index.segment)
        crc32c = body_crc32c(assembled.parts)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._put_give_up_ms / 1000):
                created = await self.until_answered(
                    lambda: self._bucket.create(key, assembled.parts, crc32c=crc32c),
                    BrokerPart.BUCKET,
                    stalled_s=self._pace.stalled_s,
                )
                self._pace.ended(loop.time() - began)
                if created:
                    return
                body = await self.until_answered(lambda: self._bucket.get(key), BrokerPart.BUCKET)
        except TimeoutError:
            raise WriterLostError(
                f"the PUT of {key} did not end in {self._put_give_up_ms} ms"
            ) from None
        if body.data != b"".join(assembled.parts):
            self._refused(key, body.data)

    def _refused(self, key: str, there: Buffer) -> NoReturn:
        """A seal of this epoch ends the writer. Any other object at the key ends the epoch here."""
        if not is_seal(len(there)):
            raise SequencerLostError(f"there is an unknown object at {key}")
        sealed_by = decode_seal(key, there).sealed_by_epoch
        if sealed_by > self._epoch:
            raise SequencerLostError(f"epoch {sealed_by} has sealed this broker's writer at {key}")
        raise WriterLostError(f"another broker sealed this writer at {key}")

    async def publish(self, assembled: AssembledSegment) -> int:
        """Publish the segment. Returns its number in the stream, -1 if unknown. Raises
        `WriterLostError`, `SequencerError`."""
        segment = assembled.index.segment
        await self.until_answered(self._claims.check, BrokerPart.BUCKET)
        answer = await self.until_answered(
            lambda: self._sequencer.publish(
                self._epoch,
                segment,
                footer=assembled.footer,
                object_size_bytes=sum(len(part) for part in assembled.parts),
            ),
            BrokerPart.REDIS,
        )
        if answer.status is PublishStatus.VOID:
            raise WriterLostError(f"segment {segment.seq} was voided")
        return answer.number
