"""What a replay reads, decided once: the tasks, and what they must come to. Spark-free.

Invariant: the plan names objects and offsets of one moment, so that a growing log changes nothing.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from bucketlog.log_reader.options import ReadOptions, open_log, parse_options
from bucketlog.log_reader.plan import Piece, TaskPiece, count_records, wanted_rows
from bucketlog.log_reader.planning import no_collection, read_wanted, tasks_of
from bucketlog.log_reader.ranges import OffsetRange
from bucketlog.log_reader.withheld import withheld_of
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.tier_reader import read_indexes

TASK_BYTES_MAX = 128 * 1024 * 1024
"""Where `maxPartitionBytes` is not given: a Spark task costs about 0.1 s beside its work."""
EVEN_BYTES_MIN = 16 * 1024 * 1024
"""Below it, fewer files are worth more than cores that all work."""
_TASKS_TO_ROUND = 8
"""With so many tasks a core, it hardly matters that some cores have one more."""


@dataclass(frozen=True, slots=True)
class ReplayPlan:
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
    with closing(open_log(options)) as bucket, no_collection():
        ranges, parts = read_wanted(bucket, options)
        indexes = read_indexes(
            bucket, ((wanted.partition, row) for wanted, row in wanted_rows(ranges, parts))
        )
        tasks = tasks_of(bucket, options, ranges, parts)
        if options.min_partitions is None and _bytes_of(tasks) >= EVEN_BYTES_MIN:
            even = -(-len(tasks) // cores()) * cores()
            if len(tasks) < even <= _TASKS_TO_ROUND * cores():
                tasks = tasks_of(bucket, replace(options, min_partitions=even), ranges, parts)
        records = count_records(ranges, parts, indexes)
    return ReplayPlan(
        options,
        tuple(ranges),
        tuple(tasks),
        records,
        _bytes_of(tasks),
        sum(each.records for each in withheld_of(ranges, parts, options.ending)),
    )


def _bytes_of(tasks: Iterable[Sequence[TaskPiece]]) -> int:
    return sum(stored_bytes(piece) for task in tasks for piece in task)


def stored_bytes(piece: TaskPiece) -> int:
    return piece.length if isinstance(piece, Piece) else piece.span.length


def smaller_tasks(plan: ReplayPlan, most_bytes: int) -> list[tuple[TaskPiece, ...]]:
    """The plan's tasks, in its order, cut between pieces at about `most_bytes`."""
    small: list[tuple[TaskPiece, ...]] = []
    for task in plan.tasks:
        together: list[TaskPiece] = []
        size = 0
        for piece in task:
            if together and size + stored_bytes(piece) > most_bytes:
                small.append(tuple(together))
                together, size = [], 0
            together.append(piece)
            size += stored_bytes(piece)
        small.append(tuple(together))
    return small
