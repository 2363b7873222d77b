"""Finds a record by its offset, and the batch that has the record."""

from typing import NamedTuple

from bucketlog.console.record_search import BatchLimits, batch_payload
from bucketlog.log_format.records import DecodedRecord, decode_headers, record_spans
from bucketlog.log_reader.batch_scan import ScannedBatch, scan_batches
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals
from bucketlog.tiered_storage.log_cut import ReadablePartition


class OpenedRecord(NamedTuple):
    """A record with its batch, and the first of its `header_count` headers."""

    record: DecodedRecord
    header_count: int
    batch: ScannedBatch
    index_in_batch: int


def open_record(
    bucket: SyncBucket,
    part: ReadablePartition,
    offset: int,
    *,
    seals: PartitionSeals | None,
    limits: BatchLimits,
    headers_max: int,
) -> OpenedRecord | None:
    """Find a record. Returns None if no record has the offset. Raises `CorruptObjectError`,
    `InvalidDataError`, the bucket's errors, and those of `seals`."""
    if not part.log_start <= offset < part.end_offset:
        return None
    batch = next(scan_batches(bucket, part, offset, seals=seals), None)
    if batch is None or batch.header.base_offset > offset or batch.header.is_control:
        return None
    payload = batch_payload(batch.data, batch.header, limits)
    for index, found in enumerate(record_spans(payload, batch.header)):
        if found.offset == offset:
            record = DecodedRecord(
                offset,
                found.timestamp,
                _cut(payload, found.key),
                _cut(payload, found.value),
                decode_headers(payload, found, headers_max=headers_max),
            )
            return OpenedRecord(record, found.header_count, batch, index)
    return None


def _cut(payload: bytes, span: tuple[int, int] | None) -> bytes | None:
    return None if span is None else payload[span[0] : span[1]]
