"""The fold gives what its simplest form gives, and its entries cost no more where others have left
much behind: whoever can create objects under `log/` decides what the entries are."""

import random
import time
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from bucketlog.log_format.model import SegmentIndex
from bucketlog.metadata.committed_offset import Offsets
from bucketlog.metadata.facts import Fact
from bucketlog.metadata.fold import LogState
from tests.models.folding import SimpleOffsets, SimpleSweeps
from tests.models.histories import GROUPS
from tests.models.indexes import (
    commit,
    create,
    delete,
    forget,
    initialise,
    partition,
    segment,
    send_offsets,
    swap,
    swapped,
    swept,
    tier_row,
)
from tests.models.transactional_histories import TransactionalHistory, some_order

SEEDS = range(12)
HERE = partition(1)


@cache
def history_of(seed: int) -> TransactionalHistory:
    return TransactionalHistory(seed)


def orders_of(seed: int) -> list[Sequence[SegmentIndex]]:
    """A history in ticket order, and as a view may see it."""
    history = history_of(seed)
    return [history.segments, some_order(history, random.Random(seed))]


def pending_of(state: LogState) -> dict[tuple[str, str], Offsets]:
    found = state.transactions.pending
    return {
        (each, group): dict(rows)
        for each, groups in found.items()
        for group, rows in groups.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_are_those_of_the_simplest_form(seed: int) -> None:
    for segments in orders_of(seed):
        state, simple = LogState(), SimpleOffsets()
        for index in segments:
            state.apply(index)
            simple.apply(index)
            assert state.groups == simple.by_group
            assert pending_of(state) == simple.pending
            assert state.offsets.weight == simple.weight
            for group in GROUPS:
                assert set(state.transactions.held(group)) == simple.held(group)


@pytest.mark.parametrize("seed", SEEDS)
def test_dropped_objects_are_those_of_the_simplest_form(seed: int) -> None:
    for segments in orders_of(seed):
        state, simple = LogState(), SimpleSweeps()
        for index in segments:
            state.apply(index)
            simple.apply(index)
            assert state.dropped == simple.dropped
            assert state.swept_below == simple.swept_below


def test_the_histories_have_what_is_to_be_shown() -> None:
    swept_parts, changed, removed = 0, 0, 0
    for seed in SEEDS:
        state = LogState()
        for index in history_of(seed).segments:
            dropped, before = len(state.dropped), pending_of(state)
            state.apply(index)
            after = pending_of(state)
            swept_parts += 0 < len(state.dropped) < dropped
            for key in before.keys() & after.keys():
                changed += any(
                    before[key][p] != after[key][p] for p in before[key].keys() & after[key].keys()
                )
                removed += bool(before[key].keys() - after[key].keys())
    assert min(swept_parts, changed, removed) > 5, (swept_parts, changed, removed)


def test_a_segment_that_is_folded_late_drops_its_objects_in_ticket_order() -> None:
    """As a view may see the deletion of a topic."""
    there, other = partition(1), partition(2)
    state = LogState()
    for index in (
        segment(0, {}, create(1), create(2)),
        segment(
            1,
            {},
            swapped(swap(there, 0, 1, tier_row(0, 1))),
            swapped(swap(other, 0, 1, tier_row(0, 1))),
        ),
        segment(4, {}, delete(1)),
        segment(3, {}, delete(2)),
    ):
        state.apply(index)
    assert [row.ticket.number for row in state.dropped] == [3, 4]
    state.apply(segment(5, {}, swept(1, 4)))
    assert [row.there.partition for row in state.dropped] == [there]


# What it costs ---------------------------------------------------------------------------------

ENTRIES = 200


def cpu_ns(state: LogState, facts: Sequence[Fact]) -> int:
    index = segment(9, {}, *facts)
    began = time.thread_time_ns()
    state.apply(index)
    return time.thread_time_ns() - began


def sweeping_cpu_ns(left: int) -> int:
    state = LogState()
    removed = [(0, "x")] * left
    first, again = (
        swap(HERE, 0, 1, tier_row(0, 1), replaced=names, removed=gone)
        for names, gone in (((), ()), (["0-1"], removed))
    )
    state.apply(segment(0, {}, create(1), swapped(first), swapped(again)))
    assert len(state.dropped) == left + 1
    return cpu_ns(state, [swept(0, 0)] * ENTRIES)


def opened(count: int) -> LogState:
    """Open transactions that have named a group, and no offsets of it."""
    state = LogState()
    names = [f"id {number}" for number in range(count)]
    state.apply(segment(0, {}, create(1), *(initialise(name, at) for at, name in enumerate(names))))
    facts = [send_offsets(name, at, 0, "g", {}) for at, name in enumerate(names)]
    state.apply(segment(1, {}, *facts))
    assert len(state.transactions.pending) == count
    return state


def committing_cpu_ns(count: int) -> int:
    return cpu_ns(opened(count), [commit("g", {HERE: 1})] * ENTRIES)


def forgetting_cpu_ns(count: int) -> int:
    return cpu_ns(opened(count), [forget("g")] * ENTRIES)


def deleting_cpu_ns(count: int) -> int:
    topics = range(2, 2 + ENTRIES)
    facts = [f for n in topics for f in (create(n), commit("g", {partition(n): 1}), delete(n))]
    return cpu_ns(opened(count), facts)


@pytest.mark.parametrize(
    ("measure", "few", "many"),
    [
        (sweeping_cpu_ns, 10, 20_000),
        (committing_cpu_ns, 10, 2_000),
        (forgetting_cpu_ns, 10, 2_000),
        (deleting_cpu_ns, 10, 2_000),
    ],
)
def test_an_entry_costs_the_same_whatever_is_left_or_open(
    measure: Callable[[int], int], few: int, many: int
) -> None:
    first, last = (min(measure(count) for _ in range(3)) for count in (few, many))
    assert last < 5 * first, f"{last / first:.0f} times the CPU time"
