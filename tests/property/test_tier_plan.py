"""Plans against naive models, and what many rounds of them come to: rows, and bytes rewritten."""

import random
from collections.abc import Sequence
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.model import (
    TierRow,
    TopicId,
    TopicIdPartition,
    WaitingSegment,
)
from bucketlog.tiered_storage.tier_plan import (
    MIB,
    CompactionSettings,
    PartitionRange,
    plan_manifest,
    plan_merge,
    plan_split,
    plan_trim,
)
from tests.models.log_columns import NOW_MS, Columns, CountedColumns, End, waiting

SMALL = CompactionSettings(
    window_bytes=1_000,
    interval_ms=500,
    age_ms_min=20,
    segment_bytes_target=1_000,
    merge_rows_min=4,
    tier_rows_max=4,
    manifest_segments_max=16,
)


def part(number: int) -> TopicIdPartition:
    return TopicIdPartition(TopicId(b"t" * 16), number)


# Splitting ----------------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[WaitingSegment], dict[TopicIdPartition, Columns]]:
    sizes = draw(st.lists(st.integers(50, 600), min_size=0, max_size=12))
    age = 0
    ordered = []
    for number, size in reversed(list(enumerate(sizes))):
        age += draw(st.integers(0, 90))
        ordered.append(waiting(number, size, age))
    ordered.reverse()
    columns = {}
    for number in range(draw(st.integers(0, 4))):
        offset = tier_end = draw(st.integers(0, 5))
        rows = []
        for segment in range(draw(st.integers(0, len(sizes))), len(sizes)):
            for _ in range(draw(st.integers(0, 2))):
                base = offset + draw(st.integers(0, 2))
                offset = base + draw(st.integers(1, 3))
                rows.append((base, offset, draw(st.integers(61, 99)), segment))
        stable = draw(st.none() | st.sampled_from([tier_end, *(row[1] for row in rows)]))
        columns[part(number)] = Columns(End(tier_end), rows, stable)
    return ordered, columns


def stable_rows(log: Columns) -> list[tuple[int, int, int, int]]:
    return [row for row in log.rows if row[1] <= log.last_stable_offset]


@given(given_logs=logs())
def test_a_window_is_the_oldest_that_fits(
    given_logs: tuple[list[WaitingSegment], dict[TopicIdPartition, Columns]],
) -> None:
    ordered, columns = given_logs
    plan = plan_split(ordered, columns, settings=SMALL, now_ms=NOW_MS)
    used = {row[3] for log in columns.values() for row in stable_rows(log)}
    first = min(used, default=len(ordered))
    chosen: list[WaitingSegment] = []
    for each in ordered[first:]:
        if NOW_MS - each.created_ms < SMALL.age_ms_min:
            break
        chosen.append(each)
    total = sum(each.batch_bytes for each in chosen)
    old = bool(chosen) and NOW_MS - chosen[0].created_ms >= SMALL.interval_ms
    if not chosen or (total < SMALL.window_bytes and not old):
        assert plan is None
        return
    while len(chosen) > 1 and sum(each.batch_bytes for each in chosen) > SMALL.window_bytes:
        chosen.pop()
    assert plan is not None
    window = {each.segment.seq for each in chosen}
    assert plan.segments == tuple(each for each in chosen if each.segment.seq in used)
    expected = {}
    for partition, log in columns.items():
        rows = [row for row in stable_rows(log) if row[3] in window]
        if rows:
            expected[partition] = PartitionRange(
                log.tier.end, log.tier.end + 1, rows[-1][1], len(rows), sum(row[2] for row in rows)
            )
    assert plan.ranges == expected


def test_an_open_transaction_holds_its_own_partition_alone() -> None:
    """The held partition's segments pile up; those of the others are split on and on."""
    held = Columns(End(0), [(at, at + 1, 70, at) for at in range(40)], 3)
    columns = {part(0): held, part(1): Columns(End(0), [(at, at + 1, 70, at) for at in range(40)])}
    ordered = [waiting(at, 140, 10_000) for at in range(40)]
    seen = []
    for _ in range(9):
        plan = plan_split(ordered, columns, settings=SMALL, now_ms=NOW_MS)
        if plan is None:
            break
        seen.append({each.partition: wanted.end for each, wanted in plan.ranges.items()})
        for each, wanted in plan.ranges.items():
            log = columns[each]
            log.tier = End(wanted.end)
            log.rows = [row for row in log.rows if row[1] > wanted.end]
    assert [each.get(0) for each in seen] == [3, None, None, None, None, None]
    assert [each[1] for each in seen] == [7, 14, 21, 28, 35, 40]
    held.stable_end = None
    assert plan_split(ordered, columns, settings=SMALL, now_ms=NOW_MS) is not None


def test_what_is_large_alone_is_a_window() -> None:
    ordered = [waiting(0, 5_000, 100), waiting(1, 10, 100)]
    columns = {part(0): Columns(End(7), [(7, 9, 99, 0), (9, 12, 99, 1)])}
    plan = plan_split(ordered, columns, settings=SMALL, now_ms=NOW_MS)
    assert plan is not None
    assert plan.segments == (ordered[0],)
    assert plan.ranges == {part(0): PartitionRange(7, 8, 9, 1, 99)}


