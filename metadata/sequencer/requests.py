"""Requests to the sequencer, and its answers, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

import ormsgpack

from bucketlog.log_format.model import SegmentId, Ticket, TopicId, WriterId
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.sequencer.transaction_requests import (
    USUAL_LIMITS,
    BatchTransaction,
    TransactionChange,
    TransactionLimits,
    WantedTransactionEntry,
    packed_entry,
)

FRACTIONS = (b"\xca", b"\xcb", b"\xcf")
"""The first bytes of floats, and of unsigned numbers of 64 bits, in msgpack. Other values may also
contain these bytes."""


class BatchStatus(StrEnum):
    """OK and DUPLICATE carry the base offset. FORGOTTEN_DUPLICATE: a duplicate of a visible batch
    whose offset the sequencer remembers no more. OPEN: a duplicate of a batch whose outcome is not
    known yet. WAIT: the batch follows a pending batch of another writer. The broker reserves OPEN
    and WAIT batches again. UNASSIGNED_PRODUCER: no sequencer has assigned the producer id yet.

    In transactions: FENCED: another pair owns the transactional id. ABORTABLE: the server has ended
    the producer's transaction. PREPARED: the owner has kept an earlier producer's transaction, and
    can only end it. REUSED_SEQUENCE: a batch of the producer's earlier transaction has the
    sequence.

    MISPLACED: a placed batch does not begin at the partition's end, which the answer has."""

    OK = "ok"
    DUPLICATE = "duplicate"
    FORGOTTEN_DUPLICATE = "forgotten_duplicate"
    OPEN = "open"
    WAIT = "wait"
    OUT_OF_ORDER = "out_of_order"
    UNKNOWN_PRODUCER = "unknown_producer"
    UNASSIGNED_PRODUCER = "unassigned_producer"
    FENCED = "fenced"
    UNKNOWN_TOPIC = "unknown_topic"
    OFFSET_LIMIT = "offset_limit"
    TOO_MANY_PRODUCERS = "too_many_producers"
    UNKNOWN_TRANSACTIONAL_ID = "mapping"
    ABORTABLE = "abortable"
    INVALID_STATE = "invalid_state"
    PREPARED = "prepared"
    REUSED_SEQUENCE = "reused_sequence"
    TOO_MANY_PARTITIONS = "too_many_partitions"
    MISPLACED = "misplaced"


AGAINST_PRODUCERS = (
    BatchStatus.OUT_OF_ORDER,
    BatchStatus.UNKNOWN_PRODUCER,
    BatchStatus.UNASSIGNED_PRODUCER,
    BatchStatus.FENCED,
    BatchStatus.UNKNOWN_TRANSACTIONAL_ID,
    BatchStatus.ABORTABLE,
    BatchStatus.INVALID_STATE,
    BatchStatus.PREPARED,
    BatchStatus.REUSED_SEQUENCE,
)
"""Errors of producers. The sequencer of an older epoch may report such an error wrongly, because it
does not know the producer's later writes."""


class FactStatus(StrEnum):
    """NOT_COORDINATOR: another broker has taken the group since.

    For transactional ids: DONE: there is nothing to write. AGAIN: the end was for a transaction
    that has ended since. ABORTABLE: the server has ended the transaction. PREPARED: the owner has
    kept an earlier producer's transaction, and can only end it."""

    OK = "ok"
    WAIT = "wait"
    EXISTS = "exists"
    UNKNOWN_TOPIC = "unknown_topic"
    INVALID_PARTITIONS = "invalid_partitions"
    NOT_COORDINATOR = "not_coordinator"
    DONE = "done"
    AGAIN = "again"
    UNKNOWN_TRANSACTIONAL_ID = "mapping"
    FENCED = "fenced"
    ABORTABLE = "abortable"
    INVALID_STATE = "invalid_state"
    PREPARED = "prepared"
    TOO_MANY = "too_many"


FINAL = (
    FactStatus.DONE,
    FactStatus.UNKNOWN_TRANSACTIONAL_ID,
    FactStatus.FENCED,
    FactStatus.ABORTABLE,
    FactStatus.INVALID_STATE,
    FactStatus.PREPARED,
)
"""Final answers for entries of transactional ids. The sequencer of an older epoch may give such an
answer wrongly, because it does not know the id's later entries."""


