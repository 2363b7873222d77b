"""What a replay reads, decided once: the tasks, and what they must come to. Spark-free.

Invariant: the plan names objects and offsets of one moment, so that a growing log changes nothing.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_reader.fetch import range_gets
from bucketlog.log_reader.options import ReadOptions, open_log, parse_options
from bucketlog.log_reader.plan import Piece, TaskPiece, count_records, wanted_rows
from bucketlog.log_reader.planning import Parts, no_collection, read_wanted, tasks_of
from bucketlog.log_reader.ranges import OffsetRange
from bucketlog.log_reader.withheld import withheld_of
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.log_cut import LogSnapshot
from bucketlog.tiered_storage.tier_reader import read_indexes

TASK_BYTES_MAX = 128 * 1024 * 1024
"""Where `maxPartitionBytes` is not given: a Spark task costs about 0.1 s beside its work."""
EVEN_BYTES_MIN = 16 * 1024 * 1024
"""Below it, fewer files are worth more than cores that all work."""
_TASKS_TO_ROUND = 8
"""With so many tasks a core, it hardly matters that some cores have one more."""


@dataclass(frozen=True, slots=True, repr=False)
class ReplayPlan(DisplayedObject):
    """`records` is what footers and indexes promise, None where a range cuts batches;
    `stored_bytes` are those of the batches, as they are compressed. `withheld_records`
    counts committed records that are not in the plan, because a broker may still be writing offsets
    below them (`withheld`)."""

    options: ReadOptions
    ranges: tuple[OffsetRange, ...]
    tasks: tuple[tuple[TaskPiece, ...], ...]
    records: int | None
    stored_bytes: int
    withheld_records: int

    def _description(self) -> Description:
        return Description(
            {
                "records": self.records,
                "stored_bytes": self.stored_bytes,
                "partitions": len(self.ranges),
                "tasks": len(self.tasks),
                "withheld_records": self.withheld_records or None,
            },
            ("topic", "partition", "start", "end"),
            [(each.topic, each.partition.partition, each.start, each.end) for each in self.ranges],
        )

    @property
    def partitions(self) -> list[tuple[str, int]]:
        return [(wanted.topic, wanted.partition.partition) for wanted in self.ranges]

    @property
    def pinned(self) -> dict[str, str]:
        """Options of the source that stand for the ranges of this plan."""
        starting: dict[str, dict[int, int]] = {}
        ending: dict[str, dict[int, int]] = {}
        for topic, partition, start, end in self.ranges:
            starting.setdefault(topic, {})[partition.partition] = start
            ending.setdefault(topic, {})[partition.partition] = end
        return {"startingOffsets": json.dumps(starting), "endingOffsets": json.dumps(ending)}

    def open_source(self) -> SyncBucket:
        return open_log(self.options)


def replay_options(options: Mapping[str, str]) -> ReadOptions:
    """The source's options, with tasks of a replay's size. Raises `ConfigurationError`."""
    if "maxpartitionbytes" in {name.lower() for name in options}:
        return parse_options(options)
    return replace(parse_options(options), max_partition_bytes=TASK_BYTES_MAX)


def plan_replay(options: ReadOptions, *, cores: Callable[[], int] = lambda: 1) -> ReplayPlan:
    """A few tasks are made as many as give each of `cores` the same number.

    Raises `ConfigurationError`, `CorruptObjectError` and the bucket's errors.
    """
    with closing(open_log(options)) as bucket:
        return plan_replay_of(bucket, options, cores=cores)


def plan_replay_of(
    bucket: SyncBucket,
    options: ReadOptions,
    *,
    cores: Callable[[], int],
    snapshot: LogSnapshot | None = None,
) -> ReplayPlan:
    """The plan of `plan_replay`, for a bucket that is open. Without a `snapshot`, the log is read.
    Raises as `plan_replay` does."""
    with no_collection():
        ranges, parts = read_wanted(bucket, options, snapshot)
        indexes = read_indexes(
            bucket, ((wanted.partition, row) for wanted, row in wanted_rows(ranges, parts))
        )
        tasks = _even_tasks(bucket, options, ranges, parts, cores)
        records = count_records(ranges, parts, indexes)
    return ReplayPlan(
        options,
        tuple(ranges),
        tuple(tasks),
        records,
        _bytes_of(tasks),
        sum(each.records for each in withheld_of(ranges, parts, options.ending)),
    )


class PlannedReads(NamedTuple):
    """The reads of a plan: the number of objects, and of their GET requests."""

    objects: int
    gets: int


def planned_reads(plan: ReplayPlan) -> PlannedReads:
    """Return the reads of a plan's tasks. Requests repeated after failures do not count."""
    wanted = [each.key for task in plan.tasks for each in range_gets(task)]
    return PlannedReads(len(set(wanted)), len(wanted))


def plan_batch(
    bucket: SyncBucket,
    options: ReadOptions,
    *,
    cores: Callable[[], int],
    snapshot: LogSnapshot | None = None,
) -> list[tuple[TaskPiece, ...]]:
    """The tasks of a batch read, as many as give each of `cores` the same number: a task of
    well-compressed data may be a long one. Without a `snapshot`, the log is read. Raises as
    `plan_replay` does."""
    with no_collection():
        ranges, parts = read_wanted(bucket, options, snapshot)
        return _even_tasks(bucket, options, ranges, parts, cores)


def _even_tasks(
    bucket: SyncBucket,
    options: ReadOptions,
    ranges: Sequence[OffsetRange],
    parts: Parts,
    cores: Callable[[], int],
) -> list[tuple[TaskPiece, ...]]:
    tasks = tasks_of(bucket, options, ranges, parts)
    if options.min_partitions is None and _bytes_of(tasks) >= EVEN_BYTES_MIN:
        even = -(-len(tasks) // cores()) * cores()
        if len(tasks) < even <= _TASKS_TO_ROUND * cores():
            return tasks_of(bucket, replace(options, min_partitions=even), ranges, parts)
    return tasks


def _bytes_of(tasks: Iterable[Sequence[TaskPiece]]) -> int:
    return sum(stored_bytes(piece) for task in tasks for piece in task)


def stored_bytes(piece: TaskPiece) -> int:
    return piece.length if isinstance(piece, Piece) else piece.span.length
