"""What a reader of the bucket alone may believe of a snapshot, with the tiers of its fold."""

from typing import NamedTuple

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Span, SyncBucket
from bucketlog.tiered_storage.log_cut import LogSnapshot, ReadablePartition, readable
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.tier_reader import read_batches, read_rows


def readable_in(snapshot: LogSnapshot) -> dict[TopicIdPartition, ReadablePartition]:
    state = fold(snapshot.segments, onto=restored(snapshot.checkpoint))
    return readable(snapshot, partition_tiers(state))


class PartitionContent(NamedTuple):
    """Whole batches from the log start on, where the last of them ends, how many are withheld."""

    log_start: int
    batches: list[bytes]
    end_offset: int
    withheld: int


def contents_of(bucket: SyncBucket) -> dict[TopicIdPartition, PartitionContent]:
    """Of every partition, from the tier and from log segments."""
    parts = readable_in(read_log(bucket, requests_in_flight=1))
    rows = read_rows(bucket, {key: part.rows for key, part in parts.items()}, requests_in_flight=1)
    found = {}
    for key, part in parts.items():
        batches = [
            bytes(data)
            for row in rows[key]
            if row.end > part.log_start
            for walked in read_batches(bucket, key, row)
            for batch, data in walked.batches()
            if batch.next_offset > part.log_start
        ]
        for segment, _, row in part.batches:
            span = Span(row.position, row.length)
            batches.append(bytes(bucket.get(keys.segment(segment), span).data))
        found[key] = PartitionContent(part.log_start, batches, part.end_offset, part.withheld)
    return found
