"""What was done, by day and topic, from what the bucket shows. Pure.

One PUT of a log segment is shared by the topics in it by their bytes. What belongs to no topic
(facts, seals, checkpoints, floors, registrations, claims) is under `CLUSTER`. Of checkpoints
two are ever there: one was written for each interval with a log segment.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple

from bucketlog.log_format.model import WriterId

CLUSTER = ""
"""In the place of a topic."""
DAY_MS = 86_400_000


class LogSegment(NamedTuple):
    """`batch_bytes` by topic."""

    created_ms: int
    size_bytes: int
    batch_bytes: Mapping[str, int]


class OtherObject(NamedTuple):
    """A partition segment or a manifest of a topic, or one of the cluster's."""

    created_ms: int
    size_bytes: int
    topic: str


@dataclass(slots=True)
class Activity:
    """Of a topic on a day. `puts` and `written_bytes` are of all objects; `produced_bytes` those of
    batches, once. `checkpoints` are among the puts."""

    puts: float = 0.0
    written_bytes: float = 0.0
    produced_bytes: int = 0
    checkpoints: int = 0


Load = dict[tuple[date, str], Activity]


def day_of(at_ms: int) -> date:
    """In UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def load_of(
    segments: Iterable[LogSegment],
    others: Iterable[OtherObject],
    *,
    checkpoint_bytes: float,
    checkpoint_interval_s: float,
) -> Load:
    """`checkpoint_bytes` is the size of one. Each day of the load has a row of the cluster."""
    load: Load = {}

    def at(at_ms: int, topic: str) -> Activity:
        return load.setdefault((day_of(at_ms), topic), Activity())

    intervals: dict[date, set[int]] = {}
    for segment in segments:
        interval = int(segment.created_ms / 1000 / checkpoint_interval_s)
        intervals.setdefault(day_of(segment.created_ms), set()).add(interval)
        whole = sum(segment.batch_bytes.values())
        if not whole:
            _add(at(segment.created_ms, CLUSTER), 1.0, segment.size_bytes)
            continue
        for topic, batch_bytes in segment.batch_bytes.items():
            share = batch_bytes / whole
            activity = at(segment.created_ms, topic)
            _add(activity, share, segment.size_bytes * share)
            activity.produced_bytes += batch_bytes
    for other in others:
        _add(at(other.created_ms, other.topic), 1.0, other.size_bytes)
    for day in {day for day, _ in load}:
        cluster = load.setdefault((day, CLUSTER), Activity())
        cluster.checkpoints = len(intervals.get(day, ()))
        _add(cluster, cluster.checkpoints, checkpoint_bytes * cluster.checkpoints)
    return load


def _add(activity: Activity, puts: float, written_bytes: float) -> None:
    activity.puts += puts
    activity.written_bytes += written_bytes


class MergedFlush(NamedTuple):
    """Log segments that a writer would have put as one. `waited_ms` are the milliseconds that a
    byte of batches waited for this, times the bytes."""

    segment: LogSegment
    waited_ms: float


def merged_flushes(
    written: Iterable[tuple[WriterId, LogSegment]], *, interval_ms: int, bytes_max: int
) -> Iterator[MergedFlush]:
    """Return the flushes of brokers with a longer flush interval.

    `written` has the segments of each writer in their order. A flush begins `interval_ms` after the
    last one of its writer, or at once when that is over, or with `bytes_max` waiting bytes. An
    interval below that of the brokers changes nothing: the bucket does not show when batches
    arrived."""
    waiting: dict[WriterId, list[LogSegment]] = {}
    waiting_bytes: dict[WriterId, int] = {}
    last_ms: dict[WriterId, int] = {}
    for writer, segment in written:
        pending = waiting.setdefault(writer, [])
        due_ms = last_ms.get(writer, segment.created_ms - interval_ms) + interval_ms
        if pending and segment.created_ms > due_ms:
            yield _flushed(pending, due_ms)
            last_ms[writer] = due_ms
            due_ms += interval_ms
        before = waiting_bytes.get(writer, 0) if pending else 0
        pending.append(segment)
        size_bytes = waiting_bytes[writer] = before + segment.size_bytes
        if size_bytes >= bytes_max or segment.created_ms >= due_ms:
            yield _flushed(pending, segment.created_ms)
            last_ms[writer] = segment.created_ms
    for writer, pending in waiting.items():
        if pending:
            yield _flushed(pending, last_ms[writer] + interval_ms)


def _flushed(pending: list[LogSegment], at_ms: int) -> MergedFlush:
    """Empty `pending`."""
    batch_bytes: dict[str, int] = {}
    waited_ms = 0.0
    for segment in pending:
        waited_ms += (at_ms - segment.created_ms) * sum(segment.batch_bytes.values())
        for topic, length in segment.batch_bytes.items():
            batch_bytes[topic] = batch_bytes.get(topic, 0) + length
    size_bytes = sum(segment.size_bytes for segment in pending)
    pending.clear()
    return MergedFlush(LogSegment(at_ms, size_bytes, batch_bytes), waited_ms)
