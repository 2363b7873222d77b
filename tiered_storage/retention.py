"""The new log start of a partition by `retention.ms` and `retention.bytes`. Pure.

These are Kafka's rules (UnifiedLog.deleteOldSegments of 4.x): first by size, then by time. Each
rule takes the oldest and stops at the first that stays. Nothing at or above the high watermark is
removed. The log begins where the next part begins, or at its end. Kafka applies the rules to
segment files. Here they apply to partition segments and, for batches that are still in log
segments, to batches.

The age of a partition segment is that of its highest timestamp; if no batch has a timestamp, that
of its writing, as in LogSegment.largestTimestamp. A batch without a timestamp stays until it is in
a partition segment.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from bucketlog.log_format.model import NO_TIMESTAMP, TierRow


class RetentionLimits(NamedTuple):
    """Limits of a topic whose cleanup.policy has `delete`; -1: no limit."""

    retention_ms: int
    retention_bytes: int


class UnmovedBatches(NamedTuple):
    """Batches that are in log segments, column by column, in offset order. Borrowed."""

    base_offsets: Sequence[int] = ()
    next_offsets: Sequence[int] = ()
    lengths: Sequence[int] = ()
    timestamps: Sequence[int] = ()


class RetentionPlan(NamedTuple):
    """The log begins at `log_start`. If `manifest` is not None, more may be removed once its rows
    are known."""

    log_start: int
    manifest: TierRow | None


class _Part(NamedTuple):
    """A part of the log that is removed as a whole, or stays. `manifest`: the row of a manifest
    whose rows are not known yet."""

    start: int
    end: int
    size_bytes: int
    max_timestamp_ms: int
    manifest: TierRow | None = None


def plan_retention(
    rows: Sequence[TierRow],
    listed: Mapping[str, Sequence[TierRow]],
    batches: UnmovedBatches,
    *,
    limits: RetentionLimits,
    log_start: int,
    high_watermark: int,
    now_ms: int,
) -> RetentionPlan:
    """Plan the log start. `rows` are the partition's tier; `listed` has the rows of its manifests,
    by their names, as far as they are known. A manifest that is removed as a whole need not be
    known. Then, what it lists below the log start counts twice, in the log's size and in its
    own."""
    sized = limits.retention_bytes >= 0
    tier = list(_tier_parts(rows, listed, log_start))
    unmoved = bisect_right(batches.next_offsets, log_start)
    size = sum(part.size_bytes for part in tier) + sum(islice(batches.lengths, unmoved, None))
    excess = size - limits.retention_bytes if sized else -1
    begin, by_size = log_start, sized
    parts = chain(tier, _batch_parts(batches, unmoved))
    part = next(parts, None)
    while part is not None:
        following = next(parts, None)
        end = part.end if following is None else following.start
        by_size = by_size and part.size_bytes <= excess
        goes = by_size or _expired(part, limits, now_ms)
        if not goes and part.manifest is not None and (excess > 0 or limits.retention_ms >= 0):
            return RetentionPlan(begin, part.manifest)
        if not goes or end > high_watermark:
            break
        excess -= part.size_bytes if by_size else 0
        begin = end
        part = following
    return RetentionPlan(begin, None)


def _expired(part: _Part, limits: RetentionLimits, now_ms: int) -> bool:
    return (
        limits.retention_ms >= 0
        and part.max_timestamp_ms != NO_TIMESTAMP
        and now_ms - part.max_timestamp_ms > limits.retention_ms
    )


def _tier_parts(
    rows: Sequence[TierRow], listed: Mapping[str, Sequence[TierRow]], log_start: int
) -> Iterator[_Part]:
    for row in rows:
        for each in listed.get(row.name, (row,)):
            if each.end > log_start:
                manifest = each if each.manifest else None
                yield _Part(each.start, each.end, each.batch_bytes, each.max_timestamp_ms, manifest)


def _batch_parts(batches: UnmovedBatches, first: int) -> Iterator[_Part]:
    return map(_Part, *(islice(column, first, None) for column in batches))
