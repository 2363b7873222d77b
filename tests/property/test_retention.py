"""Retention against Kafka's own way of going about it, written down naively: three passes over
segments that are deleted one by one."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.model import TierRow
from bucketlog.tiered_storage.retention import (
    RetentionLimits,
    RetentionPlan,
    UnmovedBatches,
    plan_retention,
)

NOW_MS = 1_000


@dataclass
class Segment:
    start: int
    end: int
    size: int
    timestamp: int


def kafkas_log_start(
    segments: Sequence[Segment],
    log_start: int,
    end: int,
    high_watermark: int,
    limits: RetentionLimits,
) -> int:
    """UnifiedLog.deleteOldSegments: log start breach, size breach, time breach."""
    left = list(segments)

    def upper() -> int:
        return left[1].start if len(left) > 1 else end

    while len(left) > 1 and left[1].start <= log_start:
        left.pop(0)
    size = sum(each.size for each in left)
    if 0 <= limits.retention_bytes <= size:
        diff = size - limits.retention_bytes
        while left and high_watermark >= upper() and diff - left[0].size >= 0:
            diff -= left[0].size
            log_start = max(log_start, upper())
            left.pop(0)
    if limits.retention_ms >= 0:
        while (
            left
            and high_watermark >= upper()
            and left[0].timestamp >= 0
            and NOW_MS - left[0].timestamp > limits.retention_ms
        ):
            log_start = max(log_start, upper())
            left.pop(0)
    return log_start


SEGMENTS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(1, 5), st.integers(1, 90), st.integers(0, NOW_MS + 50)
    ),
    max_size=16,
)
LIMITS = st.builds(
    RetentionLimits,
    retention_ms=st.one_of(st.just(-1), st.integers(0, NOW_MS)),
    retention_bytes=st.one_of(st.just(-1), st.integers(0, 700)),
)


def placed(drawn: Sequence[tuple[int, int, int, int]]) -> list[Segment]:
    segments, offset = [], 0
    for gap, length, size, timestamp in drawn:
        segments.append(Segment(offset + gap, offset + gap + length, size, timestamp))
        offset += gap + length
    return segments


def row(segment: Segment) -> TierRow:
    return TierRow(
        segment.start,
        segment.end,
        f"s{segment.start}",
        False,
        segment.size + 9,
        segment.size,
        segment.timestamp,
    )


def manifest(rows: Sequence[TierRow]) -> TierRow:
    return TierRow(
        rows[0].start,
        rows[-1].end,
        f"m{rows[0].start}",
        True,
        50,
        sum(each.batch_bytes for each in rows),
        max(each.max_timestamp_ms for each in rows),
        len(rows),
    )


def columns(segments: Sequence[Segment]) -> UnmovedBatches:
    return UnmovedBatches(
        array("q", [each.start for each in segments]),
        array("q", [each.end for each in segments]),
        array("q", [each.size for each in segments]),
        array("q", [each.timestamp for each in segments]),
    )


@given(
    drawn=SEGMENTS,
    limits=LIMITS,
    log_start=st.integers(0, 60),
    moved=st.integers(0, 16),
    grouped=st.lists(st.integers(1, 5), max_size=3),
    shown=st.integers(0, 80),
)
def test_the_log_begins_where_kafka_s_would(
    drawn: list[tuple[int, int, int, int]],
    limits: RetentionLimits,
    log_start: int,
    moved: int,
    grouped: list[int],
    shown: int,
) -> None:
    segments = placed(drawn)
    end = segments[-1].end if segments else 0
    log_start, high_watermark = min(log_start, end), min(shown, end)
    segments = [each for each in segments if each.end > log_start]
    expected = kafkas_log_start(segments, log_start, end, high_watermark, limits)
    every = [row(each) for each in segments[:moved]]
    rows: list[TierRow] = []
    listed: dict[str, list[TierRow]] = {}
    for count in grouped:
        some, every = every[:count], every[count:]
        if some:
            rows.append(manifest(some))
            listed[rows[-1].name] = some
    rows += every
    known: dict[str, list[TierRow]] = {}
    for _ in range(len(listed) + 1):
        plan = plan_retention(
            rows,
            known,
            columns(segments[moved:]),
            limits=limits,
            log_start=log_start,
            high_watermark=high_watermark,
            now_ms=NOW_MS,
        )
        assert log_start <= plan.log_start <= max(expected, log_start)
        if plan.manifest is None:
            break
        assert plan.manifest.name not in known
        known[plan.manifest.name] = listed[plan.manifest.name]
    assert plan == RetentionPlan(expected, None)


@given(drawn=SEGMENTS.filter(bool), limits=LIMITS, log_start=st.integers(0, 60))
def test_what_a_manifest_lists_below_the_log_start_is_not_counted(
    drawn: list[tuple[int, int, int, int]], limits: RetentionLimits, log_start: int
) -> None:
    """The manifest still lists what the log start has passed."""
    segments = placed(drawn)
    log_start = min(log_start, segments[-1].end - 1)
    every = [row(each) for each in segments]
    there = manifest(every)
    left = [each for each in segments if each.end > log_start]
    end = segments[-1].end
    found = RetentionPlan(0, there)
    for known in ({}, {there.name: every}):
        if found.manifest is not None:
            found = plan_retention(
                [there],
                known,
                UnmovedBatches(),
                limits=limits,
                log_start=log_start,
                high_watermark=end,
                now_ms=NOW_MS,
            )
    assert found == RetentionPlan(kafkas_log_start(left, log_start, end, end, limits), None)


def plan(
    segments: Sequence[Segment], limits: RetentionLimits, *, tier: int = 99, log_start: int = 0
) -> int:
    found = plan_retention(
        [row(each) for each in segments[:tier]],
        {},
        columns(segments[tier:]),
        limits=limits,
        log_start=log_start,
        high_watermark=segments[-1].end,
        now_ms=NOW_MS,
    )
    assert found.manifest is None
    return found.log_start


OLD = [Segment(0, 10, 100, 100), Segment(12, 20, 100, 500), Segment(20, 30, 100, 200)]


@pytest.mark.parametrize("tier", [0, 1, 3])
@pytest.mark.parametrize(
    ("limits", "log_start"),
    [
        (RetentionLimits(-1, -1), 0),
        (RetentionLimits(900, -1), 0),
        (RetentionLimits(899, -1), 12),
        (RetentionLimits(500, -1), 12),
        (RetentionLimits(499, -1), 30),
        (RetentionLimits(-1, 300), 0),
        (RetentionLimits(-1, 201), 0),
        (RetentionLimits(-1, 200), 12),
        (RetentionLimits(-1, 100), 20),
        (RetentionLimits(-1, 1), 20),
        (RetentionLimits(-1, 0), 30),
        (RetentionLimits(750, 100), 30),
    ],
)
def test_as_computed_by_hand(tier: int, limits: RetentionLimits, log_start: int) -> None:
    assert plan(OLD, limits, tier=tier) == log_start


def test_a_batch_without_a_timestamp_stays() -> None:
    segments = [Segment(0, 1, 9, 100), Segment(1, 2, 9, -1), Segment(2, 3, 9, 100)]
    assert plan(segments, RetentionLimits(0, -1), tier=0) == 1


def test_what_goes_by_time_makes_no_room_for_more_to_go_by_size() -> None:
    segments = [Segment(0, 1, 200, 0), Segment(1, 2, 50, NOW_MS), Segment(2, 3, 50, NOW_MS)]
    assert plan(segments, RetentionLimits(500, 200)) == 1


@pytest.mark.parametrize("limits", [RetentionLimits(-1, 150), RetentionLimits(450, -1)])
def test_a_manifest_that_goes_in_part_is_asked_for(limits: RetentionLimits) -> None:
    every = [row(Segment(at, at + 1, 100, 500 + at * 100)) for at in range(3)]
    there = manifest(every)

    def found(known: dict[str, list[TierRow]]) -> RetentionPlan:
        return plan_retention(
            [there],
            known,
            UnmovedBatches(),
            limits=limits,
            log_start=0,
            high_watermark=3,
            now_ms=NOW_MS,
        )

    assert found({}) == RetentionPlan(0, there)
    assert found({there.name: every}) == RetentionPlan(1, None)
