"""The log at one moment, as the bucket shows it to all pages. An old view is read again.

Invariants: the figures of the log on a page come from one `LogView`, so that they agree. They are
those of `read_committed` readers and of `bucketlog doctor`. To read a log that has not changed
costs only the listings.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from bucketlog.console.aged_value import AgedValue
from bucketlog.console.page_deadline import UNBOUNDED, Deadline, TimedBucket
from bucketlog.log_format.batch import CONTROL
from bucketlog.log_format.model import PartitionTier, Ticket, TopicIdPartition, WallClock
from bucketlog.log_reader.isolation import (
    PartitionsInTransactions,
    committed_only,
    transactions_of,
)
from bucketlog.log_reader.unsealing import with_data_keys
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, TopicState, fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.identity import ClusterIdentity, read_cluster_sync
from bucketlog.tiered_storage.log_cut import LogSnapshot, ReadablePartition, readable
from bucketlog.tiered_storage.log_cut_reading import LogReader


class PartitionFigures(NamedTuple):
    """The figures of a partition. `earliest` and `latest` are those of `bucketlog doctor`.
    `log_records` counts the records of batches in log segments. `is_exact` is True if no such batch
    begins below the log start. Bytes are those of stored batches. `last_ms` is the highest
    timestamp, or -1 without a timestamp."""

    earliest: int
    latest: int
    log_records: int
    is_exact: bool
    log_batches: int
    log_bytes: int
    tier_bytes: int
    tier_objects: int
    last_ms: int
    withheld: int

    @property
    def offsets(self) -> int:
        return self.latest - self.earliest

    @property
    def size_bytes(self) -> int:
        return self.log_bytes + self.tier_bytes


@dataclass(frozen=True, slots=True)
class LogView:
    """The log at `read_ms` by the console's clock. `figures` has the figures of each partition."""

    identity: ClusterIdentity
    read_ms: int
    snapshot: LogSnapshot
    state: LogState
    before: PartitionsInTransactions
    figures: Mapping[TopicIdPartition, PartitionFigures]
    tiers: Mapping[TopicIdPartition, PartitionTier]

    def topic(self, name: str) -> TopicState | None:
        topic_id = self.state.names.get(name)
        return None if topic_id is None else self.state.topics[topic_id]

    def partitions_of(self, topic: TopicState) -> Iterator[TopicIdPartition]:
        return (TopicIdPartition(topic.topic_id, number) for number in range(topic.partitions))

    def parts(
        self, wanted: Iterable[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, ReadablePartition]:
        """The readable parts of these partitions."""
        return _parts(self.snapshot, self.state, self.before, wanted)


def _parts(
    snapshot: LogSnapshot,
    state: LogState,
    before: PartitionsInTransactions,
    wanted: Iterable[TopicIdPartition],
) -> Mapping[TopicIdPartition, ReadablePartition]:
    tiers = partition_tiers(state, wanted)
    copied = {partition: found.copy() for partition, found in before.items() if partition in tiers}
    parts = committed_only(snapshot, copied, readable(snapshot, tiers), tiers)
    return with_data_keys(parts, state)


def figures_of(part: ReadablePartition) -> PartitionFigures:
    records = size = 0
    last_ms = max((row.max_timestamp_ms for row in part.rows), default=-1)
    is_exact = True
    for _, _, row in part.batches:
        size += row.length
        last_ms = max(last_ms, row.max_timestamp)
        if not row.attributes & CONTROL:
            records += row.record_count
            is_exact = is_exact and row.base_offset >= part.log_start
    return PartitionFigures(
        earliest=part.log_start,
        latest=max(part.log_start, part.end_offset),
        log_records=records,
        is_exact=is_exact,
        log_batches=len(part.batches),
        log_bytes=size,
        tier_bytes=sum(row.batch_bytes for row in part.rows),
        tier_objects=sum(row.segments for row in part.rows),
        last_ms=last_ms,
        withheld=part.withheld,
    )


class ConsoleLog:
    """Reads the log for all pages. Several threads may use one instance. `work` returns the
    deadline of one reading that begins now. If there is an earlier reading, a page waits for a new
    reading for at most `patience_ms`."""

    def __init__(
        self,
        bucket: SyncBucket,
        place: str,
        *,
        refresh_ms: int,
        now_ms: WallClock,
        work: Callable[[], Deadline] = lambda: UNBOUNDED,
        patience_ms: float = inf,
    ) -> None:
        self._bucket = TimedBucket(bucket)
        self._place = place
        self._now_ms = now_ms
        self._reader = LogReader(self._bucket)
        self._latest: LogView | None = None
        self._view: AgedValue[LogView] = AgedValue(
            refresh_ms, now_ms, work, patience_ms=patience_ms
        )

    def look(self, waiting: Deadline = UNBOUNDED, *, is_patient: bool = False) -> LogView:
        """Return the latest reading. With `is_patient`, wait for a running reading. Raises
        `StillReadingError`, `NoLogError`, `CorruptObjectError`, `InvalidDataError`,
        `PageTimeoutError` and the bucket's errors."""
        return self._view.get(self._read, waiting, is_patient=is_patient)

    def _read(self, deadline: Deadline) -> LogView:
        self._bucket.begin(deadline)
        known, now_ms = self._latest, self._now_ms()
        identity = read_cluster_sync(self._bucket, self._place)
        snapshot = self._reader.read()
        if known is not None and _is_same(known.snapshot, snapshot):
            self._latest = replace(known, identity=identity, read_ms=now_ms)
        else:
            self._latest = view_of(identity, snapshot, now_ms, known)
        return self._latest


def _is_same(one: LogSnapshot, other: LogSnapshot) -> bool:
    return (
        one.cut == other.cut
        and _checkpoint_of(one) == _checkpoint_of(other)
        and [index.segment for index in one.segments] == [index.segment for index in other.segments]
        and one.hw_stamps == other.hw_stamps
    )


def view_of(
    identity: ClusterIdentity, snapshot: LogSnapshot, read_ms: int, known: LogView | None = None
) -> LogView:
    """Return the view of a snapshot. `known` is an earlier view of the same log: the figures of
    partitions that have not changed since then are not computed again. Raises
    `InvalidDataError`."""
    state = restored(snapshot.checkpoint, keep_producers=False)
    before = transactions_of(state)
    fold(snapshot.segments, onto=state)
    tiers = partition_tiers(state)
    changed = tiers.keys() if known is None else _changed(known, snapshot, tiers)
    parts = _parts(snapshot, state, before, changed)
    earlier = {} if known is None else known.figures
    figures = {
        partition: figures_of(parts[partition]) if partition in parts else earlier[partition]
        for partition in tiers
    }
    return LogView(identity, read_ms, snapshot, state, before, figures, tiers)


def _changed(
    known: LogView, snapshot: LogSnapshot, tiers: Mapping[TopicIdPartition, PartitionTier]
) -> Collection[TopicIdPartition]:
    """The partitions whose figures may differ from those of `known`.

    The figures of a partition depend on its batches in the checkpoint, on its tier, and on later
    segments that list the partition, also with stamps alone. A later checkpoint
    with the same high watermark of the partition has the same batches beyond the tier."""
    before = known.snapshot
    old = {index.segment: index for index in before.segments}
    new = {index.segment: index for index in snapshot.segments}
    differing = [index for segment, index in new.items() if segment not in old]
    differing += [index for segment, index in old.items() if segment not in new]
    touched = {listed.partition for index in differing for listed in index.partitions}
    return {
        partition
        for partition, tier in tiers.items()
        if partition in touched
        or known.tiers.get(partition) != tier
        or _watermark(before, partition) != _watermark(snapshot, partition)
    }


def _watermark(snapshot: LogSnapshot, partition: TopicIdPartition) -> int:
    """The high watermark of the partition in the checkpoint."""
    checkpoint = snapshot.checkpoint
    covered = None if checkpoint is None else checkpoint.partitions.get(partition)
    return 0 if covered is None else covered.high_watermark


def _checkpoint_of(snapshot: LogSnapshot) -> Ticket | None:
    return None if snapshot.checkpoint is None else snapshot.checkpoint.ticket
