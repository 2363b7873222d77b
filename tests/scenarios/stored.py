"""What really stands in the bucket: every batch of every topic, checked byte by byte."""

from collections import defaultdict
from typing import NamedTuple

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.metadata.facts import TopicCreated, decode_fact, topic_id_of
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.segment import check_segment, is_seal


class StoredBatch(NamedTuple):
    """`data` is the whole batch, as it stands in the object."""

    partition: int
    header: BatchHeader
    data: bytes


def stored_batches(bucket: SyncBucket) -> dict[str, list[StoredBatch]]:
    """By topic name, in offset order per partition. Every segment's footer, CRCs and offsets are
    checked on the way (`CorruptObjectError`); topics that were deleted are in it too."""
    names: dict[bytes, str] = {}
    batches: dict[bytes, list[StoredBatch]] = defaultdict(list)
    for info in bucket.list(keys.LOG):
        if is_seal(info.size_bytes):
            continue
        data = bytes(bucket.get(info.key).data)
        index = check_segment(info.key, data)
        for fact in map(decode_fact, index.facts):
            if isinstance(fact, TopicCreated):
                names[topic_id_of(fact)] = fact.name
        for part in index.partitions:
            for row in part.batches:
                batch = data[row.position : row.position + row.length]
                stored = StoredBatch(part.partition.partition, read_header(batch), batch)
                batches[part.partition.topic_id].append(stored)
    return {
        names[topic]: sorted(rows, key=lambda row: (row.partition, row.header.base_offset))
        for topic, rows in batches.items()
    }
