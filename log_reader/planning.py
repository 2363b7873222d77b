"""What the driver asks the bucket before any task runs: the log once; of the tiers that are needed
the manifests, a GET each; the indexes of objects to cut, a GET each; where a point in time was
given, what finds it."""

import gc
import logging
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError
from bucketlog.log_format.model import MAX_OFFSET, TierRow, TopicIdPartition
from bucketlog.log_reader.bounds import Bound
from bucketlog.log_reader.damage import placing, without_footer
from bucketlog.log_reader.isolation import (
    PartitionsInTransactions,
    committed_only,
    transactions_of,
)
from bucketlog.log_reader.options import ReadOptions, check_batch
from bucketlog.log_reader.plan import TaskLimits, TaskPiece, objects_to_cut, plan_tasks, wanted_rows
from bucketlog.log_reader.ranges import (
    OffsetRange,
    SelectedPartition,
    Times,
    check_topic_ids,
    resolve_ranges,
    select,
    wanted_times,
)
from bucketlog.log_reader.unsealing import with_data_keys
from bucketlog.log_reader.withheld import warning_of, withheld_of
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.reading_keys import partition_seals
from bucketlog.tiered_storage.log_cut import LogSnapshot, ReadablePartition, readable
from bucketlog.tiered_storage.log_cut_reading import LogReader
from bucketlog.tiered_storage.tier_reader import read_indexes, read_rows
from bucketlog.tiered_storage.time_lookup import first_offset_since

logger = logging.getLogger(__name__)

Parts = Mapping[TopicIdPartition, ReadablePartition]
LOOKUPS_IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class SelectedLog:
    """The selected part of the log at one moment. Rows of `parts` may be manifests'."""

    selected: Sequence[SelectedPartition]
    parts: Parts


class LogFollower:
    """Looks at the log again and again, for one query. Queries can share a `reader` of `bucket`.
    Errors of `look`: `ConfigurationError`, `CorruptObjectError`, `InvalidDataError` and the
    bucket's."""

    def __init__(
        self, bucket: SyncBucket, options: ReadOptions, reader: LogReader | None = None
    ) -> None:
        self._options = options
        self._bucket = bucket
        self._reader = reader or LogReader(bucket)

    def look(self, *, present_only: bool = False) -> SelectedLog:
        """Return the present log, by topics, partitions and isolation level. `present_only` is that
        of `select`."""
        with no_collection():
            return selected_log(self.read(), self._options, present_only=present_only)

    def read(self) -> LogSnapshot:
        """Return the whole log as it is now."""
        try:
            return self._reader.read()
        except CorruptObjectError as error:
            selection = self._options.selection
            raise without_footer(
                self._bucket, error, lambda state: select(selection, state, present_only=True)
            ) from error


def selected_log(
    snapshot: LogSnapshot, options: ReadOptions, *, present_only: bool = False
) -> SelectedLog:
    """Return the part of `snapshot` that `options` select. `present_only` is that of `select`.
    Raises `ConfigurationError` and `InvalidDataError`."""
    before, state = _folded(snapshot, options.url)
    selected = select(options.selection, state, present_only=present_only)
    tiers = partition_tiers(state, [each.partition for each in selected])
    parts = readable(snapshot, tiers)
    if options.isolation == "read_committed":
        parts = committed_only(snapshot, before, parts, tiers)
    return SelectedLog(selected, with_data_keys(parts, state))


def _folded(snapshot: LogSnapshot, url: str) -> tuple[PartitionsInTransactions, LogState]:
    """The transactions at the snapshot's checkpoint, and the state after all its segments."""
    if snapshot.is_empty:
        raise ConfigurationError(
            f"there is no log at {url}, or it is empty",
            remedy="check the path; `bucketlog dev --data DIR` keeps its bucket in DIR/bucket",
        )
    state = restored(snapshot.checkpoint, keep_producers=False, keep_groups=False)
    before = transactions_of(state)
    return before, fold(snapshot.segments, onto=state)


