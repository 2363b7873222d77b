"""A checkpoint as a value: what all committed segments below one ticket come to.

Made by `metadata.checkpoint`, encoded by `tiered_storage.checkpoint`, read by whoever would else
read those segments. Invariants: it holds exactly the committed segments below `ticket`, so that
none ever joins them; the batches of a partition are in offset order, and those below the end of its
tier or its log start are left out. Nobody changes one: `grown`
columns are a copy.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from bucketlog.log_format.model import BatchIndex, SegmentId, Ticket, TopicIdPartition, WriterId

CHECKPOINT_VERSION = 3
"""The version of checkpoints of a log without transactions. Version 2 is also read
(docs/format/checkpoint.md)."""
TRANSACTIONS_VERSION = 4
"""The version of checkpoints of a log with transactions. Releases that do not know transactions can
still read the checkpoints of all other logs."""
KEPT_TRANSACTIONS_VERSION = 5
"""The version of checkpoints of a log with an open kept transaction (KIP-939)."""
SECURITY_VERSION = 6
"""The version of checkpoints of a log with SCRAM credentials, ACLs or quotas."""
DATA_KEYS_VERSION = 7
"""The version of checkpoints of a log with data keys of encrypted topics."""
TOKENS_VERSION = 8
"""The version of checkpoints of a log with delegation tokens."""
SHARES_VERSION = 9
"""The version of checkpoints of a log with share-partitions."""
CONFIGS_VERSION = 10
"""The version of checkpoints of a log with configs of brokers, groups or subscriptions."""

COLUMN_TYPES = "qqIIIqqhhiIqq"
"""The fields of `BatchIndex`, then of where the batch is: row of its writer, seq, ticket."""
_INDEX_FIELDS = len(BatchIndex._fields)


class CoveredWriter(NamedTuple):
    """A writer, the first `end` of whose segments are covered. `closed`: its chain is sealed there.

    Writers of epochs before the checkpoint's are closed for ever, listed or not; they are listed
    where a batch is in a segment of theirs.
    """

    writer: WriterId
    epoch: int
    end: int
    closed: bool


class StoredBatch(NamedTuple):
    """A batch, and the segment in whose object it is."""

    segment: SegmentId
    ticket: Ticket
    row: BatchIndex


Place: TypeAlias = tuple[int, int, int]
"""Of a batch: its writer's row in `Checkpoint.writers`, seq and ticket of its segment."""


def _empty_columns() -> "tuple[array[int], ...]":
    return tuple(array(kind) for kind in COLUMN_TYPES)


@dataclass(slots=True)
class BatchColumns:
    """The batches of one partition in offset order, column by column: 72 bytes each."""

    columns: "tuple[array[int], ...]" = field(default_factory=_empty_columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def grown(self, batches: Iterable[tuple[BatchIndex, Place]]) -> "BatchColumns":
        """Return these batches, followed by `batches`."""
        columns = tuple(column[:] for column in self.columns)
        for row, place in batches:
            for column, value in zip(columns, (*row, *place), strict=True):
                column.append(value)
        return BatchColumns(columns)

    def without_below(self, offset: int) -> "BatchColumns":
        """Return the batches that end after `offset`."""
        bases, _, _, _, spans, *_ = self.columns
        first = bisect_left(bases, offset)
        if first and bases[first - 1] + spans[first - 1] + 1 > offset:
            first -= 1
        return BatchColumns(tuple(column[first:] for column in self.columns)) if first else self

    def rows(self) -> Iterator[BatchIndex]:
        return map(BatchIndex, *self.columns[:_INDEX_FIELDS])

    def places(self) -> Iterator[Place]:
        return zip(*self.columns[_INDEX_FIELDS:], strict=True)

    def with_writers(self, renumbered: Callable[[int], int]) -> "BatchColumns":
        """The same batches beside another list of writers."""
        *others, writers, seqs, tickets = self.columns
        moved = array(writers.typecode, map(renumbered, writers))
        return BatchColumns((*others, moved, seqs, tickets))


@dataclass(frozen=True, slots=True)
class CoveredPartition:
    """`high_watermark` is the end of the last batch below the ticket: all before it is visible or
    void, so that it counts as a hw stamp."""

    high_watermark: int
    batches: BatchColumns


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`segments` is the number of covered segments. `partitions` are those that have had batches.
    `state` is the folded state, as `metadata.checkpoint_state` encodes it in `version`."""

    ticket: Ticket
    created_ms: int
    segments: int
    writers: tuple[CoveredWriter, ...]
    partitions: Mapping[TopicIdPartition, CoveredPartition]
    state: bytes
    version: int = CHECKPOINT_VERSION

    def batches(self, partition: TopicIdPartition) -> Iterator[StoredBatch]:
        found = self.partitions.get(partition)
        if found is not None:
            places = found.batches.places()
            for segment, row, (at, _, number) in zip(
                self.segments_of(partition), found.batches.rows(), places, strict=True
            ):
                yield StoredBatch(segment, Ticket(self.writers[at].epoch, number), row)

    def segments_of(self, partition: TopicIdPartition) -> Iterator[SegmentId]:
        """Where each batch of the partition is; neighbours share."""
        found = self.partitions.get(partition)
        last, segment = (-1, -1), SegmentId(WriterId(""), -1)
        for at, seq, _ in found.batches.places() if found is not None else ():
            if (at, seq) != last:
                last, segment = (at, seq), SegmentId(self.writers[at].writer, seq)
            yield segment

    def covers(self, segment: SegmentId) -> bool:
        """Of a writer of the checkpoint's epoch; of an earlier one only while it is listed."""
        return any(row.writer == segment.writer and segment.seq < row.end for row in self.writers)
