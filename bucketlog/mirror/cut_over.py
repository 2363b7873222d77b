"""The cut-over moves producers from the source to the target. No record is lost or gets another
offset.

Order: catch up, compare while producers still write, stop the producers, drain, compare the rest,
copy the groups' offsets, check the topics again, free the topics. `StopWriters.CONFIG` stops the
producers in two steps: Kafka can write markers until no transaction is open. Until the topics are
free, all steps may be repeated. If a step fails, the producers of the source may write again, but
not to topics that are free in the target.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from bucketlog.client.admin import LATEST
from bucketlog.log_format.errors import BucketlogError, LogError
from bucketlog.mirror.acls import stop_of
from bucketlog.mirror.copier import MirrorError, PartitionProgress
from bucketlog.mirror.run import Mirror
from bucketlog.mirror.source import Partition
from bucketlog.mirror.topics import (
    MARKERS_BYTES,
    STOPPED_BYTES,
    WRITE_LIMIT,
    alter,
    change_of,
    changed_topic,
)
from bucketlog.mirror.verify import Comparison

LOOK_S = 0.1
NEAR_OFFSETS = 50_000
"""The cut-over stops producers when at most this number of offsets is left to compare, or after
`PASSES` comparisons."""
PASSES = 4


class StopWriters(StrEnum):
    """How a cut-over stops the producers of the source.

    - `NONE`: the user stops the producers.
    - `ACL`: an ACL denies writes to the topics. The source needs an authorizer.
    - `CONFIG`: `max.message.bytes` of the topics is set to 78, then to 0.
    """

    NONE = "none"
    ACL = "acl"
    CONFIG = "config"


@dataclass(frozen=True, slots=True)
class CutOverSettings:
    """The limits of a cut-over, in seconds.

    `quiet_s`: the source is at rest if no record has arrived for this time. `rest_s` bounds each
    wait until the target has caught up or the source is at rest. `groups_s` bounds the wait until
    consumers of the source have left. `timeout_s` bounds each wait for a record.
    """

    stop_writers: StopWriters
    quiet_s: float = 3.0
    rest_s: float = 600.0
    groups_s: float = 0.0
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class CutOver:
    """The result of a cut-over.

    `downtime_s`: seconds from the stop of the producers (with `StopWriters.NONE`, from the last
    record) until producers may write to the target. `digests` has the number of records and their
    digest, by partition.
    """

    topics: int
    partitions: int
    records: int
    downtime_s: float
    digests: dict[str, tuple[int, str]]


def cut_over(mirror: Mirror, settings: CutOverSettings, report: Callable[[str], None]) -> CutOver:
    """Move the producers of a running mirror's topics. Raises `MirrorError`, `LogError`."""
    topics = mirror.topics
    if settings.stop_writers is StopWriters.ACL:
        _check_authorizer(mirror)
    comparison = Comparison(
        mirror.source.config,
        mirror.target.config,
        mirror.topic_mirror.compacted(topics),
        timeout_s=settings.timeout_s,
    )
    _catch_up(mirror, settings.rest_s)
    for _ in range(PASSES):
        positions = mirror.positions()
        report(f"comparing {len(positions)} partitions while producers still write")
        comparison.advance(positions)
        _check(comparison)
        _catch_up(mirror, settings.rest_s)
        left = sum(
            position - comparison.checks[partition].compared_to
            for partition, position in mirror.positions().items()
            if partition in comparison.checks
        )
        if left <= NEAR_OFFSETS:
            break
    with _stopped(mirror, settings.stop_writers, report):
        began = time.monotonic()
        if settings.stop_writers is StopWriters.CONFIG:
            _end_transactions(mirror, settings)
            _limit_writes(mirror, dict.fromkeys(mirror.topics, STOPPED_BYTES))
        quiet_since = _drain(mirror, settings)
        if settings.stop_writers is StopWriters.NONE:
            began = quiet_since
        comparison.advance(mirror.positions(), is_at_rest=True)
        _check(comparison)
        mirror.sync_groups()
        _check_topics(mirror)
        mirror.topic_mirror.free(topics)
        downtime_s = time.monotonic() - began
    report(f"producers may write to the target now; the downtime was {downtime_s:.1f} s")
    _follow_groups(mirror, settings.groups_s, report)
    return CutOver(
        len(topics),
        len(comparison.checks),
        comparison.records,
        downtime_s,
        comparison.digests(),
    )