def look_up_times(
    bucket: SyncBucket, options: ReadOptions, log: SelectedLog, bounds: Sequence[Bound | None]
) -> Times:
    """The offsets that the points in time among `bounds` stand for."""
    wanted = sorted(wanted_times(bounds, log.selected))
    if not wanted:
        return {}
    topics = {partition: topic for topic, partition in log.selected}

    def look_up(one: tuple[TopicIdPartition, int]) -> int | None:
        partition, timestamp_ms = one
        part = log.parts[partition]
        return first_offset_since(
            bucket,
            part,
            timestamp_ms,
            max_decompressed_bytes=options.max_decompressed_bytes,
            seals=partition_seals(
                options.encryption, topics[partition], partition.partition, part.data_keys
            ),
        )

    with ThreadPoolExecutor(min(LOOKUPS_IN_FLIGHT, len(wanted))) as pool:
        found = pool.map(look_up, wanted)
        with placing(log.selected, log.parts):
            return dict(zip(wanted, found, strict=True))


def read_wanted(
    bucket: SyncBucket, options: ReadOptions, snapshot: LogSnapshot | None = None
) -> tuple[list[OffsetRange], Parts]:
    """The ranges of a batch read, and the partitions with their segments; no row is a manifest's
    any more. Without a `snapshot`, the log is read. Logs a warning if records are withheld."""
    check_batch(options)
    if snapshot is None:
        log = LogFollower(bucket, options).look()
    else:
        log = selected_log(snapshot, options)
    check_topic_ids(options.topic_ids, log.selected)
    times = look_up_times(bucket, options, log, [options.starting, options.ending])
    ranges = resolve_ranges(options, log.selected, log.parts, times)
    withheld = withheld_of(ranges, log.parts, options.ending)
    if withheld:
        logger.warning("%s", warning_of(withheld))
    return ranges, with_segments(bucket, ranges, log.parts)


def with_segments(bucket: SyncBucket, ranges: Sequence[OffsetRange], parts: Parts) -> Parts:
    """The partitions of the ranges, with those rows alone that are needed of their tiers, and the
    rows that manifests list in their place."""
    tiers: dict[TopicIdPartition, list[TierRow]] = {wanted.partition: [] for wanted in ranges}
    for wanted, row in wanted_rows(ranges, parts):
        tiers[wanted.partition].append(row)
    with placing(_names(ranges), parts):
        found = read_rows(bucket, tiers)
    return {partition: replace(parts[partition], rows=rows) for partition, rows in found.items()}


def _names(ranges: Sequence[OffsetRange]) -> Iterator[tuple[str, TopicIdPartition]]:
    return ((wanted.topic, wanted.partition) for wanted in ranges)


def planned_tasks(bucket: SyncBucket, options: ReadOptions) -> list[tuple[TaskPiece, ...]]:
    """Return the tasks of a batch read. Raises `ConfigurationError`, `CorruptObjectError` and the
    bucket's errors."""
    with no_collection():
        ranges, parts = read_wanted(bucket, options)
        return tasks_of(bucket, options, ranges, parts)


@contextmanager
def no_collection() -> Iterator[None]:
    """A plan is millions of tuples and no cycle: to look for one took half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def tasks_of(
    bucket: SyncBucket, options: ReadOptions, ranges: Sequence[OffsetRange], parts: Parts
) -> list[tuple[TaskPiece, ...]]:
    """`parts` are those of `with_segments`."""
    limits = TaskLimits(options.max_partition_bytes, options.min_partitions)
    groups = list(_groups(ranges, parts, options.max_records_per_partition))
    cut = {one for together in groups for one in objects_to_cut(together, parts, limits)}
    with placing(_names(ranges), parts):
        indexes = read_indexes(bucket, cut)
    return [task for group in groups for task in plan_tasks(group, parts, limits, indexes)]


def _groups(
    ranges: Sequence[OffsetRange], parts: Parts, max_records: int | None
) -> Iterator[Sequence[OffsetRange]]:
    """The ranges that share tasks: all of them, or, where a task's offsets are limited, each part
    of a range alone."""
    if max_records is None:
        yield ranges
        return
    for wanted in ranges:
        start = _next_stored(parts[wanted.partition], wanted.start)
        while start < wanted.end:
            end = min(start + max_records, wanted.end)
            yield [wanted._replace(start=start, end=end)]
            start = _next_stored(parts[wanted.partition], end)


def _next_stored(part: ReadablePartition, offset: int) -> int:
    """The first offset from there on that a batch may hold; `MAX_OFFSET` + 1 where none does."""
    row = bisect_right(part.rows, offset, key=lambda each: each.end)
    if row < len(part.rows):
        return max(offset, part.rows[row].start)
    batch = bisect_right(part.batches, offset, key=lambda each: each.row.next_offset)
    if batch < len(part.batches):
        return max(offset, part.batches[batch].row.base_offset)
    return MAX_OFFSET + 1
