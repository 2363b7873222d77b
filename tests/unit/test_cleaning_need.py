"""When a compacted partition is cleaned, and how far: Kafka's rules on rows of a tier."""

from bucketlog.log_format.model import TierRow
from bucketlog.tiered_storage.cleaning_need import (
    CleanablePart,
    CleaningRules,
    cleanable,
    needs_cleaning,
)

NOW_MS = 1_000_000


def row(start: int, end: int, batch_bytes: int = 100, max_timestamp_ms: int = NOW_MS) -> TierRow:
    return TierRow(
        start, end, f"name{start}", False, batch_bytes + 500, batch_bytes, max_timestamp_ms
    )


ROWS = [row(0, 10), row(10, 20, 300), row(25, 30, 50)]


def part(
    rows: list[TierRow] = ROWS,
    *,
    cleaned_to: int = 0,
    log_start: int = 0,
    last_stable_offset: int = 1000,
    rules: CleaningRules | None = None,
    now_ms: int = NOW_MS,
) -> CleanablePart:
    return cleanable(
        rows,
        cleaned_to=cleaned_to,
        log_start=log_start,
        last_stable_offset=last_stable_offset,
        rules=rules or CleaningRules(),
        now_ms=now_ms,
    )


def test_all_rows_are_dirty_at_first() -> None:
    assert part() == CleanablePart(0, 30, 450, 0, 0)
    assert part().dirty_ratio == 1


def test_what_an_earlier_round_cleaned_is_clean() -> None:
    assert part(cleaned_to=20) == CleanablePart(20, 30, 50, 400, 0)
    assert part(cleaned_to=22) == CleanablePart(22, 30, 50, 400, 0)
    assert part(cleaned_to=30) == CleanablePart(30, 30, 0, 450, 0)


def test_a_row_that_is_cleaned_in_part_is_dirty() -> None:
    assert part(cleaned_to=15) == CleanablePart(15, 30, 350, 100, 0)


def test_a_place_outside_the_log_counts_as_its_start() -> None:
    assert part(cleaned_to=31) == part()
    assert part(cleaned_to=3, log_start=5).start == 5
    assert part([], cleaned_to=31, log_start=31) == CleanablePart(31, 31, 0, 0, 0)


def test_nothing_unstable_is_cleanable() -> None:
    assert part(last_stable_offset=30).end == 30
    assert part(last_stable_offset=29).end == 20
    assert part(last_stable_offset=5) == CleanablePart(0, 0, 0, 0, 0)


def test_nothing_young_is_cleanable() -> None:
    """Kafka: a segment whose largest timestamp is above now - min.compaction.lag.ms."""
    rules = CleaningRules(min_compaction_lag_ms=50)
    rows = [row(0, 10, 1, NOW_MS - 50), row(10, 20, 1, NOW_MS - 49), row(20, 30, 1, 0)]
    assert part(rows, rules=rules).end == 10
    assert part(rows, rules=rules, now_ms=NOW_MS + 1).end == 30
    assert part(rows).end == 30


def test_the_ratio_must_be_exceeded() -> None:
    rules = CleaningRules(min_cleanable_dirty_ratio=0.5)
    rows = [row(0, 10, 100), row(10, 20, 100)]
    assert not needs_cleaning(part(rows, cleaned_to=10), rules)
    assert needs_cleaning(part([*rows[:1], row(10, 20, 101)], cleaned_to=10), rules)
    assert not needs_cleaning(part(rows), CleaningRules(min_cleanable_dirty_ratio=1.0))


def test_a_log_without_dirt_is_left_alone() -> None:
    rules = CleaningRules(min_cleanable_dirty_ratio=0.0)
    assert not needs_cleaning(part(cleaned_to=30), rules)
    assert not needs_cleaning(part([]), rules)
    assert needs_cleaning(part(cleaned_to=29), rules)


def test_what_has_waited_for_too_long_is_cleaned_whatever_the_ratio() -> None:
    rules = CleaningRules(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=70)
    rows = [row(0, 10, 100, 1), row(10, 20, 1, NOW_MS - 71), row(20, 30, 1, NOW_MS)]
    waiting = part(rows, cleaned_to=10, rules=rules)
    assert waiting.overdue_ms == 1
    assert needs_cleaning(waiting, rules)
    assert not needs_cleaning(part(rows, cleaned_to=10, rules=rules, now_ms=NOW_MS - 1), rules)
    assert not needs_cleaning(part(rows, cleaned_to=20, rules=rules), rules)
