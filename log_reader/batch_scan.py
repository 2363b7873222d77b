"""The batches of one partition from an offset on, one at a time, each with the place of its bytes.

For readers that look at a few records and stop. Invariants: a batch is yielded after it agrees with
its footer row and its CRC; nothing is read before the caller asks for it, but for the rest of a
range GET; ranges begin small and grow, so that the first record costs few bytes.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.checkpoint import StoredBatch
from bucketlog.log_format.model import Buffer, TierRow
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Span, SyncBucket
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals
from bucketlog.tiered_storage.log_cut import ReadablePartition
from bucketlog.tiered_storage.segment import check_batch
from bucketlog.tiered_storage.tier_reader import (
    get_part,
    read_indexes,
    read_rows,
    walk_from,
)

FIRST_GET_BYTES = 64 * 1024
GET_BYTES_MAX = 4 * 1024 * 1024


class ScannedBatch(NamedTuple):
    """A batch at bytes `position` to `position + length` of the object `key`. `data` and `header`
    are in the clear; `is_sealed` says whether the stored batch is encrypted."""

    key: str
    position: int
    length: int
    header: BatchHeader
    data: Buffer
    is_sealed: bool


def scan_batches(
    bucket: SyncBucket,
    part: ReadablePartition,
    start: int,
    *,
    seals: PartitionSeals | None = None,
) -> Iterator[ScannedBatch]:
    """The batches that end after offset `start` and after the log start, in offset order; first
    those of the tier. Rows of `part` may be those of manifests. `seals` open encrypted batches.
    Raises `CorruptObjectError`, the bucket's errors, and those of `seals`."""
    start = max(start, part.log_start)
    for key, position, stored in _stored(bucket, part, start):
        header = read_header(stored)
        if header.is_sealed and seals is not None:
            opened = seals.open(stored, header)
            yield ScannedBatch(key, position, len(stored), opened.header, opened.joined(), True)
        else:
            yield ScannedBatch(key, position, len(stored), header, stored, header.is_sealed)


def _stored(
    bucket: SyncBucket, part: ReadablePartition, start: int
) -> Iterator[tuple[str, int, memoryview]]:
    for row in part.rows:
        if row.end <= start:
            continue
        listed: Sequence[TierRow] = [row]
        if row.manifest:
            listed = read_rows(bucket, {part.partition: [row]})[part.partition]
        for each in listed:
            if each.end > start:
                yield from _in_object(bucket, part, each, start)
    first = bisect_right(part.batches, start, key=lambda batch: batch.row.next_offset)
    yield from _in_segments(bucket, part.batches, first)


def _in_object(
    bucket: SyncBucket, part: ReadablePartition, row: TierRow, start: int
) -> Iterator[tuple[str, int, memoryview]]:
    (index,) = read_indexes(bucket, [(part.partition, row)]).values()
    position = index.begin_at(start)
    if position is None:
        return
    for key, found, batch in walk_from(
        bucket,
        part.partition,
        row,
        index,
        position,
        first_bytes=FIRST_GET_BYTES,
        bytes_max=GET_BYTES_MAX,
    ):
        if found.next_offset > start:
            yield key, found.position, batch


def _in_segments(
    bucket: SyncBucket, batches: Sequence[StoredBatch], first: int
) -> Iterator[tuple[str, int, memoryview]]:
    """Batches that are neighbours in one segment share a GET, up to a length that grows."""
    length_max = FIRST_GET_BYTES
    while first < len(batches):
        segment, begin = batches[first].segment, batches[first].row.position
        end, stop = begin + batches[first].row.length, first + 1
        while stop < len(batches):
            row = batches[stop].row
            is_neighbour = batches[stop].segment == segment and row.position == end
            if not is_neighbour or end + row.length - begin > length_max:
                break
            end, stop = end + row.length, stop + 1
        key = keys.segment(segment)
        data = memoryview(get_part(bucket, key, Span(begin, end - begin)))
        for at in range(first, stop):
            row = batches[at].row
            batch = data[row.position - begin : row.position - begin + row.length]
            check_batch(key, batch, row)
            yield key, row.position, batch
        first, length_max = stop, min(length_max * 4, GET_BYTES_MAX)
