"""What the driver asks the bucket before any task runs: the log once; of the tiers that are wanted
the manifests, a GET each; the indexes of objects to cut, a GET each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bucketlog.errors import ConfigurationError
from bucketlog.model import TierRow, TopicPartition
from metadata.checkpoint import restored
from metadata.fold import fold
from metadata.partition_tiers import partition_tiers
from spark_jobs.options import ReadOptions
from spark_jobs.plan import TaskLimits, TaskPiece, objects_to_cut, plan_tasks, wanted_rows
from spark_jobs.ranges import OffsetRange, resolve_ranges
from tiered_storage.bucket import SyncBucket
from tiered_storage.log_cut import ReadablePartition, readable
from tiered_storage.log_reader import read_log
from tiered_storage.tier_reader import read_indexes, read_rows

Parts = Mapping[TopicPartition, ReadablePartition]


def read_wanted(bucket: SyncBucket, options: ReadOptions) -> tuple[list[OffsetRange], Parts]:
    """What is wanted, and where that stands: no row is a manifest's any more."""
    snapshot = read_log(bucket)
    if snapshot.is_empty:
        raise ConfigurationError(
            f"there is no log at {options.url}, or it is empty",
            remedy="check the path; `bucketlog dev --data DIR` keeps its bucket in DIR/bucket",
        )
    before = restored(snapshot.checkpoint, keep_producers=False, keep_groups=False)
    state = fold(snapshot.segments, onto=before)
    parts = readable(snapshot, partition_tiers(state))
    ranges = resolve_ranges(options, state, parts)
    return ranges, with_segments(bucket, ranges, parts)


def with_segments(bucket: SyncBucket, ranges: Sequence[OffsetRange], parts: Parts) -> Parts:
    """The partitions of the ranges, with those rows alone that are wanted of their tiers, and the
    rows that manifests list in their place."""
    tiers: dict[TopicPartition, list[TierRow]] = {wanted.partition: [] for wanted in ranges}
    for wanted, row in wanted_rows(ranges, parts):
        tiers[wanted.partition].append(row)
    return {
        partition: replace(parts[partition], rows=rows)
        for partition, rows in read_rows(bucket, tiers).items()
    }


def planned_tasks(bucket: SyncBucket, options: ReadOptions) -> list[tuple[TaskPiece, ...]]:
    limits = TaskLimits(options.max_partition_bytes, options.min_partitions)
    ranges, parts = read_wanted(bucket, options)
    indexes = read_indexes(bucket, objects_to_cut(ranges, parts, limits))
    return plan_tasks(ranges, parts, limits, indexes)
