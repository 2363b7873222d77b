"""Reading tiers from the bucket alone: the contents of the objects that rows name.

Invariants: a batch is handed out once its CRC is right, and its offsets are above those before and
within its row's. Damage is an error and names the object; nothing is skipped. A missing object is
an error, too: it was lost, or the reader has taken longer than the safety age after which objects
that left a tier are deleted (`tiered_storage.log_cut`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bucketlog.log_format.batch import LEADER_EPOCH, crc_holds, read_header
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError, ObjectNotFoundError
from bucketlog.log_format.model import BatchIndex, Buffer, TierObject, TierRow, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Span, SyncBucket
from bucketlog.tiered_storage.concurrent_requests import request_each
from bucketlog.tiered_storage.manifest import decode_manifest, read_bytes
from bucketlog.tiered_storage.partition_segment import (
    HEADER,
    PartitionSegmentIndex,
    decode_index,
    index_span,
    walk_batches,
)
from bucketlog.tiered_storage.segment import batch_row

GET_BYTES = 16 * 1024 * 1024
REQUESTS_IN_FLIGHT = 16
GONE = "it is gone"
_REMEDY = (
    "begin again: what has left a tier is deleted a safety age later; if it is still named then, "
    "restore it from a version or a copy of the bucket"
)


def get_part(bucket: SyncBucket, key: str, span: Span) -> Buffer:
    """Return exactly those bytes. Raises `CorruptObjectError` if they are missing."""
    try:
        data = bucket.get(key, span).data
    except ObjectNotFoundError as error:
        raise CorruptObjectError(key, span.start, GONE, remedy=_REMEDY) from error
    if len(data) != span.length:
        at = span.start + len(data)
        raise CorruptObjectError(key, at, f"{len(data)} of {span.length} bytes are there")
    return data


def batches_span(row: TierRow) -> Span:
    """Return the span of the batches in the partition segment that `row` names."""
    return Span(len(HEADER), row.batch_bytes)


def walk_from(
    bucket: SyncBucket,
    partition: TopicIdPartition,
    row: TierRow,
    index: PartitionSegmentIndex,
    position: int,
    *,
    first_bytes: int,
    bytes_max: int,
) -> Iterator[tuple[str, BatchIndex, memoryview]]:
    """Return the batches of the partition segment that `row` names, from the one at `position` on:
    key, place, bytes.

    Each range GET ends where a block does. The first has `first_bytes`, later ones grow up to
    `bytes_max`. Raises `CorruptObjectError`, and the bucket's errors.
    """
    whole = batches_span(row)
    end, length = whole.start + whole.length, first_bytes
    walk = BatchWalk(partition, row, Span(position, end - position))
    while position < end:
        stop = index.boundary(min(position + length, end))
        walked = walk.feed(get_part(bucket, walk.key, Span(position, stop - position)))
        for found, batch in walked.batches():
            yield walk.key, found, batch
        length = min(max(stop - position, length) * 4, bytes_max)
        position = stop
    walk.finish()


def parts_of(span: Span, most_bytes: int = GET_BYTES) -> Iterator[Span]:
    """Return `span` in pieces of at most `most_bytes`."""
    end = span.start + span.length
    for start in range(span.start, end, most_bytes):
        yield Span(start, min(most_bytes, end - start))


def read_rows(
    bucket: SyncBucket,
    tiers: Mapping[TopicIdPartition, Iterable[TierRow]],
    *,
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
) -> dict[TopicIdPartition, tuple[TierRow, ...]]:
    """The rows of partition segments alone: each manifest's own in its place, one GET each."""
    wanted = [(partition, row) for partition, rows in tiers.items() for row in rows if row.manifest]
    listed: dict[TierObject, Sequence[TierRow]] = {}
    found = request_each(
        lambda one: _read_manifest(bucket, *one), wanted, requests_in_flight=requests_in_flight
    )
    for (partition, row), rows in zip(wanted, found, strict=True):
        listed[TierObject.of(partition, row)] = rows
    return {
        partition: tuple(
            each for row in rows for each in listed.get(TierObject.of(partition, row), (row,))
        )
        for partition, rows in tiers.items()
    }