@pytest.mark.parametrize(("age", "due"), [(499, False), (500, True)])
def test_a_window_that_is_not_full_waits_for_the_interval(age: int, due: bool) -> None:
    columns = {part(0): Columns(End(0), [(0, 1, 99, 0)])}
    plan = plan_split([waiting(0, 99, age)], columns, settings=SMALL, now_ms=NOW_MS)
    assert (plan is not None) == due


def test_a_window_costs_what_it_holds_and_not_what_waits() -> None:
    """A million batches behind the window are not gone through."""

    count = 20_000
    log = Columns(End(0), [(at, at + 1, 70, at) for at in range(count)])
    far = CountedColumns(log)
    ordered = [waiting(at, 100, 10_000) for at in range(count)]
    plan = plan_split(ordered, {part(0): far}, settings=SMALL, now_ms=NOW_MS)
    assert plan is not None
    assert len(plan.segments) == plan.ranges[part(0)].batches == 10
    assert far.seen < 70


# Merging ------------------------------------------------------------------------------------------


def tier(sizes: Sequence[int], manifests: Sequence[int] = ()) -> list[TierRow]:
    rows = [
        TierRow(-9 + at, -8 + at, f"m{at}", True, 9, 9_999, 0, n) for at, n in enumerate(manifests)
    ]
    return rows + [
        TierRow(at * 10, at * 10 + 10, f"s{at}", False, size + 99, size, at)
        for at, size in enumerate(sizes)
    ]


SIZES = st.lists(
    st.one_of(st.integers(1, 20), st.integers(1, 499), st.integers(490, 1_200)), max_size=14
)


@given(sizes=SIZES, quiet=st.booleans())
def test_groups_are_neighbours_and_worth_it(sizes: list[int], quiet: bool) -> None:
    rows = tier(sizes)
    groups = plan_merge(rows, quiet=quiet, settings=SMALL)
    names = [row.name for group in groups for row in group]
    assert len(set(names)) == len(names)
    for group in groups:
        first = rows.index(group[0])
        assert list(group) == rows[first : first + len(group)]
        total, largest = sum(r.batch_bytes for r in group), max(r.batch_bytes for r in group)
        assert len(group) > 1
        assert largest < SMALL.full_bytes
        assert total < 1.5 * SMALL.segment_bytes_target
        if not quiet:
            assert total >= 2 * largest
            assert len(group) >= SMALL.merge_rows_min or total >= SMALL.segment_bytes_target
        assert largest <= SMALL.merge_rows_min * (total - largest)


@given(sizes=SIZES, quiet=st.booleans())
def test_nothing_is_planned_only_where_nothing_is_worth_it(sizes: list[int], quiet: bool) -> None:
    if plan_merge(tier(sizes), quiet=quiet, settings=SMALL):
        return
    for start in range(len(sizes)):
        for end in range(start + 2, len(sizes) + 1):
            some = sizes[start:end]
            if max(some) >= SMALL.full_bytes:
                continue
            others = sum(some) - max(some)
            assert sum(some) < SMALL.segment_bytes_target
            assert len(some) < SMALL.merge_rows_min or max(some) > others
            assert not quiet or max(some) > SMALL.merge_rows_min * others


def merged(rows: list[TierRow], *, quiet: bool, settings: CompactionSettings) -> int:
    """Carries out what is planned; the bytes that were rewritten."""
    rewritten = 0
    for group in plan_merge(rows, quiet=quiet, settings=settings):
        at = rows.index(group[0])
        size = sum(row.batch_bytes for row in group)
        name = "+".join(row.name for row in group)
        one = TierRow(group[0].start, group[-1].end, name, False, size + 99, size, 0)
        rows[at : at + len(group)] = [one]
        rewritten += size
    return rewritten


