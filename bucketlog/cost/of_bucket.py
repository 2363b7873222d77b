"""What the bucket alone shows of a log's load: footers, rows and listings. Read, never written.

Invariant: nothing is guessed here: what is deleted is not seen, and `complete_from` says from which
day on nothing that was written is missing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import NamedTuple

from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.load import (
    CLUSTER,
    Load,
    LogSegment,
    OtherObject,
    day_of,
    load_of,
    merged_flushes,
)
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, TopicId, WriterId
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.topic_configs import RETENTION_MS
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, SyncBucket
from bucketlog.tiered_storage.identity import NoLogError
from bucketlog.tiered_storage.log_cut_reading import LogReader, read_footers_left
from bucketlog.tiered_storage.segment import is_seal

DAY_MS = 86_400_000
KINDS = (
    keys.FLOORS,
    keys.LOG,
    keys.WRITERS,
    keys.EPOCHS,
    keys.CHECKPOINTS,
    keys.SEGMENTS,
    keys.MANIFESTS,
)
"""The kinds of objects that are listed, and counted in `Usage.held`."""


class WriteReason(StrEnum):
    """Why objects are written. Facts are offsets of groups, settings and outcomes of transactions,
    in log segments without batches. The cluster writes registrations, seals, floors and claims."""

    RECORDS = "records"
    FACTS = "facts"
    COMPACTION = "compaction"
    CHECKPOINTS = "checkpoints"
    CLUSTER = "cluster"


class _SegmentBytes(NamedTuple):
    """The bytes of batches in a log segment, by topic."""

    created_ms: int
    batch_bytes: Mapping[TopicId, int]


@dataclass(frozen=True)
class WrittenObjects:
    """The objects that are in the bucket, with all that their prices depend on. `sizes` has the log
    segments without seals. `checkpoint_bytes` is the mean size of a checkpoint."""

    sizes: Mapping[SegmentId, int]
    batches: Mapping[SegmentId, _SegmentBytes]
    names: Mapping[TopicId, str]
    others: Sequence[OtherObject]
    checkpoint_bytes: float
    checkpoint_interval_s: float

    def load(self) -> Load:
        """Return what was done by day and topic."""
        return self._load(segment for _, segment in self._written())

    def load_if(self, *, flush_interval_ms: int, flush_bytes: int) -> tuple[Load, float]:
        """Return the load if brokers had flushed at most once in `flush_interval_ms`, and the mean
        time in milliseconds that a byte would have waited longer."""
        in_order = sorted(self._written(), key=lambda found: found[1].created_ms)
        merged = merged_flushes(in_order, interval_ms=flush_interval_ms, bytes_max=flush_bytes)
        flushes = list(merged)
        produced = sum(sum(flush.segment.batch_bytes.values()) for flush in flushes)
        waited_ms = sum(flush.waited_ms for flush in flushes)
        return self._load(flush.segment for flush in flushes), waited_ms / (produced or 1)

    def activities(self, load: Load) -> dict[WriteReason, tuple[float, float]]:
        """Return PUTs and written bytes by their reason. `load` is that of these objects."""
        found: dict[WriteReason, list[float]] = {name: [] for name in WriteReason}
        for _, segment in self._written():
            name = WriteReason.RECORDS if segment.batch_bytes else WriteReason.FACTS
            found[name].append(segment.size_bytes)
        for other in self.others:
            name = WriteReason.CLUSTER if other.topic == CLUSTER else WriteReason.COMPACTION
            found[name].append(other.size_bytes)
        checkpoints = sum(activity.checkpoints for activity in load.values())
        found[WriteReason.CHECKPOINTS] = [self.checkpoint_bytes] * checkpoints
        return {name: (float(len(sizes)), float(sum(sizes))) for name, sizes in found.items()}

    def _load(self, segments: Iterable[LogSegment]) -> Load:
        return load_of(
            segments,
            self.others,
            checkpoint_bytes=self.checkpoint_bytes,
            checkpoint_interval_s=self.checkpoint_interval_s,
        )

    def _written(self) -> Iterator[tuple[WriterId, LogSegment]]:
        for segment, size_bytes in self.sizes.items():
            known = self.batches.get(segment)
            if known is not None:
                yield segment.writer, _segment(known, size_bytes, self.names)


class Usage(NamedTuple):
    """`complete_from` None: nothing was deleted yet. `held` are bytes and objects that are in the
    bucket now, by kind."""

    written: WrittenObjects
    load: Load
    retention_days: Mapping[str, float]
    complete_from: date | None
    held: Mapping[str, tuple[int, int]]

    def activities(self) -> dict[WriteReason, tuple[float, float]]:
        """Return PUTs and written bytes by their reason."""
        return self.written.activities(self.load)


class LoadReader:
    """Reads the load of one log again and again. The reader keeps the sizes that footers name, so
    that each footer is read once. A reading that is stopped by an error keeps what it has read."""

    def __init__(
        self,
        bucket: SyncBucket,
        given: Assumptions,
        place: str = "this bucket",
        *,
        footers_at_once: int = 1_000,
    ) -> None:
        self._bucket = bucket
        self._log = LogReader(bucket)
        self.given = given
        self._place = place
        self._footers_at_once = footers_at_once
        self._segments: dict[SegmentId, _SegmentBytes] = {}
        self._wanted = 0

    @property
    def progress(self) -> tuple[int, int]:
        """The number of log segments whose footers are known, and the number of log segments."""
        return len(self._segments), self._wanted

    def read(self) -> Usage:
        """Return the load now. Raises `NoLogError`, which names the place, `CorruptObjectError`,
        `InvalidDataError` and the bucket's errors."""
        listed = {kind: list(self._bucket.list(kind)) for kind in KINDS}
        if not listed[keys.LOG] and self._bucket.head(keys.CLUSTER) is None:
            raise NoLogError(self._place)
        sizes = {
            keys.parse_segment(info.key): info.size_bytes
            for info in listed[keys.LOG]
            if not is_seal(info.size_bytes)
        }
        self._wanted = len(sizes)
        snapshot = self._log.read()
        base = restored(snapshot.checkpoint, keep_producers=False, keep_groups=False)
        covered = snapshot.checkpoint.segments if snapshot.checkpoint is not None else 0
        state = fold(snapshot.segments, onto=base)
        names = {topic.topic_id: topic.name for topic in state.topics.values()}
        self._read_footers(sizes.keys(), snapshot.segments)
        checkpoints = listed[keys.CHECKPOINTS]
        written = WrittenObjects(
            sizes,
            self._segments,
            names,
            list(_others(listed, names)),
            sum(info.size_bytes for info in checkpoints) / max(1, len(checkpoints)),
            self.given.checkpoint_interval_s,
        )
        gone = covered + len(snapshot.segments) > len(self._segments)
        gone = gone or state.swept_below > Ticket(0, 0)
        return Usage(
            written,
            written.load(),
            _retention_days(state, self.given),
            _complete_from(listed[keys.FLOORS], gone),
            {
                kind.rstrip("/"): (sum(info.size_bytes for info in infos), len(infos))
                for kind, infos in listed.items()
            },
        )

    def _read_footers(self, wanted: Set[SegmentId], known: Sequence[SegmentIndex]) -> None:
        """Keep the sizes of `wanted`, and of no other log segment."""
        now = {segment: sizes for segment, sizes in self._segments.items() if segment in wanted}
        now |= {index.segment: _sizes(index) for index in known if index.segment in wanted}
        self._segments = now
        missing = [segment for segment in wanted if segment not in now]
        for start in range(0, len(missing), self._footers_at_once):
            some = missing[start : start + self._footers_at_once]
            found = read_footers_left(self._bucket, some)
            self._segments |= {segment: _sizes(index) for segment, index in found.items()}
            self._wanted -= len(some) - len(found)