class PublishStatus(StrEnum):
    VISIBLE = "visible"
    DECIDED = "decided"
    ALREADY = "already"
    VOID = "void"


class PublishResult(NamedTuple):
    """The answer to a publication. `fenced_seq` is where the writer was fenced, -1 unless the
    status is VOID. `number` is the segment's number in the stream, -1 unless the status is
    VISIBLE."""

    status: PublishStatus
    fenced_seq: int = -1
    number: int = -1


class FenceStatus(StrEnum):
    FENCED = "fenced"
    REFUSED = "refused"


class FenceResult(NamedTuple):
    """The answer to a fencing. `first` is the seq at which the writer is fenced. In a refusal, it
    is the writer's first pending seq, or the writer's next seq if none is pending."""

    status: FenceStatus
    first: int


class OverdueReason(StrEnum):
    """SILENT: no heartbeat; STUCK: a reservation is pending for too long."""

    SILENT = "silent"
    STUCK = "stuck"


class OverdueWriter(NamedTuple):
    """A writer to be sealed at `seq`: its first pending one, or its next."""

    writer: WriterId
    seq: int
    reason: OverdueReason


class Position(NamedTuple):
    """A moment of an epoch. At this moment, every committed segment is visible that has a ticket
    below `next_ticket` and is not open. The stream continues after number `visible`."""

    visible: int
    next_ticket: int
    open_tickets: frozenset[int]


class WantedBatch(NamedTuple):
    """A batch of a reservation. `producer_id` is decimal text, '' without idempotence: Lua's
    numbers are doubles. `placed_at`: the base offset that a mirrored batch must get. Then,
    `record_count` is the number of offsets, and there is no producer id."""

    record_count: int
    producer_id: str
    producer_epoch: int
    base_sequence: int
    transaction: BatchTransaction | None = None
    placed_at: int | None = None


@dataclass(slots=True)
class WantedPartition:
    """A partition of a reservation. Without batches, it asks only for a stamp: the high watermark
    shown."""

    topic_name: str
    topic_id: TopicId
    partition: int
    batches: list[WantedBatch] = field(default_factory=list)


class WantedTopicChange(NamedTuple):
    """A change of a topic. `verb`: create, delete, grow or configure; `partitions` is the new total
    (0 for delete and configure)."""

    verb: str
    topic_name: str
    topic_id: TopicId
    partitions: int


class WantedGroupEntry(NamedTuple):
    """Committed or forgotten offsets of a group, by the coordinator that took it at `term`."""

    group: str
    term: int


class WantedTierEntry(NamedTuple):
    """An entry about tiers: in order with all others of its kind, and never refused."""


class WantedSecurityEntry(NamedTuple):
    """An entry about security: in order with all others of its kind, and never refused."""


class WantedShareEntry(NamedTuple):
    """An entry about share groups: in order with all others of its kind, and never refused."""


WantedFact: TypeAlias = (
    WantedTopicChange
    | WantedGroupEntry
    | WantedTierEntry
    | WantedSecurityEntry
    | WantedShareEntry
    | WantedTransactionEntry
)


class BatchAnswer(NamedTuple):
    """The answer for a batch. `number` is the base offset of an OK, DUPLICATE or OPEN batch. For an
    OUT_OF_ORDER or UNKNOWN_PRODUCER batch, it is the expected first sequence; for a MISPLACED
    batch, it is the end of the partition; for all others -1."""

    status: BatchStatus
    number: int

    @property
    def base_offset(self) -> int:
        return self.number

    @property
    def expected_sequence(self) -> int:
        return self.number


@dataclass(frozen=True, slots=True)
class Reservation:
    """The answers to a reservation, in the order of the request. `ticket` is None if there is
    nothing to write: the writer's seq is then not used. `hw_stamps`: -1 if a partition got nothing.
    `changes`: by the number of the fact, the results of OK and DONE entries of transactional
    ids."""

    ticket: Ticket | None
    low_ticket: int
    hw_stamps: Sequence[int]
    batches: Sequence[Sequence[BatchAnswer]]
    fact_statuses: Sequence[FactStatus]
    changes: Mapping[int, TransactionChange] = field(default_factory=dict)

    @property
    def holds_against_producers(self) -> bool:
        """Whether an answer is an error of a producer, or final for an entry of a transactional
        id. Such an answer counts only if the epoch is the newest."""
        return any(
            answer.status in AGAINST_PRODUCERS for row in self.batches for answer in row
        ) or any(status in FINAL for status in self.fact_statuses)