@pytest.mark.parametrize("seed", range(30))
def test_a_growing_partition_has_few_rows_and_each_byte_is_rewritten_seldom(seed: int) -> None:
    chance = random.Random(seed)
    settings = CompactionSettings()
    largest = chance.choice([20_000, 500_000, 4 * MIB, 40 * MIB])
    rows: list[TierRow] = []
    rewritten = written = 0
    for at in range(400):
        size = chance.randint(largest // 4, largest)
        rows += [row._replace(start=at, end=at + 1, name=f"s{at}") for row in tier([size])]
        written += size
        rewritten += merged(rows, quiet=False, settings=settings)
        small = [row for row in rows if row.batch_bytes < settings.full_bytes]
        assert len(small) <= 3 * settings.merge_rows_min
        assert sum(row.batch_bytes for row in rows) == written
    assert rewritten <= written * log2(settings.segment_bytes_target / (largest / 4) + 2)
    assert rewritten <= 5 * written


@pytest.mark.parametrize("windows", [1, 2, 7, 8, 9, 10, 15, 18, 40, 90])
def test_two_rows_are_left_behind_a_burst(windows: int) -> None:
    """2 GB of 200 partitions: 10 MB each, in so many windows; then nothing comes any more."""
    settings = CompactionSettings()
    rows: list[TierRow] = []
    for at in range(windows):
        rows += [
            row._replace(start=at, end=at + 1, name=f"s{at}") for row in tier([10**7 // windows])
        ]
        merged(rows, quiet=False, settings=settings)
    while merged(rows, quiet=True, settings=settings):
        pass
    assert 200 * len(rows) < 600
    assert len(rows) <= 2


@pytest.mark.parametrize("seed", range(10))
def test_a_partition_that_is_quiet_after_every_window_pays_a_bounded_price(seed: int) -> None:
    chance = random.Random(seed)
    settings = CompactionSettings()
    rows: list[TierRow] = []
    rewritten = written = 0
    for at in range(300):
        size = chance.randint(MIB // 2, MIB)
        rows += [row._replace(start=at, end=at + 1, name=f"s{at}") for row in tier([size])]
        written += size
        while more := merged(rows, quiet=True, settings=settings):
            rewritten += more
        small = [row for row in rows if row.batch_bytes < settings.full_bytes]
        assert len(small) <= 3
    assert rewritten <= 12 * written


def test_full_rows_and_manifests_stand_between() -> None:
    (manifest,) = tier([], [3])
    rows = [
        manifest._replace(batch_bytes=100),
        *tier([100, 100, 500, 100, 100, 100]),
    ]
    assert plan_merge(rows, quiet=False, settings=SMALL) == []
    assert plan_merge(rows, quiet=True, settings=SMALL) == [
        (rows[1], rows[2]),
        (rows[4], rows[5], rows[6]),
    ]


def test_rows_that_reach_the_target_are_merged_however_few() -> None:
    rows = tier([400, 300, 299, 1, 450, 10])
    assert plan_merge(rows, quiet=False, settings=SMALL) == [tuple(rows[:4])]
    assert plan_merge(rows[1:], quiet=False, settings=SMALL) == [tuple(rows[1:5])]


# Manifests ----------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.sampled_from([10, 100, 499, 500, 900]), max_size=40),
    manifests=st.lists(st.integers(1, 16), max_size=3),
)
def test_old_rows_go_into_a_manifest(sizes: list[int], manifests: list[int]) -> None:
    rows = tier(sizes, manifests)
    plan = plan_manifest(rows, settings=SMALL)
    fresh = rows[len(manifests) :]
    full = [at for at, row in enumerate(fresh) if row.batch_bytes >= SMALL.full_bytes]
    merging = [fresh.index(group[0]) for group in plan_merge(fresh, quiet=True, settings=SMALL)]
    limit = min(merging, default=len(fresh))
    settled = max((at + 1 for at in full if at < limit), default=0)
    if settled <= SMALL.tier_rows_max:
        assert plan is None
        return
    assert plan is not None
    assert list(plan.rows) == fresh[: len(plan.rows)]
    assert 0 < len(plan.rows) <= settled - SMALL.tier_rows_max // 2
    if plan.joined is not None:
        assert plan.joined == rows[len(manifests) - 1]
        assert plan.replaced == (plan.joined, *plan.rows)
        assert plan.joined.segments + len(plan.rows) <= SMALL.manifest_segments_max
    else:
        assert not manifests or manifests[-1] == SMALL.manifest_segments_max
        assert plan.replaced == plan.rows
    room = SMALL.manifest_segments_max - (plan.joined.segments if plan.joined else 0)
    assert len(plan.rows) == min(room, settled - SMALL.tier_rows_max // 2)


def test_a_long_history_is_few_rows() -> None:
    """A tebibyte of one partition, an object at a time."""
    settings = CompactionSettings()
    rows: list[TierRow] = []
    manifests = 0
    for at in range(8_192):
        (row,) = tier([settings.segment_bytes_target])
        rows.append(row._replace(start=at, end=at + 1, name=f"s{at}"))
        plan = plan_manifest(rows, settings=settings)
        if plan is not None:
            first = rows.index(plan.replaced[0])
            listed = len(plan.rows) + (plan.joined.segments if plan.joined else 0)
            manifest = TierRow(
                plan.replaced[0].start, plan.rows[-1].end, f"m{at}", True, 9, 9**9, 0, listed
            )
            rows[first : first + len(plan.replaced)] = [manifest]
            manifests += 1
        assert len(rows) <= settings.tier_rows_max + 8
    assert sum(row.segments for row in rows) == 8_192
    assert [row.segments for row in rows if row.manifest][:-1] == [1_024] * 7
    assert manifests == pytest.approx(8_192 / 33, rel=0.05)


@given(count=st.integers(1, 40), log_start=st.integers(-5, 420))
def test_what_is_below_the_log_start_is_trimmed(count: int, log_start: int) -> None:
    listed = tier([500] * count)
    trim = plan_trim(listed, log_start)
    gone = [row for row in listed if row.end <= log_start]
    if len(gone) == len(listed) or len(gone) * 8 < len(listed) or not gone:
        assert trim is None
        return
    assert trim is not None
    assert list(trim.removed) == gone
    assert list(trim.kept) == listed[len(gone) :]
