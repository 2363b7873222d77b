"""The tier: which swaps count, what leaves it, and what the fold remembers of that."""

import pytest

from bucketlog.log_format.model import Ticket, TierObject, TierRow
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.tier import DroppedObject, Swap, Tier
from tests.models.indexes import (
    begin,
    create,
    delete,
    partition,
    row,
    segment,
    swap,
    swapped,
    swept,
    tier_row,
)

A, B, C = tier_row(0, 10), tier_row(12, 20), tier_row(20, 30)
MERGED = tier_row(0, 20, "merged")


def three() -> Tier:
    return Tier([A, B, C], 30)


def test_a_split_counts_where_it_begins_at_the_end_of_the_tier() -> None:
    tier = Tier()
    assert tier.swap(Swap(0, 11, (), (A,))) == []
    assert tier.swap(Swap(11, 20, (), (B,))) == []
    assert tier.swap(Swap(20, 25, (), ())) == []  # nothing of it is left to read
    assert (tier.rows, tier.end) == ([A, B], 25)


REFUSED: dict[str, Swap] = {
    "a split from before the end": Swap(20, 40, (), (tier_row(20, 40),)),
    "a split from behind the end": Swap(31, 40, (), (tier_row(31, 40),)),
    "a split of nothing": Swap(30, 30, (), ()),
    "a split that goes back": Swap(30, 29, (), ()),
    "what is added begins before": Swap(30, 40, (), (tier_row(29, 40),)),
    "what is added ends behind": Swap(30, 40, (), (tier_row(30, 41),)),
    "what is added overlaps": Swap(30, 40, (), (tier_row(30, 35), tier_row(34, 40))),
    "what is added is empty": Swap(30, 40, (), (tier_row(33, 33),)),
    "a row that is not there": Swap(0, 20, ("0-10", "x"), (MERGED,)),
    "rows that are not side by side": Swap(0, 30, ("0-10", "20-30"), (MERGED,)),
    "rows in another order": Swap(0, 20, ("12-20", "0-10"), (MERGED,)),
    "rows beyond the last": Swap(20, 40, ("20-30", "30-40"), ()),
    "it begins before what it replaces": Swap(10, 20, ("12-20",), (tier_row(10, 20),)),
    "it ends behind what it replaces": Swap(12, 21, ("12-20",), (tier_row(12, 21),)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_swap_that_was_planned_on_something_else_changes_nothing(case: str) -> None:
    tier = three()
    assert tier.swap(REFUSED[case]) is None
    assert tier == three()


@pytest.mark.parametrize(
    ("added", "expected"),
    [((MERGED,), [MERGED, C]), ((), [C]), ((tier_row(0, 3), tier_row(15, 20)), None)],
)
def test_a_rewriting_takes_the_place_of_what_it_names(
    added: tuple[TierRow, ...], expected: list[TierRow] | None
) -> None:
    tier = three()
    assert tier.swap(Swap(0, 20, ("0-10", "12-20"), added, cleaned_to=17)) == [A, B]
    assert tier == Tier([*added, C] if expected is None else expected, 30, 17)


def test_a_log_start_takes_the_rows_before_it() -> None:
    tier = three()
    assert tier.begin_at(9) == []
    assert tier.begin_at(20) == [A, B]
    assert tier == Tier([C], 30)


def test_the_row_of_an_offset_or_the_next_one() -> None:
    places = [three().row_at(offset) for offset in (0, 9, 10, 11, 12, 19, 20, 29, 30, 99)]
    assert places == [0, 0, 1, 1, 1, 1, 2, 2, 3, 3]


# The fold --------------------------------------------------------------------------------------

HERE = partition(1)


def there(each: TierRow) -> TierObject:
    return TierObject(HERE, each.start, each.name, each.manifest)


def started() -> LogState:
    state = fold([segment(0, {HERE: [row(0, 10), row(12, 8), row(20, 10)]}, create(1))])
    state.apply(segment(1, {}, swapped(swap(HERE, 0, 20, A, B)), swapped(swap(HERE, 20, 30, C))))
    return state


def test_what_a_swap_replaces_is_dropped() -> None:
    state = started()
    rewriting = swap(HERE, 0, 20, MERGED, replaced=[A.name, B.name], removed=[(3, "in a manifest")])
    state.apply(segment(2, {}, swapped(rewriting)))
    assert state.partitions[HERE].tier.rows == [MERGED, C]
    assert state.dropped == [
        DroppedObject(Ticket(1, 2), there(A), False),
        DroppedObject(Ticket(1, 2), there(B), False),
        DroppedObject(Ticket(1, 2), TierObject(HERE, 3, "in a manifest"), False),
    ]


def test_a_swap_that_comes_twice_or_late_drops_nothing() -> None:
    """Its objects may be those that stand there."""
    state = started()
    state.apply(segment(2, {}, swapped(swap(HERE, 0, 20, A, B)), swapped(swap(HERE, 20, 30, C))))
    assert state.partitions[HERE].tier == three()
    assert state.dropped == []


def test_each_partitions_part_counts_by_itself() -> None:
    state = fold([segment(0, {partition(1, 1): [row(0, 5)]}, create(1, 2))])
    good, bad = swap(partition(1, 1), 0, 5, tier_row(0, 5)), swap(HERE, 3, 5, tier_row(3, 5))
    state.apply(segment(1, {}, swapped(bad, good, swap(partition(2), 0, 5, tier_row(0, 5)))))
    assert [len(state.partitions[partition(1, n)].tier.rows) for n in (0, 1)] == [0, 1]


def test_a_log_start_moves_forward_alone_and_drops_what_is_below_it() -> None:
    state = started()
    state.apply(segment(2, {}, begin({HERE: 12, partition(7): 3})))
    state.apply(segment(3, {}, begin({HERE: 11})))
    part = state.partitions[HERE]
    assert (part.log_start, part.tier.rows, part.batches_from) == (12, [B, C], 30)
    assert state.dropped == [DroppedObject(Ticket(1, 2), there(A), False)]


def test_a_split_that_ends_below_the_log_start_is_dropped_at_once() -> None:
    state = fold([segment(0, {HERE: [row(0, 30)]}, create(1)), segment(1, {}, begin({HERE: 25}))])
    state.apply(segment(2, {}, swapped(swap(HERE, 0, 30, A, C))))
    assert state.partitions[HERE].tier == Tier([C], 30)
    assert state.dropped == [DroppedObject(Ticket(1, 2), there(A), False)]


def test_with_a_manifest_goes_what_it_lists_unless_it_is_rewritten() -> None:
    manifest = tier_row(0, 20, "m", manifest=True)
    for last, contents in (
        (swapped(swap(HERE, 0, 20, MERGED, replaced=["m"])), False),
        (begin({HERE: 20}), True),
        (delete(1), True),
    ):
        state = fold([segment(0, {HERE: [row(0, 30)]}, create(1))])
        state.apply(segment(1, {}, swapped(swap(HERE, 0, 20, manifest))))
        state.apply(segment(2, {}, last))
        assert state.dropped == [DroppedObject(Ticket(1, 2), there(manifest), contents)]


def test_a_job_that_is_over_counts_no_more_and_what_is_swept_is_forgotten() -> None:
    state = started()
    state.apply(segment(2, {}, swapped(swap(HERE, 0, 20, MERGED, replaced=[A.name, B.name]))))
    state.apply(segment(3, {}, begin({HERE: 30})))
    assert len(state.dropped) == 4
    state.apply(segment(9, {HERE: [row(30, 10)]}, swept(1, 3)))
    assert [dropped.there for dropped in state.dropped] == [there(MERGED), there(C)]
    assert state.swept_below == Ticket(1, 3)
    late = swap(HERE, 30, 40, tier_row(30, 40))
    state.apply(segment(10, {}, swapped(late, planned=(1, 2))))
    assert state.partitions[HERE].tier.end == 30
    state.apply(segment(11, {}, swapped(late, planned=(1, 3))))
    assert state.partitions[HERE].tier.end == 40
    state.apply(segment(12, {}, swept(1, 1)))  # an older one: nothing comes back
    assert state.swept_below == Ticket(1, 3)