class ServerIdentity(NamedTuple):
    """Identity of a server and of its data. `run_id` alone is not enough (commit protocol,
    "Words")."""

    run_id: str
    master_replid: str
    role: str


class VisibleSegment(NamedTuple):
    """An entry of the stream. Its number is dense within an epoch. `footer` has the trailer."""

    epoch: int
    number: int
    segment: SegmentId
    ticket: Ticket
    footer: bytes
    object_size_bytes: int


@dataclass(frozen=True, slots=True)
class Activation:
    """A claimed epoch, ready to be loaded: the fold of everything committed before it."""

    epoch: int
    nonce: str
    identity: ServerIdentity
    state: LogState


PRODUCER_COUNTER_BITS = 40
_OF_EARLIER_EPOCH = -1
_OF_LATER_EPOCH = 1 << PRODUCER_COUNTER_BITS


def producer_id(epoch: int, counter: int) -> int:
    """The id of producer number `counter` of `epoch`; unique for ever."""
    return epoch << PRODUCER_COUNTER_BITS | counter


def producer_counter(given: int, epoch: int) -> int:
    """The counter of the producer id `given`: -1 for an id of an epoch before `epoch`, and greater
    than any counter for an id of a later epoch."""
    of_epoch, counter = given >> PRODUCER_COUNTER_BITS, given & (_OF_LATER_EPOCH - 1)
    if of_epoch == epoch:
        return counter
    return _OF_LATER_EPOCH if of_epoch > epoch else _OF_EARLIER_EPOCH


def pack_request(
    partitions: Sequence[WantedPartition],
    control: Sequence[WantedFact],
    *,
    epoch: int,
    limits: TransactionLimits = USUAL_LIMITS,
) -> bytes:
    """The packed request of `lua/reserve.lua`."""
    rows: dict[tuple[str, bytes], int] = {}
    transactions: dict[BatchTransaction, int] = {}
    parts = []
    for part in partitions:
        row = rows.setdefault((part.topic_name, part.topic_id), len(rows))
        batches: list[tuple[str | int, ...]] = []
        for batch in part.batches:
            packed: tuple[str | int, ...] = batch[:4]
            if batch.producer_id:
                packed = (*packed, producer_counter(int(batch.producer_id), epoch))
            elif batch.placed_at is not None:
                packed = (*packed, batch.placed_at)
            if batch.transaction is not None:
                number = transactions.setdefault(batch.transaction, len(transactions) + 1)
                packed = (*packed, number)
            batches.append(packed)
        parts.append((row, part.partition, batches))
    entries: list[tuple[str | int, ...]] = []
    has_ids = bool(transactions)
    for entry in control:
        if isinstance(entry, WantedTopicChange):
            verb, name, topic_id, count = entry
            rows.setdefault((name, topic_id), len(rows))
            entries.append((verb, name, topic_id.hex(), count))
        elif isinstance(entry, WantedTierEntry):
            entries.append(("tiers",))
        elif isinstance(entry, WantedSecurityEntry):
            entries.append(("security",))
        elif isinstance(entry, WantedShareEntry):
            entries.append(("shares",))
        elif isinstance(entry, WantedGroupEntry):
            entries.append(("offsets", entry.group, entry.term))
        else:
            entries.append(packed_entry(entry))
            has_ids = True
    request: dict[str, object] = {
        "topics": [(name, topic_id.hex()) for name, topic_id in rows],
        "parts": parts,
        "control": entries,
    }
    if has_ids:
        request["txns"] = [each[:2] for each in transactions]
        request["limits"] = limits._asdict()
    return ormsgpack.packb(request, default=tuple)


def decode_answer(raw: bytes) -> Any:
    """Return the answer of a script. Raises `ValueError` unless all of its numbers are integers of
    64 bits."""
    answer = ormsgpack.unpackb(raw)
    if any(mark in raw for mark in FRACTIONS):
        _check_whole(answer)
    return answer


def _check_whole(answer: Any) -> None:
    if isinstance(answer, list):
        for each in answer:
            _check_whole(each)
    elif isinstance(answer, dict):
        _check_whole([*answer.values()])
    elif isinstance(answer, float) or (isinstance(answer, int) and answer >= 2**63):
        raise ValueError(f"{answer} is not a whole number of 64 bits")
