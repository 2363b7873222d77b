"""The pages Groups and Group: committed offsets and lag, in records and in time. Pure.

The time of a lag comes from the highest timestamp of the batch, or of the tier's object, that has
the first unread record: that record waits for at least as long.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.console.log_view import LogView
from bucketlog.console.topics import lag_of
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.tiered_storage.log_cut import ReadablePartition


class GroupLagRow(NamedTuple):
    """`lag` is the sum over the partitions, `worst_lag` the largest one."""

    name: str
    topics: int
    partitions: int
    lag: int
    worst_lag: int
    committed_ms: int


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
            )
        )
    return found


class CommittedRow(NamedTuple):
    """`unread_ms`: how long the first unread record has waited, at least; None if all is read."""

    topic: str
    partition: int
    committed: int
    earliest: int
    latest: int
    lag: int
    unread_ms: int | None
    committed_ms: int
    metadata: str


def committed_rows(
    view: LogView, group: str, wanted: Iterable[TopicIdPartition], now_ms: int
) -> list[CommittedRow]:
    """The group's offsets in these partitions, by topic and partition."""
    rows = view.state.groups.get(group, {})
    keys = [key for key in wanted if key in rows]
    parts = view.parts(keys)
    found = []
    for key in keys:
        row, figures = rows[key], view.figures[key]
        lag = lag_of(figures, row.offset)
        found.append(
            CommittedRow(
                view.state.topics[key.topic_id].name,
                key.partition,
                row.offset,
                figures.earliest,
                figures.latest,
                lag,
                waiting_ms(parts[key], row.offset, now_ms) if lag else None,
                row.committed_ms,
                row.metadata,
            )
        )
    return found


def waiting_ms(part: ReadablePartition, offset: int, now_ms: int) -> int | None:
    """Age of the oldest unread record; None if all are read, or if it has no timestamp."""
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


def worst_waits(view: LogView, groups: Iterable[str], now_ms: int) -> Mapping[str, int | None]:
    """The longest `unread_ms` of each of the groups."""
    names = list(groups)
    rows_of = {name: view.state.groups.get(name, {}) for name in names}
    lagging = {
        key
        for rows in rows_of.values()
        for key, row in rows.items()
        if lag_of(view.figures[key], row.offset)
    }
    parts = view.parts(lagging)
    found: dict[str, int | None] = {}
    for name, rows in rows_of.items():
        waits = [
            waiting_ms(parts[key], row.offset, now_ms) for key, row in rows.items() if key in parts
        ]
        found[name] = max((wait for wait in waits if wait is not None), default=None)
    return found