def _check_authorizer(mirror: Mirror) -> None:
    """Without an authorizer, ACLs cannot stop producers. Raises `MirrorError`, `LogError`."""
    try:
        mirror.source.acls.list()
    except LogError as error:
        if error.code != "SECURITY_DISABLED":
            raise
        raise MirrorError(
            "the source has no authorizer",
            remedy="use --stop-writers config, or stop the producers and use --stop-writers none",
        ) from error


def _check_topics(mirror: Mirror) -> None:
    """Check that the source has the same topics and partitions as before the comparison, and that
    the target's topics are still mirrors. Raises `MirrorError`, `LogError`."""
    changed = changed_topic(mirror.topics, mirror.topic_mirror.in_source())
    if changed is not None:
        raise MirrorError(
            f"the source has changed since the comparison: topic {changed}",
            remedy="producers may write to the source; run the cut-over again",
        )
    are_mirrors = mirror.topic_mirror.are_mirrors(mirror.topics)
    others = [name for name in mirror.topics if not are_mirrors.get(name)]
    if others:
        raise MirrorError(
            f"the target's topic {min(others)!r} is no longer a mirror: another cut-over has freed "
            "the topic, or somebody has deleted the topic",
            remedy="if another cut-over has freed the topic, omit the topic from --topics; if the "
            "topic is deleted, mirror the topic again",
        )


def _check(comparison: Comparison) -> None:
    differences = comparison.differences()
    if differences:
        raise MirrorError(
            f"the clusters differ in {len(differences)} partitions: {'; '.join(differences[:3])}",
            remedy="producers may write to the source; delete these topics in the target, and "
            "mirror them again",
        )


def _catch_up(mirror: Mirror, wait_s: float) -> None:
    """Wait until the target has all committed records that the source had at the first look."""
    deadline = time.monotonic() + wait_s
    wanted = {partition: each.stable_end for partition, each in mirror.progress().items()}
    while True:
        mirror.check()
        progress = mirror.progress()
        for partition, each in progress.items():
            if wanted.get(partition, -1) < 0:
                wanted[partition] = each.stable_end
        positions = mirror.positions()
        if all(0 <= end <= positions.get(each, -1) for each, end in wanted.items()):
            return
        if time.monotonic() > deadline:
            raise MirrorError(
                f"the target has not caught up with the source after {wait_s:.0f} s",
                remedy="let the mirror catch up first, without --cut-over",
            )
        time.sleep(LOOK_S)


def _end_transactions(mirror: Mirror, settings: CutOverSettings) -> None:
    """Wait until no transaction of the source has been open for `quiet_s`."""
    last_open = began = time.monotonic()
    while True:
        mirror.check()
        now = time.monotonic()
        open_ends = _open_ends(mirror.progress())
        if open_ends:
            last_open = now
        elif now - last_open >= settings.quiet_s:
            return
        if now - began > settings.rest_s:
            raise _restless(settings.rest_s, open_ends)
        time.sleep(LOOK_S)


def _open_ends(progress: Mapping[Partition, PartitionProgress]) -> list[Partition]:
    """Partitions with an open transaction."""
    return [each for each, row in progress.items() if row.stable_end < row.high_watermark]


def _restless(rest_s: float, open_ends: Sequence[Partition]) -> MirrorError:
    why = f"{open_ends[0]} has an open transaction" if open_ends else "records still arrive"
    return MirrorError(
        f"the source is not at rest after {rest_s:.0f} s: {why}",
        remedy="stop the producers of the source, and run the command again",
    )


def _drain(mirror: Mirror, settings: CutOverSettings) -> float:
    """Wait until the source is at rest and all records are copied. Returns the time at which the
    last record arrived, by the monotonic clock."""
    deadline = time.monotonic() + settings.rest_s
    last: dict[object, int] = {}
    quiet_since = time.monotonic()
    while True:
        mirror.check()
        progress = mirror.progress()
        ends: dict[object, int] = {each: row.high_watermark for each, row in progress.items()}
        now = time.monotonic()
        if ends != last:
            last, quiet_since = ends, now
        open_ends = _open_ends(progress)
        is_copied = all(row.position == row.high_watermark for row in progress.values())
        is_quiet = is_copied and not open_ends and now - quiet_since >= settings.quiet_s
        if is_quiet and _has_all(mirror):
            return quiet_since
        if now > deadline:
            raise _restless(settings.rest_s, open_ends)
        time.sleep(LOOK_S)


