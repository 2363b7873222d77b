"""Rows of the pages Groups and Group: committed offsets and lag, in records and in time. Pure.

The time of a lag comes from the highest timestamp of the batch, or of the tier's object, that has
the first unread record: that record has waited at least since this time. This time and the time of
the last commit show whether a partition is stuck. Both times are in the bucket.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.console.log_view import LogView
from bucketlog.console.topics import lag_of
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.tiered_storage.log_cut import ReadablePartition


class GroupLagRow(NamedTuple):
    """The figures of a group. `lag`, `committed` and `latest` are the sums of lags, committed
    offsets and latest offsets over the partitions. `worst_lag` is the largest lag of a
    partition."""

    name: str
    topics: int
    partitions: int
    lag: int
    worst_lag: int
    committed_ms: int
    committed: int
    latest: int


def group_rows(view: LogView) -> list[GroupLagRow]:
    """A row for each group with committed offsets."""
    found = []
    for name, rows in view.state.groups.items():
        lags = [lag_of(view.figures[key], row.offset) for key, row in rows.items()]
        found.append(
            GroupLagRow(
                name,
                len({key.topic_id for key in rows}),
                len(rows),
                sum(lags),
                max(lags, default=0),
                max((row.committed_ms for row in rows.values()), default=-1),
                sum(row.offset for row in rows.values()),
                sum(view.figures[key].latest for key in rows),
            )
        )
    return found


class CommittedRow(NamedTuple):
    """A committed offset of a group. `unread_ms` is the least time that the first unread record has
    waited, or None if all records are read or if the record has no timestamp. `is_stuck` is the
    result of `is_stuck_after`."""

    topic: str
    partition: int
    committed: int
    earliest: int
    latest: int
    lag: int
    unread_ms: int | None
    committed_ms: int
    metadata: str
    is_stuck: bool


def is_stuck_after(limit_ms: int, *, unread_ms: int | None, committed_ms: int, now_ms: int) -> bool:
    """Return whether a group is stuck in a partition.

    The group is stuck if its first unread record has waited for `limit_ms`, and its last commit is
    at least as old. A partition whose records are all read is never stuck.

    Args:
        limit_ms: The time after which the group is stuck, in milliseconds.
        unread_ms: How long the first unread record has waited, in milliseconds, or None if all
            records are read or if the record has no timestamp.
        committed_ms: The time of the last commit, in milliseconds since 1970.
        now_ms: The time now, in milliseconds since 1970.
    """
    return unread_ms is not None and min(unread_ms, now_ms - committed_ms) >= limit_ms


def committed_rows(
    view: LogView,
    group: str,
    wanted: Iterable[TopicIdPartition],
    now_ms: int,
    *,
    stuck_after_ms: int,
) -> list[CommittedRow]:
    """The group's offsets in the partitions `wanted`, in the same order."""
    rows = view.state.groups.get(group, {})
    keys = [key for key in wanted if key in rows]
    parts = view.parts(keys)
    found = []
    for key in keys:
        row, figures = rows[key], view.figures[key]
        lag = lag_of(figures, row.offset)
        unread_ms = waiting_ms(parts[key], row.offset, now_ms) if lag else None
        found.append(
            CommittedRow(
                view.state.topics[key.topic_id].name,
                key.partition,
                row.offset,
                figures.earliest,
                figures.latest,
                lag,
                unread_ms,
                row.committed_ms,
                row.metadata,
                is_stuck_after(
                    stuck_after_ms,
                    unread_ms=unread_ms,
                    committed_ms=row.committed_ms,
                    now_ms=now_ms,
                ),
            )
        )
    return found


def waiting_ms(part: ReadablePartition, offset: int, now_ms: int) -> int | None:
    """The least time that the first unread record has waited, in milliseconds. None if all records
    are read, or if this record has no timestamp."""
    first = max(offset, part.log_start)
    row = bisect_right(part.rows, first, key=lambda each: each.end)
    if row < len(part.rows):
        at_ms = part.rows[row].max_timestamp_ms
        return now_ms - at_ms if at_ms >= 0 else None
    at = bisect_right(part.batches, first, key=lambda each: each.row.next_offset)
    if at < len(part.batches):
        at_ms = part.batches[at].row.max_timestamp
        return now_ms - at_ms if at_ms >= 0 else None
    return None


class GroupWait(NamedTuple):
    """The unread records of a group. `unread_ms` is the longest wait in a partition, in
    milliseconds, or None if all records are read or have no timestamp. `stuck` counts the
    partitions in which the group is stuck."""

    unread_ms: int | None
    stuck: int


def group_waits(
    view: LogView, groups: Iterable[str], now_ms: int, *, stuck_after_ms: int
) -> Mapping[str, GroupWait]:
    """Return the `GroupWait` of each group, by the group's name."""
    lagging = {
        name: {
            key: row
            for key, row in view.state.groups.get(name, {}).items()
            if lag_of(view.figures[key], row.offset)
        }
        for name in groups
    }
    parts = view.parts({key for rows in lagging.values() for key in rows})
    found = {}
    for name, rows in lagging.items():
        waits = [
            (waiting_ms(parts[key], row.offset, now_ms), row.committed_ms)
            for key, row in rows.items()
        ]
        found[name] = GroupWait(
            max((unread_ms for unread_ms, _ in waits if unread_ms is not None), default=None),
            sum(
                is_stuck_after(
                    stuck_after_ms, unread_ms=unread_ms, committed_ms=committed_ms, now_ms=now_ms
                )
                for unread_ms, committed_ms in waits
            ),
        )
    return found