def _read_manifest(bucket: SyncBucket, partition: TopicIdPartition, row: TierRow) -> list[TierRow]:
    there = TierObject.of(partition, row)
    key = keys.tier_object(there)
    rows = decode_manifest(there, get_part(bucket, key, Span(0, read_bytes(row))))
    if rows[-1].end > row.end:
        raise CorruptObjectError(key, 0, f"it lists offsets up to {rows[-1].end}, not {row.end}")
    return rows


def read_indexes(
    bucket: SyncBucket,
    wanted: Iterable[tuple[TopicIdPartition, TierRow]],
    *,
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
) -> dict[TierObject, PartitionSegmentIndex]:
    """Indexes of partition segments, one GET each. Raises as `decode_index`."""
    asked = list(wanted)
    found = request_each(
        lambda one: _read_index(bucket, *one), asked, requests_in_flight=requests_in_flight
    )
    return {TierObject.of(*one): index for one, index in zip(asked, found, strict=True)}


def _read_index(
    bucket: SyncBucket, partition: TopicIdPartition, row: TierRow
) -> PartitionSegmentIndex:
    there = TierObject.of(partition, row)
    tail = get_part(bucket, keys.tier_object(there), index_span(row))
    return decode_index(there, tail, row.size_bytes)


class BatchSpan(NamedTuple):
    """A range of whole batches; `data` begins at byte `position` of the object, as positions in
    `rows` do."""

    data: Buffer
    position: int
    rows: tuple[BatchIndex, ...]

    def batches(self) -> Iterator[tuple[BatchIndex, memoryview]]:
        view = memoryview(self.data)
        for row in self.rows:
            at = row.position - self.position
            yield row, view[at : at + row.length]


class BatchWalk:
    """The batches of a part of a partition segment, from ranges of it that come one after another.
    `span` is the whole part, which begins and ends with a batch."""

    def __init__(self, partition: TopicIdPartition, row: TierRow, span: Span) -> None:
        self.key = keys.tier_object(TierObject.of(partition, row))
        self._row = row
        self._position = span.start
        self._end = span.start + span.length
        self._expected = row.start
        self._rest: Buffer = b""

    def feed(self, data: Buffer) -> BatchSpan:
        """The batches that end in `data`, the next range. Raises `CorruptObjectError`."""
        if len(self._rest):
            data = b"".join((self._rest, data))
        view = memoryview(data)
        start, rows = self._position, []
        for placed in walk_batches(self.key, data, start):
            batch = view[placed.position - start : placed.position - start + placed.length]
            rows.append(self._checked(batch, placed.position))
            self._position = placed.position + placed.length
        self._rest = bytes(view[self._position - start :])
        return BatchSpan(data, start, tuple(rows))

    def _checked(self, batch: memoryview, position: int) -> BatchIndex:
        try:
            header = read_header(batch)
        except InvalidDataError as error:
            raise CorruptObjectError(self.key, position, error.message) from error
        if not self._expected <= header.base_offset < header.next_offset <= self._row.end:
            raise CorruptObjectError(
                self.key, position, f"offset {header.base_offset} is out of place"
            )
        if header.leader_epoch != LEADER_EPOCH:
            raise CorruptObjectError(
                self.key, position, f"leader epoch {header.leader_epoch} of a batch"
            )
        if not crc_holds(batch, header):
            raise CorruptObjectError(
                self.key,
                position,
                f"the CRC of the batch at offset {header.base_offset} does not hold",
            )
        self._expected = header.next_offset
        return batch_row(header, header.base_offset, position, len(batch))

    def finish(self) -> None:
        """Note that the last range was fed. Raises `CorruptObjectError` if it ends inside a
        batch."""
        if self._position != self._end:
            raise CorruptObjectError(
                self.key, self._position, f"no batch ends at byte {self._end}, as it should"
            )


def read_batches(
    bucket: SyncBucket, partition: TopicIdPartition, row: TierRow
) -> Iterator[BatchSpan]:
    """Return all batches of a partition segment, by ranges of at most `GET_BYTES`."""
    walk = BatchWalk(partition, row, batches_span(row))
    for span in parts_of(batches_span(row)):
        yield walk.feed(get_part(bucket, walk.key, span))
    walk.finish()
