"""The nouns every package shares: topic ids, partitions, segments, tickets, batches' index rows.

Plain immutable values, no behaviour beyond their own arithmetic and no I/O, so that the pure cores
(fold, planners, codecs) and the thin edges (bucket, Redis, sockets) speak of the same things.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NewType, Self, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes that may be borrowed: whoever keeps one longer than the call says so."""

TopicId = NewType("TopicId", bytes)
"""A topic's id: the 16 bytes of a UUID (KIP-516). Names can be reused, ids never."""

WriterId = NewType("WriterId", str)
"""One incarnation of one broker: 32 lower-case hexadecimal digits of a fresh UUID."""

WallClock: TypeAlias = Callable[[], int]
"""Milliseconds since 1970-01-01 UTC."""

TOPIC_PARTITIONS_MAX = 100_000
"""Limit of the partitions of a topic, in every log."""
MAX_OFFSET = 2**53 - 1
"""Offsets pass through Lua, whose numbers are doubles: a partition ends here, loudly."""

NO_PRODUCER_ID = -1
NO_TIMESTAMP = -1


class TopicIdPartition(NamedTuple):
    topic_id: TopicId
    partition: int


class SegmentId(NamedTuple):
    """Where a log segment is: the `seq`-th object of its writer's chain."""

    writer: WriterId
    seq: int


class Ticket(NamedTuple):
    """The order of segments: the sequencer's epoch, then its counter in that epoch (from 0)."""

    epoch: int
    number: int


class TierRow(NamedTuple):
    """An object of one partition, as the fold names it (docs/format/tier.md): a partition segment,
    or a manifest that lists `segments` of them. Offsets from `start` on and before `end`; sizes in
    bytes."""

    start: int
    end: int
    name: str
    manifest: bool
    size_bytes: int
    batch_bytes: int
    max_timestamp_ms: int
    segments: int = 1


class TierObject(NamedTuple):
    """Where a partition segment or a manifest is."""

    partition: TopicIdPartition
    start: int
    name: str
    manifest: bool = False

    @classmethod
    def of(cls, partition: TopicIdPartition, row: TierRow) -> Self:
        """What the partition's `row` names."""
        return cls(partition, row.start, row.name, row.manifest)


class WaitingSegment(NamedTuple):
    """A visible log segment with batches that are in no tier yet, and the bytes of these."""

    segment: SegmentId
    batch_bytes: int
    created_ms: int


class PartitionTier(NamedTuple):
    """What the fold says of where a partition's batches are: records below `log_start` are gone,
    batches that end at or before `end` are in the objects of `rows`, in log segments no more."""

    log_start: int
    end: int
    rows: tuple[TierRow, ...]

    @property
    def batches_from(self) -> int:
        """Batches that end at or before it are not to be read from log segments."""
        return max(self.log_start, self.end)


StoredObject: TypeAlias = SegmentId | TierObject
"""What holds batches in the bucket, or rows of such objects."""


class BatchIndex(NamedTuple):
    """What a segment's footer says of one record batch (docs/format/segment.md, batch row).

    `position` and `length` are bytes from the object's start; `record_count` is the header's
    count and `last_offset_delta` spans the offsets (they differ only after key compaction).
    """

    base_offset: int
    position: int
    length: int
    record_count: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    attributes: int
    base_sequence: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """One partition in a segment: its hw stamp and its batches in offset order (maybe none)."""

    partition: TopicIdPartition
    hw_stamp: int
    batches: tuple[BatchIndex, ...]


@dataclass(frozen=True, slots=True)
class FactEntry:
    """A fact of the log. `kind` with the top bit set (0x8000) may be skipped by a fold that does
    not know it; any other unknown kind stops the fold."""

    kind: int
    version: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """A segment's footer, decoded: all that the fold, a view and a bucket-only reader need."""

    segment: SegmentId
    ticket: Ticket
    low_ticket: int
    created_ms: int
    partitions: tuple[PartitionIndex, ...]
    facts: tuple[FactEntry, ...]
