"""Manifests and sparse indexes, which locate batches in a partition's tier. They are read once and
kept.

Invariants: an object never changes under its key, so nothing that is kept is ever stale. The kept
bytes are bounded. Callers that ask for the same object at the same time share one request of the
reader. Format: docs/format/tier.md.
"""

from bisect import bisect_right
from typing import NamedTuple

from bucketlog.log_format.lru import LruCache
from bucketlog.log_format.model import TierObject, TierRow, TopicIdPartition
from bucketlog.metadata.partition_log import PartitionLog, StoredRange
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.tiered_storage.block_index import ROW_BYTES
from bucketlog.tiered_storage.manifest import decode_manifest, read_bytes
from bucketlog.tiered_storage.partition_segment import (
    HEADER,
    PartitionSegmentIndex,
    decode_index,
    index_span,
)

TIER_ROW_BYTES = 400
"""Estimated memory of a manifest's row. Each kept object takes `KEPT_BYTES` more."""
KEPT_BYTES = 500


class SegmentRow(NamedTuple):
    """A partition segment that a row names. Batches are from `begin` to `end`, positions in the
    object. `following` is the next one, if it is known without a request."""

    there: TierObject
    row: TierRow
    following: "SegmentRow | None" = None

    @property
    def begin(self) -> int:
        return len(HEADER)

    @property
    def end(self) -> int:
        return len(HEADER) + self.row.batch_bytes


class TierObjects:
    def __init__(self, reader: RangeReader, *, bytes_max: int) -> None:
        self._reader = reader
        self._kept: LruCache[TierObject, list[TierRow] | PartitionSegmentIndex] = LruCache(
            bytes_max
        )

    async def segment_at(
        self, partition: TopicIdPartition, log: PartitionLog, offset: int
    ) -> SegmentRow | None:
        """The partition segment that may hold `offset`, or the next one above it; None where
        batches from there on are in log segments. Raises `BucketError`, `CorruptObjectError`,
        `InvalidDataError`."""
        while offset < log.batches_from:
            rows, at = log.tier.rows, log.tier.row_at(offset)
            if at == len(rows):
                break
            row, above = rows[at], rows[at + 1] if at + 1 < len(rows) else None
            if not row.manifest:
                return _segment_row(partition, row, above)
            listed = await self.listed(partition, row)
            at = bisect_right(listed, offset, key=lambda each: each.end)
            if at < len(listed):
                above = listed[at + 1] if at + 1 < len(listed) else above
                return _segment_row(partition, listed[at], above)
            offset = row.end
        return None

    async def listed(self, partition: TopicIdPartition, manifest: TierRow) -> list[TierRow]:
        there = TierObject.of(partition, manifest)
        kept = self._kept.find(there)
        if not isinstance(kept, list):
            data = await self._reader.read_aside(StoredRange(there, 0, read_bytes(manifest)))
            kept = decode_manifest(there, data)
            self._kept.keep(there, kept, KEPT_BYTES + TIER_ROW_BYTES * len(kept))
        return kept

    async def index(self, segment: SegmentRow) -> PartitionSegmentIndex:
        kept = self._kept.find(segment.there)
        if not isinstance(kept, PartitionSegmentIndex):
            span = index_span(segment.row)
            data = await self._reader.read_aside(
                StoredRange(segment.there, span.start, span.length)
            )
            kept = decode_index(segment.there, data, segment.row.size_bytes)
            self._kept.keep(segment.there, kept, KEPT_BYTES + ROW_BYTES * len(kept.blocks))
        return kept


def _segment_row(partition: TopicIdPartition, row: TierRow, above: TierRow | None) -> SegmentRow:
    following = None
    if above is not None and not above.manifest:
        following = SegmentRow(TierObject.of(partition, above), above)
    return SegmentRow(TierObject.of(partition, row), row, following)
