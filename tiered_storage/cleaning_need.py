"""The need to clean a compacted partition, and how far: pure arithmetic over its tier.

Invariant: nothing at or after the last stable offset is cleanable. Neither is the first row whose
highest timestamp is younger than `min.compaction.lag.ms`, nor any row after it. Batches that are in
log segments and in no row yet are the counterpart of Kafka's active segment: they are never
cleaned.

Source: Kafka's LogCleanerManager (cleanableOffsets, maxCompactionDelay, grabFilthiestCompactedLog)
and LogToClean; KIP-58 (min.compaction.lag.ms), KIP-354 (max.compaction.lag.ms).
"""

from collections.abc import Sequence
from typing import NamedTuple

from bucketlog.log_format.model import TierRow

MAX_COMPACTION_LAG_MS = 2**63 - 1
"""Kafka's default of `max.compaction.lag.ms`: no bound."""


class CleaningRules(NamedTuple):
    """A topic's configs: `min.cleanable.dirty.ratio` and the two compaction lags."""

    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_COMPACTION_LAG_MS


class CleanablePart(NamedTuple):
    """The dirty part that may be cleaned: offsets from `start` on and before `end`, its bytes of
    batches, and those of the clean part before it. `overdue_ms`: how much longer than
    `max.compaction.lag.ms` its oldest row has waited."""

    start: int
    end: int
    dirty_bytes: int
    clean_bytes: int
    overdue_ms: int

    @property
    def dirty_ratio(self) -> float:
        """The dirty part of the bytes. The partition with the highest ratio is cleaned first."""
        total = self.dirty_bytes + self.clean_bytes
        return self.dirty_bytes / total if total else 0.0


def cleanable(
    rows: Sequence[TierRow],
    *,
    cleaned_to: int,
    log_start: int,
    last_stable_offset: int,
    rules: CleaningRules,
    now_ms: int,
) -> CleanablePart:
    """Return the part that may be cleaned. `rows` are a partition's tier. A row that ends above
    `cleaned_to` is dirty as a whole.

    A `cleaned_to` that is not in the tier (DeleteRecords has passed it) counts as the log's start.
    """
    end_of_rows = rows[-1].end if rows else log_start
    start = cleaned_to if log_start <= cleaned_to <= end_of_rows else log_start
    dirty = [row for row in rows if row.end > start]
    clean_bytes = sum(row.batch_bytes for row in rows if row.end <= start)
    end = start
    dirty_bytes = 0
    oldest_ms: int | None = None
    lag_ms = max(rules.min_compaction_lag_ms, 0)
    for row in dirty:
        if row.end > last_stable_offset:
            break
        if lag_ms and row.max_timestamp_ms > now_ms - lag_ms:
            break
        end = row.end
        dirty_bytes += row.batch_bytes
        if row.max_timestamp_ms > 0:
            oldest_ms = min(row.max_timestamp_ms, oldest_ms or row.max_timestamp_ms)
    clean_until_ms = now_ms - max(rules.max_compaction_lag_ms, 0)
    overdue_ms = max(0, clean_until_ms - oldest_ms) if oldest_ms is not None else 0
    return CleanablePart(start, end, dirty_bytes, clean_bytes, overdue_ms)


def needs_cleaning(part: CleanablePart, rules: CleaningRules) -> bool:
    """Return whether to clean, as Kafka decides: the part is dirtier than the ratio, or has waited
    for too long."""
    if part.end <= part.start or not part.dirty_bytes:
        return False
    return part.overdue_ms > 0 or part.dirty_ratio > rules.min_cleanable_dirty_ratio
