"""What a replay reads, decided once: the tasks, and what they must come to. Spark-free.

Invariant: the plan names objects and offsets of one moment, so that a growing log changes nothing.
"""

from contextlib import closing
from dataclasses import dataclass

from spark_jobs.options import ReadOptions
from spark_jobs.plan import (
    Piece,
    TaskLimits,
    TaskPiece,
    count_records,
    plan_tasks,
    wanted_rows,
)
from spark_jobs.planning import read_wanted
from spark_jobs.ranges import OffsetRange
from tiered_storage.location import open_sync_bucket
from tiered_storage.tier_reader import read_indexes


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """`records` is what footers and indexes promise, None where a range cuts batches;
    `stored_bytes` are those of the batches, as they are compressed."""

    options: ReadOptions
    ranges: tuple[OffsetRange, ...]
    tasks: tuple[tuple[TaskPiece, ...], ...]
    records: int | None
    stored_bytes: int

    @property
    def partitions(self) -> list[tuple[str, int]]:
        return [(wanted.topic, wanted.partition.partition) for wanted in self.ranges]


def plan_replay(options: ReadOptions) -> ReplayPlan:
    """Raises `ConfigurationError`, `CorruptObjectError` and the bucket's errors."""
    with closing(open_sync_bucket(options.url, s3=options.s3)) as bucket:
        ranges, parts = read_wanted(bucket, options)
        rows = ((wanted.partition, row) for wanted, row in wanted_rows(ranges, parts))
        indexes = read_indexes(bucket, rows)
    limits = TaskLimits(options.max_partition_bytes, options.min_partitions)
    tasks = tuple(plan_tasks(ranges, parts, limits, indexes))
    return ReplayPlan(
        options,
        tuple(ranges),
        tasks,
        count_records(ranges, parts, indexes),
        sum(stored_bytes(piece) for task in tasks for piece in task),
    )


def stored_bytes(piece: TaskPiece) -> int:
    return piece.length if isinstance(piece, Piece) else piece.span.length
