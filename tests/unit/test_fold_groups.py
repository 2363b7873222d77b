"""Committed offsets in the fold: what counts, what is passed over, what goes with its topic."""

from typing import NoReturn

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import FactEntry, SegmentIndex, TopicIdPartition
from bucketlog.metadata.checkpoint_state import decode_state, encode_state
from bucketlog.metadata.committed_offset import CommittedOffset
from bucketlog.metadata.fact_model import FactKind
from bucketlog.metadata.facts import (
    TopicCreated,
)
from bucketlog.metadata.fold import LogState, fold
from tests.models.indexes import commit, create, delete, forget, grow, partition, segment


def offsets(state: LogState) -> dict[str, list[tuple[int, int, int]]]:
    """By group: topic, partition, offset. Checks that the state has the weight of these offsets."""
    rows = [row for each in state.groups.values() for row in each.values()]
    assert state.offsets.weight == sum(1 + len(row.metadata) // 128 for row in rows)
    return {
        group: sorted(
            (int.from_bytes(key.topic_id), key.partition, row.offset) for key, row in rows.items()
        )
        for group, rows in state.groups.items()
    }


def test_a_row_says_what_was_committed() -> None:
    fact = commit("g", {partition(1): 2**34}, at=7, expires=9, metadata="mine")
    state = fold([segment(0, {}, create(1), fact)])
    assert state.groups == {"g": {partition(1): CommittedOffset(2**34, 2**34 // 10, "mine", 7, 9)}}


def test_the_last_commit_of_a_partition_counts_and_may_go_back() -> None:
    state = LogState()
    state.apply(segment(0, {}, create(1, 3), commit("g", {partition(1): 5, partition(1, 1): 6})))
    state.apply(segment(1, {}, commit("g", {partition(1, 1): 9}), commit("g", {partition(1): 8})))
    state.apply(segment(2, {}, commit("g", {partition(1): 2}), commit("h", {partition(1, 2): 1})))
    assert offsets(state) == {"g": [(1, 0, 2), (1, 1, 9)], "h": [(1, 2, 1)]}


def test_long_metadata_weighs_more() -> None:
    state = LogState()
    long = commit("g", {partition(1): 5}, metadata="m" * 300)
    state.apply(segment(0, {}, create(1, 3), long, commit("h", {partition(1, 1): 6})))
    assert state.offsets.weight == 4
    assert decode_state(encode_state(state)).offsets.weight == 4
    state.apply(segment(1, {}, commit("g", {partition(1): 5}, metadata="m" * 200)))
    assert state.offsets.weight == 3
    state.apply(segment(2, {}, forget("g", partition(1))))
    assert state.offsets.weight == 1
    state.apply(segment(3, {}, long, delete(1)))
    assert state.offsets.weight == 0


def test_rows_of_what_does_not_exist_are_passed_over() -> None:
    """A deletion may come between a commit and the log."""
    state = LogState()
    state.apply(segment(0, {}, create(1, 2), create(2)))
    state.apply(segment(1, {}, delete(2)))
    state.apply(
        segment(2, {}, commit("g", {partition(1, 2): 1, partition(2): 2, partition(1, 1): 3}))
    )
    state.apply(segment(3, {}, commit("gone", {partition(2): 2, partition(9): 2})))
    assert offsets(state) == {"g": [(1, 1, 3)]}
    state.apply(segment(4, {}, grow(1, 3), commit("g", {partition(1, 2): 4})))
    assert offsets(state) == {"g": [(1, 1, 3), (1, 2, 4)]}


def test_a_deleted_topic_takes_its_rows_with_it_from_every_group() -> None:
    state = LogState()
    both = {partition(1): 1, partition(1, 1): 2, partition(2): 3}
    state.apply(segment(0, {}, create(1, 2), create(2), commit("g", both)))
    state.apply(segment(1, {}, commit("h", {partition(1): 1}), commit("i", {partition(2): 1})))
    state.apply(segment(2, {}, delete(1), create(3, 2, name="t1")))
    assert offsets(state) == {"g": [(2, 0, 3)], "i": [(2, 0, 1)]}


class Unread(dict[TopicIdPartition, CommittedOffset]):
    """Offsets that must not be read."""

    def _refuse(self, *_: object) -> NoReturn:
        raise AssertionError("the offsets of another group were read")

    __iter__ = __contains__ = __getitem__ = __len__ = pop = _refuse


def test_the_deletion_of_a_topic_reads_only_groups_that_have_its_offsets() -> None:
    state = LogState()
    state.apply(segment(0, {}, create(1, 5), create(2, 5), commit("g", {partition(1): 1})))
    elsewhere = {partition(2, n): n for n in range(5)}
    state.apply(
        segment(1, {}, commit("h", {partition(1, 1): 1, **elsewhere}), commit("i", elsewhere))
    )
    state.apply(segment(2, {}, forget("h", partition(1, 1))))
    state.groups["h"], state.groups["i"] = Unread(state.groups["h"]), Unread(state.groups["i"])
    state.apply(segment(3, {}, delete(1)))
    assert state.groups.keys() == {"h", "i"}
    assert state.offsets.weight == 10


def test_a_few_offsets_are_found_in_a_wide_topic_and_among_many() -> None:
    state = LogState()
    state.apply(segment(0, {}, create(1, 50), create(2, 50), create(3, 2)))
    many = {partition(2, n): n for n in range(20)}
    rows = {partition(1, 49): 1, partition(3, 1): 2, **many}
    state.apply(segment(1, {}, commit("g", rows), commit("h", {partition(3): 3})))
    state.apply(segment(2, {}, delete(3)))
    assert offsets(state)["g"] == [(1, 49, 1), *((2, n, n) for n in range(20))]
    state.apply(segment(3, {}, delete(1)))
    assert offsets(state) == {"g": [(2, n, n) for n in range(20)]}


def test_offsets_are_forgotten_one_by_one_and_all_together() -> None:
    state = LogState()
    rows = {partition(1, n): n for n in range(4)}
    state.apply(segment(0, {}, create(1, 4), commit("g", rows), commit("h", rows)))
    state.apply(segment(1, {}, forget("g", partition(1, 1), partition(1, 3), partition(7))))
    assert offsets(state)["g"] == [(1, 0, 0), (1, 2, 2)]
    assert len(state.groups["h"]) == 4
    state.apply(segment(2, {}, forget("g", partition(1), partition(1, 2)), forget("h")))
    assert state.groups == {}
    state.apply(segment(3, {}, forget("g"), forget("h", partition(1)), commit("g", {})))
    assert state.groups == {}
    state.apply(segment(4, {}, forget("g"), commit("g", {partition(1): 5})))
    assert offsets(state) == {"g": [(1, 0, 5)]}


def test_whoever_needs_no_groups_does_not_even_decode_their_facts() -> None:
    control = (
        FactEntry(FactKind.OFFSETS_COMMITTED, 1, b"damaged"),
        *segment(0, {}, create(1)).facts,
        FactEntry(FactKind.OFFSETS_FORGOTTEN, 9, b"of a newer version"),
    )
    index = segment(0)
    damaged = SegmentIndex(index.segment, index.ticket, 0, 0, (), control)
    with pytest.raises(InvalidDataError, match="OffsetsCommitted does not decode"):
        fold([damaged])
    facts = LogState(keep_groups=False).apply(damaged)
    assert [type(fact) for fact in facts] == [TopicCreated]
    segments = [segment(0, {}, create(1), commit("g", {partition(1): 1}))]
    kept = fold(segments, onto=LogState(keep_groups=False))
    assert kept.groups == {}
    assert len(kept.topics) == 1
