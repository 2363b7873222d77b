"""What the bucket alone shows of a log's load: footers, rows and listings. Read, never written.

Invariant: nothing is guessed here: what is deleted is not seen, and `complete_from` says from which
day on nothing that was written is missing.
"""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.load import CLUSTER, Load, LogSegment, OtherObject, day_of, load_of
from bucketlog.log_format.model import SegmentIndex, Ticket, TopicId
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.topic_configs import RETENTION_MS
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, SyncBucket
from bucketlog.tiered_storage.identity import NoLogError
from bucketlog.tiered_storage.log_cut_reading import read_footers, read_log
from bucketlog.tiered_storage.segment import is_seal

DAY_MS = 86_400_000


class Usage(NamedTuple):
    """`complete_from` None: nothing was deleted yet. `held` are bytes and objects that are in the
    bucket now, by kind."""

    load: Load
    retention_days: Mapping[str, float]
    complete_from: date | None
    held: Mapping[str, tuple[int, int]]


def usage_of(bucket: SyncBucket, given: Assumptions, place: str = "this bucket") -> Usage:
    """Raises `NoLogError`, which names `place`, `CorruptObjectError`, `InvalidDataError` and the
    bucket's errors."""
    listed = {
        kind: list(bucket.list(kind))
        for kind in (
            keys.FLOORS,
            keys.LOG,
            keys.WRITERS,
            keys.EPOCHS,
            keys.CHECKPOINTS,
            keys.SEGMENTS,
            keys.MANIFESTS,
        )
    }
    if not listed[keys.LOG] and bucket.head(keys.CLUSTER) is None:
        raise NoLogError(place)
    snapshot = read_log(bucket)
    base = restored(snapshot.checkpoint, keep_producers=False, keep_groups=False)
    covered = snapshot.checkpoint.segments if snapshot.checkpoint is not None else 0
    state = fold(snapshot.segments, onto=base)
    names = {topic.topic_id: topic.name for topic in state.topics.values()}
    sizes = {
        keys.parse_segment(info.key): info.size_bytes
        for info in listed[keys.LOG]
        if not is_seal(info.size_bytes)
    }
    footers = read_footers(bucket, list(sizes))
    checkpoints = listed[keys.CHECKPOINTS]
    load = load_of(
        (_segment(index, sizes[index.segment], names) for index in footers),
        _others(listed, names),
        checkpoint_bytes=sum(info.size_bytes for info in checkpoints) / max(1, len(checkpoints)),
        checkpoint_interval_s=given.checkpoint_interval_s,
    )
    gone = covered + len(snapshot.segments) > len(footers) or state.swept_below > Ticket(0, 0)
    held = {
        kind.rstrip("/"): (sum(info.size_bytes for info in infos), len(infos))
        for kind, infos in listed.items()
    }
    return Usage(
        load, _retention_days(state, given), _complete_from(listed[keys.FLOORS], gone), held
    )


def _segment(index: SegmentIndex, size_bytes: int, names: Mapping[TopicId, str]) -> LogSegment:
    batch_bytes: dict[str, int] = {}
    for part in index.partitions:
        if part.batches:
            topic = _name(part.partition.topic_id, names)
            length = sum(row.length for row in part.batches)
            batch_bytes[topic] = batch_bytes.get(topic, 0) + length
    return LogSegment(index.created_ms, size_bytes, batch_bytes)


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
