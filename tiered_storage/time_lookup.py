"""Looking up an offset by time in the bucket alone: the first record that is as late or later.

Kafka's ListOffsets (KIP-79) for readers without a broker. Invariant: the answer is as if all
records of the partition were looked at in offset order, from the log start on; only batches whose
own highest timestamp is high enough are opened, found by rows, then by a sparse index.
"""

from collections.abc import Iterator

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.compression import MAX_DECOMPRESSED_BYTES
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import Buffer, TierRow, TopicIdPartition
from bucketlog.log_format.records import record_spans, records_payload
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

SCAN_BYTES_MAX = 4 * 1024 * 1024
"""Most bytes of an object that are read at once if an index cannot say which batch to read."""


def first_offset_since(
    bucket: SyncBucket,
    part: ReadablePartition,
    timestamp_ms: int,
    *,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    seals: PartitionSeals | None = None,
) -> int | None:
    """Return the first offset at or after the log start whose record has at least that timestamp;
    None if no record has. `seals` open encrypted batches. Raises `CorruptObjectError`, the bucket's
    errors, and those of `seals`."""
    for key, position, stored, stored_header in _candidates(bucket, part, timestamp_ms):
        batch, header = stored, stored_header
        if header.is_sealed and seals is not None:
            opened = seals.open(stored, header)
            batch, header = opened.joined(), opened.header
        try:
            payload = bytes(
                records_payload(batch, header, max_decompressed_bytes=max_decompressed_bytes)
            )
            for record in record_spans(payload, header):
                if record.offset >= part.log_start and record.timestamp >= timestamp_ms:
                    return record.offset
        except InvalidDataError as error:
            raise CorruptObjectError(key, position, error.message) from error
    return None


def _candidates(
    bucket: SyncBucket, part: ReadablePartition, timestamp_ms: int
) -> Iterator[tuple[str, int, Buffer, BatchHeader]]:
    """Batches that may hold the record, in offset order: key, position, bytes, header."""
    for row in part.rows:
        if row.max_timestamp_ms < timestamp_ms or row.end <= part.log_start:
            continue
        listed = [row]
        if row.manifest:
            listed = list(read_rows(bucket, {part.partition: [row]})[part.partition])
        for each in listed:
            if each.max_timestamp_ms >= timestamp_ms and each.end > part.log_start:
                yield from _in_object(bucket, part.partition, each, timestamp_ms)
    for segment, _, found in part.batches:
        if found.max_timestamp >= timestamp_ms and found.next_offset > part.log_start:
            key = keys.segment(segment)
            batch = get_part(bucket, key, Span(found.position, found.length))
            check_batch(key, batch, found)
            yield key, found.position, batch, read_header(batch)


def _in_object(
    bucket: SyncBucket, partition: TopicIdPartition, row: TierRow, timestamp_ms: int
) -> Iterator[tuple[str, int, Buffer, BatchHeader]]:
    (index,) = read_indexes(bucket, [(partition, row)]).values()
    position = index.begin_since(timestamp_ms)
    if position is None:
        return
    for key, found, batch in walk_from(
        bucket, partition, row, index, position, first_bytes=1, bytes_max=SCAN_BYTES_MAX
    ):
        if found.max_timestamp >= timestamp_ms:
            yield key, found.position, batch, read_header(batch)