def usage_of(bucket: SyncBucket, given: Assumptions, place: str = "this bucket") -> Usage:
    """Return the load of a log. Raises the errors of `LoadReader.read`."""
    return LoadReader(bucket, given, place).read()


def _sizes(index: SegmentIndex) -> _SegmentBytes:
    batch_bytes: dict[TopicId, int] = {}
    for part in index.partitions:
        if part.batches:
            topic_id = part.partition.topic_id
            length = sum(row.length for row in part.batches)
            batch_bytes[topic_id] = batch_bytes.get(topic_id, 0) + length
    return _SegmentBytes(index.created_ms, batch_bytes)


def _segment(sizes: _SegmentBytes, size_bytes: int, names: Mapping[TopicId, str]) -> LogSegment:
    batch_bytes: dict[str, int] = {}
    for topic_id, length in sizes.batch_bytes.items():
        topic = _name(topic_id, names)
        batch_bytes[topic] = batch_bytes.get(topic, 0) + length
    return LogSegment(sizes.created_ms, size_bytes, batch_bytes)


def _name(topic_id: TopicId, names: Mapping[TopicId, str]) -> str:
    return names.get(topic_id, f"deleted:{topic_id.hex()}")


def _others(
    listed: Mapping[str, list[ObjectInfo]], names: Mapping[TopicId, str]
) -> Iterator[OtherObject]:
    """All but log segments and checkpoints."""
    for kind in (keys.SEGMENTS, keys.MANIFESTS):
        for info in listed[kind]:
            topic = _name(keys.parse_tier_object(info.key).partition.topic_id, names)
            yield OtherObject(info.modified_ms, info.size_bytes, topic)
    for kind in (keys.FLOORS, keys.WRITERS, keys.EPOCHS):
        for info in listed[kind]:
            yield OtherObject(info.modified_ms, info.size_bytes, CLUSTER)
    for info in listed[keys.LOG]:
        if is_seal(info.size_bytes):
            yield OtherObject(info.modified_ms, info.size_bytes, CLUSTER)


def _retention_days(state: LogState, given: Assumptions) -> dict[str, float]:
    found = {}
    for topic in state.topics.values():
        retention_ms = int(topic.configs.get(RETENTION_MS, -2))
        policy = topic.configs.get("cleanup.policy", "delete")
        if "delete" not in policy or retention_ms == -1:
            found[topic.name] = given.unlimited_retention_days
        elif retention_ms >= 0:
            found[topic.name] = retention_ms / DAY_MS
    return found


def _complete_from(floors: list[ObjectInfo], gone: bool) -> date | None:
    """What is deleted is below the lowest floor that is there (those below the one in use go
    first), and was created before that was laid."""
    if not gone or not floors:
        return None
    lowest = min(floors, key=lambda info: keys.parse_floor(info.key))
    return day_of(lowest.modified_ms) + timedelta(days=1)
