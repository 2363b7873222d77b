"""Where a record is: the object, its bytes, the record batch and the producer.

The bucket alone is read: footers, and of tiers the batch headers. The batch is not decoded.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import BatchIndex, TierObject
from bucketlog.log_reader.options import open_log, parse_options
from bucketlog.log_reader.plan import Piece, TaskPiece
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.tier_reader import BatchWalk, get_part, parts_of

READ_BYTES_MAX = 1024 * 1024
"""Of a tier's object, if its index is sparser, the index decides."""


class BatchLocation(NamedTuple):
    """`kind` is "segment" (a log segment) or "tier" (an object of one partition)."""

    key: str
    kind: str
    row: BatchIndex


def locate_batch(url: str, topic: str, partition: int, offset: int) -> BatchLocation:
    """The batch of an offset. Raises `ConfigurationError` for an offset that no batch has,
    `CorruptObjectError`, and the bucket's errors."""
    options = parse_options(
        {
            "path": url,
            "assign": json.dumps({topic: [partition]}),
            "startingOffsets": json.dumps({topic: {partition: offset}}),
            "endingOffsets": json.dumps({topic: {partition: offset + 1}}),
            "isolation.level": "read_uncommitted",
            "maxPartitionBytes": str(READ_BYTES_MAX),
        }
    )
    with closing(open_log(options)) as bucket:
        for task in planned_tasks(bucket, options):
            for piece in task:
                for key, row in _batches(bucket, piece):
                    if row.base_offset <= offset < row.next_offset:
                        kind = "segment" if isinstance(piece, Piece) else "tier"
                        return BatchLocation(key, kind, row)
    raise ConfigurationError(
        f"no batch holds {topic}[{partition}]@{offset}",
        remedy="compaction removed it, or it was never written; other offsets are there",
    )


def _batches(bucket: SyncBucket, piece: TaskPiece) -> Iterator[tuple[str, BatchIndex]]:
    if isinstance(piece, Piece):
        key = keys.segment(piece.segment)
        yield from ((key, row) for run in piece.runs for row in run.rows)
        return
    key = keys.tier_object(TierObject.of(piece.partition, piece.row))
    walk = BatchWalk(piece.partition, piece.row, piece.span)
    for span in parts_of(piece.span):
        yield from ((key, row) for row in walk.feed(get_part(bucket, key, span)).rows)