def _has_all(mirror: Mirror) -> bool:
    """Whether the target has all records. Asks the source itself, because the ends that the workers
    know are old if the source answers slowly."""
    positions = mirror.positions()
    for name, topic in mirror.topics.items():
        numbers, doing = range(topic.partitions), f"asking for offsets of {name!r}"
        ends = mirror.source.admin.offsets(name, numbers, LATEST, doing)
        if any(positions.get(Partition(name, each)) != end for each, end in ends.items()):
            return False
    return True


@contextmanager
def _stopped(mirror: Mirror, how: StopWriters, report: Callable[[str], None]) -> Iterator[None]:
    """Stop the producers of the source. After an error, producers may write again."""
    if how is StopWriters.NONE:
        report("stop the producers of the source now, if they still run")
        yield
        return
    before = mirror.topic_mirror.write_limits() if how is StopWriters.CONFIG else {}
    try:
        _set_stop(mirror, how)
        report(f"producers of the source are stopped (--stop-writers {how.value})")
        yield
    except BaseException:
        _let_write(mirror, how, before, report)
        raise


def _let_write(
    mirror: Mirror, how: StopWriters, before: Mapping[str, str], report: Callable[[str], None]
) -> None:
    """Let producers of the source write again to each topic that is not free in the target. Errors
    are only reported, so that the error of the cut-over is raised."""
    stopped = set(mirror.topics)
    try:
        are_mirrors = mirror.topic_mirror.are_mirrors(mirror.topics)
    except BucketlogError as error:
        report(f"the target did not answer which topics are free: {error}")
        are_mirrors = {}
    freed = {name for name, is_mirror in are_mirrors.items() if not is_mirror}
    failures: list[str] = []
    for topic in sorted(stopped - freed):
        try:
            _undo_stop(mirror, topic, how, before)
        except BucketlogError as error:
            failures.append(f"{topic}: {error}")
    if freed:
        report(
            "producers may write to these topics of the target, so they stay stopped at the "
            f"source: {', '.join(sorted(freed))}"
        )
    if failures:
        report(
            f"producers may still be stopped at the source. Restore {WRITE_LIMIT} of these topics, "
            f"or delete their ACL DENY User:* WRITE: {'; '.join(failures)}"
        )
    elif stopped - freed:
        report(
            "producers of the source may write again"
            + (f" to {', '.join(sorted(stopped - freed))}" if freed else "")
        )


def _set_stop(mirror: Mirror, how: StopWriters) -> None:
    if how is StopWriters.ACL:
        mirror.source.acls.create([stop_of(topic) for topic in mirror.topics])
        return
    _limit_writes(mirror, dict.fromkeys(mirror.topics, MARKERS_BYTES))


def _undo_stop(mirror: Mirror, topic: str, how: StopWriters, before: Mapping[str, str]) -> None:
    if how is StopWriters.ACL:
        mirror.source.acls.delete([stop_of(topic)])
        return
    _limit_writes(mirror, {topic: before.get(topic)})


def _limit_writes(mirror: Mirror, limits: Mapping[str, str | None]) -> None:
    """Set the limits by topic. None deletes the config, so that the broker's default applies."""
    for topic, value in limits.items():
        alter(mirror.source.admin, topic, [change_of(WRITE_LIMIT, value)])


def _follow_groups(mirror: Mirror, wait_s: float, report: Callable[[str], None]) -> None:
    """Copy the groups' offsets until consumers of the source have left, or for `wait_s`."""
    deadline = time.monotonic() + wait_s
    while True:
        active = mirror.group_mirror.active()
        mirror.group_mirror.sync(mirror.topics, mirror.positions(), forward_only=True)
        if not active:
            return
        if time.monotonic() >= deadline:
            report(
                f"{len(active)} groups still have members at the source ({', '.join(active[:5])}): "
                "stop them, run `bucketlog mirror --groups-alone`, and start them on bucketlog"
            )
            return
        time.sleep(LOOK_S)
