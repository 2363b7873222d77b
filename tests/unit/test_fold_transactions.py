"""Transactions in the fold: what is open, aborted and pending, and what stops the fold."""

import time

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import SegmentIndex
from bucketlog.log_format.transactions import (
    AbortedTransaction,
    OpenTransaction,
    PartitionTransactions,
)
from bucketlog.metadata.fold import LogState, PartitionState, fold
from bucketlog.metadata.transactions import TransactionalId
from bucketlog.metadata.view import View
from tests.models.indexes import (
    begin,
    commit,
    create,
    delete,
    end,
    forget,
    forget_ids,
    in_transaction,
    initialise,
    keep,
    marker,
    partition,
    row,
    segment,
    send_offsets,
    swap,
    swapped,
    tier_row,
)

HERE, THERE = partition(1), partition(1, 1)
START = segment(0, {}, create(1, 2), initialise("x", 7), initialise("y", 8))


def folded(*segments: SegmentIndex) -> LogState:
    return fold([START, *segments])


def here(state: LogState) -> PartitionState:
    return state.partitions[HERE]


def aborted(state: LogState) -> list[AbortedTransaction]:
    return list(here(state).transactions.aborted())


def test_open_transactions_hold_the_last_stable_offset() -> None:
    state = folded(segment(1, {HERE: [row(0), in_transaction(1, 7), row(2)]}))
    assert here(state).transactions.open == {7: OpenTransaction(0, 1)}
    assert (here(state).last_stable_offset, here(state).next_offset) == (1, 3)
    assert state.transactions.parts == {7: {HERE}}
    state.apply(segment(2, {HERE: [in_transaction(3, 8), in_transaction(4, 7, sequence=1)]}))
    assert here(state).last_stable_offset == 1
    state.apply(segment(3, {HERE: [marker(5, 7)]}, end("x", 7, commit=True)))
    assert (here(state).last_stable_offset, aborted(state)) == (3, [])
    state.apply(segment(4, {HERE: [marker(6, 8), row(7)]}, end("y", 8, commit=False)))
    assert (here(state).last_stable_offset, aborted(state)) == (8, [(8, 3, 6)])
    assert state.transactions.parts == {}


def test_a_marker_is_no_batch_of_its_producer() -> None:
    """Its sequence -1 would make the producer's next batch out of order."""
    state = folded(
        segment(1, {HERE: [in_transaction(0, 7)]}),
        segment(2, {HERE: [marker(1, 7)]}, end("x", 7, commit=True)),
    )
    assert [batch.base_offset for batch in here(state).producers[7]] == [0]


def test_a_marker_without_a_transaction_ends_nothing() -> None:
    state = folded(segment(1, {HERE: [row(0), marker(1, 7)]}, end("x", 7, commit=False)))
    assert (here(state).last_stable_offset, aborted(state)) == (2, [])


def test_each_marker_has_the_outcome_of_its_own_producer() -> None:
    state = folded(
        segment(1, {HERE: [in_transaction(0, 7), in_transaction(1, 8)]}),
        segment(
            2,
            {HERE: [marker(2, 7), marker(3, 8)]},
            end("y", 8, commit=False),
            end("x", 7, commit=True),
        ),
    )
    assert aborted(state) == [(8, 1, 3)]


def test_an_owner_comes_from_the_last_entry_of_the_id() -> None:
    state = folded(segment(1, {}, end("x", 7, commit=True, at=5)))
    owner = TransactionalId(7, 1, 7, 0, "committed", "client", 1, 2, 60_000, False, 5)
    assert state.transactions.ids["x"] == owner
    state.apply(segment(2, {}, end("x", 7, 1, commit=False), initialise("x", 9, version=1, at=6)))
    owner = TransactionalId(9, 0, -1, -1, "none", "", 2, 1, 60_000, False, 6)
    assert state.transactions.ids["x"] == owner
    state.apply(segment(3, {}, forget_ids("x", "y")))
    assert state.transactions.ids == {}


def test_a_kept_transaction_has_the_pair_that_began_it() -> None:
    state = folded(
        segment(1, {HERE: [in_transaction(0, 7)]}, send_offsets("x", 7, 0, "g", {HERE: 5})),
        segment(2, {}, keep("x", (7, 1), (7, 0), at=3)),
        segment(3, {}, keep("x", (9, 0), (7, 0), at=4)),
    )
    owner = TransactionalId(9, 0, -1, -1, "none", "", 0, 2, 60_000, True, 4, 7, 0)
    assert state.transactions.ids["x"] == owner
    assert owner.transaction == (7, 0)
    assert state.transactions.open_count() == 1
    state.apply(segment(4, {HERE: [marker(1, 7)]}, end("x", 7, commit=True, follower=(9, 1), at=5)))
    assert state.transactions.ids["x"] == TransactionalId(
        9, 1, 9, 0, "committed", "client", 1, 2, 60_000, True, 5
    )
    assert state.groups["g"][HERE].offset == 5
    assert here(state).last_stable_offset == 2


def test_offsets_that_become_visible_after_the_init_that_keeps_them_count() -> None:
    """An init enters no group, so a view may show it before offsets with an earlier ticket."""
    state = folded(
        segment(1, {}, keep("x", (7, 1), (7, 0))),
        segment(2, {}, send_offsets("x", 7, 0, "g", {HERE: 5})),
        segment(3, {}, end("x", 7, commit=True, follower=(7, 2))),
    )
    assert state.groups["g"][HERE].offset == 5


def test_an_init_that_does_not_keep_the_transaction_ends_it() -> None:
    state = folded(
        segment(1, {}, keep("x", (7, 1), (7, 0))),
        segment(2, {}, end("x", 7, commit=False, follower=(7, 2)), initialise("x", 7, 2, at=6)),
    )
    owner = TransactionalId(7, 2, -1, -1, "none", "", 1, 2, 60_000, False, 6)
    assert state.transactions.ids["x"] == owner


def test_offsets_are_pending_until_the_end() -> None:
    sent = send_offsets("x", 7, 0, "g", {HERE: 5, partition(9): 1}, at=3, metadata="m" * 200)
    state = folded(segment(1, {}, sent, send_offsets("y", 8, 0, "g", {HERE: 6, THERE: 1})))
    assert state.groups == {}
    assert state.offsets.weight == 4
    assert state.transactions.is_pending("g")
    assert not state.transactions.is_pending("h")
    state.apply(segment(2, {}, end("y", 8, commit=False)))
    assert (state.groups, state.offsets.weight) == ({}, 2)
    assert state.transactions.is_pending("g")
    state.apply(segment(3, {}, end("x", 7, commit=True)))
    assert {key: found.offset for key, found in state.groups["g"].items()} == {HERE: 5}
    assert state.groups["g"][HERE].committed_ms == 3
    assert state.offsets.weight == 2
    assert not state.transactions.is_pending("g")


def test_a_later_commit_outside_of_the_transaction_stays() -> None:
    """As in Kafka, which compares where the two stand in the log."""
    state = folded(
        segment(1, {}, send_offsets("x", 7, 0, "g", {HERE: 5, THERE: 5})),
        segment(2, {}, commit("g", {HERE: 9})),
        segment(3, {}, send_offsets("x", 7, 0, "h", {HERE: 5}), commit("h", {HERE: 8})),
        segment(4, {}, send_offsets("x", 7, 0, "h", {HERE: 6})),
        segment(5, {}, end("x", 7, commit=True)),
    )
    found = {
        group: {key: row.offset for key, row in rows.items()}
        for group, rows in state.groups.items()
    }
    assert found == {"g": {HERE: 9, THERE: 5}, "h": {HERE: 6}}
    assert state.offsets.weight == 3


def test_offsets_that_are_deleted_are_not_committed_later() -> None:
    """As in Kafka, where a tombstone removes pending offsets, too."""
    state = folded(
        segment(1, {}, send_offsets("x", 7, 0, "g", {HERE: 5, THERE: 5})),
        segment(2, {}, send_offsets("x", 7, 0, "h", {HERE: 5}), forget("g", HERE), forget("h")),
        segment(3, {}, end("x", 7, commit=True)),
    )
    assert {group: list(rows) for group, rows in state.groups.items()} == {"g": [THERE]}
    assert state.offsets.weight == 1


def test_a_deleted_topic_takes_its_transactions_and_pending_offsets() -> None:
    state = folded(
        segment(1, {HERE: [in_transaction(0, 7)]}, send_offsets("x", 7, 0, "g", {HERE: 5})),
        segment(2, {}, delete(1)),
    )
    assert state.transactions.parts == {}
    assert state.transactions.pending == {"x": {"g": {}}}
    assert state.offsets.weight == 0
    state.apply(segment(3, {}, end("x", 7, commit=True)))
    assert state.groups == {}


def test_a_log_start_beyond_an_open_transaction_takes_its_place() -> None:
    """UnifiedLog.maybeIncrementFirstUnstableOffset."""
    rows = [in_transaction(0, 7), *(row(at) for at in range(1, 9))]
    state = folded(segment(1, {HERE: rows}), segment(2, {}, begin({HERE: 5})))
    assert here(state).last_stable_offset == 5
    state.apply(segment(3, {HERE: [marker(9, 7)]}, end("x", 7, commit=False)))
    assert (here(state).last_stable_offset, aborted(state)) == (10, [(7, 0, 9)])


def test_aborted_transactions_below_tier_or_log_start_are_forgotten() -> None:
    state = folded(
        segment(1, {HERE: [in_transaction(0, 7), in_transaction(1, 8), row(2)]}),
        segment(2, {HERE: [marker(3, 7)]}, end("x", 7, commit=False)),
        segment(3, {HERE: [marker(4, 8), row(5)]}, end("y", 8, commit=False)),
    )
    assert aborted(state) == [(7, 0, 3), (8, 1, 4)]
    state.apply(segment(4, {}, swapped(swap(HERE, 0, 3, tier_row(0, 3)))))
    assert aborted(state) == [(7, 0, 3), (8, 1, 4)]
    state.apply(segment(5, {}, swapped(swap(HERE, 3, 4, tier_row(3, 4)))))
    assert aborted(state) == [(8, 1, 4)]
    state.apply(segment(6, {}, begin({HERE: 5})))
    assert aborted(state) == []
    assert not here(state).transactions


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, 20, [(7, 0, 9), (8, 1, 4), (8, 5, 8)]),
        (4, 20, [(7, 0, 9), (8, 1, 4), (8, 5, 8)]),
        (5, 20, [(7, 0, 9), (8, 5, 8)]),
        (5, 5, [(7, 0, 9)]),
        (9, 20, [(7, 0, 9)]),
        (10, 20, []),
        (0, 1, [(7, 0, 9)]),
        (0, 0, []),
    ],
)
def test_a_reader_gets_the_aborted_transactions_that_it_meets(
    start: int, stop: int, expected: list[AbortedTransaction]
) -> None:
    state = folded(
        segment(1, {HERE: [in_transaction(0, 7), in_transaction(1, 8), row(2, 2)]}),
        segment(2, {HERE: [marker(4, 8), in_transaction(5, 8, 1)]}, end("y", 8, commit=False)),
        segment(3, {HERE: [row(6, 2), marker(8, 8)]}, end("y", 8, 1, commit=False)),
        segment(4, {HERE: [marker(9, 7), row(10)]}, end("x", 7, commit=False)),
    )
    assert here(state).transactions.aborted_in(start, stop) == expected
    copied = here(state).transactions.copy()
    assert copied == here(state).transactions
    assert copied.aborted_in(start, stop) == expected


WRONG: dict[str, tuple[SegmentIndex, str]] = {
    "a marker without its fact": (segment(2, {HERE: [marker(1, 7)]}), "producer 7 at offset 1"),
    "the fact of another producer": (
        segment(2, {HERE: [marker(1, 7)]}, end("y", 8, commit=True)),
        "producer 7 at offset 1",
    ),
    "an end without a marker": (
        segment(2, {THERE: [marker(0, 7)]}, end("x", 7, commit=True)),
        "'x': the marker in partition 0 of topic 0+1 is missing",
    ),
    "two ends": (
        segment(2, {HERE: [marker(1, 7)]}, end("x", 7, commit=True), end("x", 7, 1, commit=True)),
        "'x': it ends twice",
    ),
    "the end of an unknown id": (segment(2, {}, end("z", 7, commit=True)), "it does not exist"),
    "the end of an earlier epoch": (
        segment(2, {}, initialise("x", 7, 1), end("x", 7, commit=True)),
        "producer 7 with epoch 0 does not own it",
    ),
    "the end of another producer": (segment(2, {}, end("x", 8, commit=True)), "does not own it"),
    "offsets of an unknown id": (segment(2, {}, send_offsets("z", 7, 0, "g", {})), "not exist"),
    "offsets of a later epoch": (
        segment(2, {}, send_offsets("x", 7, 1, "g", {})),
        "producer 7 with epoch 1 does not own it",
    ),
    "an unknown id is forgotten": (segment(2, {}, forget_ids("x", "z")), "'z': it does not exist"),
    "the end of a kept transaction by its owner": (
        segment(2, {}, keep("x", (7, 1), (7, 0)), end("x", 7, 1, commit=True)),
        "producer 7 with epoch 1 does not own it",
    ),
    "another transaction is kept": (
        segment(2, {}, keep("x", (7, 2), (7, 1))),
        "keeps a transaction of transactional id 'x': producer 7 with epoch 1 does not own it",
    ),
    "a transaction of an unknown id is kept": (
        segment(2, {}, keep("z", (7, 1), (7, 0))),
        "'z': it does not exist",
    ),
    "an id is forgotten with its kept transaction": (
        segment(2, {}, keep("y", (8, 1), (8, 0)), forget_ids("y")),
        "'y': its transaction has no end",
    ),
    "an id is forgotten with its offsets": (
        segment(2, {}, send_offsets("x", 7, 0, "g", {}), forget_ids("x")),
        "'x': its transaction has no end",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_protocol_never_writes_stops_the_fold(case: str) -> None:
    wrong, message = WRONG[case]
    with pytest.raises(InvalidDataError, match=message):
        folded(segment(1, {HERE: [in_transaction(0, 7)]}), wrong)


def test_the_last_stable_offset_of_a_view() -> None:
    view = View.of([START, segment(1, {HERE: [row(0), in_transaction(1, 7), row(2)]})])
    log = view.log(HERE)
    assert log is not None
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    assert log.available_bytes(0, 1000, end=log.last_stable_offset) == 100
    assert log.ranges(1, 1000, at_least_one=True, end=log.last_stable_offset) == []
    change = view.apply(segment(2, {HERE: [marker(3, 7)]}, end("x", 7, commit=True)))
    assert change.partitions == [HERE]
    assert log.last_stable_offset == 4


def test_a_view_never_takes_back_what_is_stable() -> None:
    first = segment(1, {HERE: [in_transaction(0, 7)]})
    ended = segment(2, {HERE: [marker(1, 7)]}, end("x", 7, commit=True))
    view = View.of([START, first, ended])
    lacking = View.of([START, first, segment(2, {HERE: [row(1)]})])
    with pytest.raises(InvalidDataError, match="read_committed up to offset 2, and now ends at 0"):
        view.become(lacking)


def test_pending_offsets_of_a_view() -> None:
    view = View.of([START, segment(1, {}, send_offsets("x", 7, 0, "g", {HERE: 5}))])
    assert (view.pending_offsets("g"), view.pending_offsets("h")) == ({HERE}, set())
    view.apply(segment(2, {}, end("x", 7, commit=True)))
    assert view.pending_offsets("g") == set()
    assert view.offsets("g")[HERE].offset == 5


def _ending_cpu_ns(count: int) -> int:
    """The CPU time that `count` markers take when they end open transactions in order."""
    transactions = PartitionTransactions()
    begins = [in_transaction(number, number) for number in range(count)]
    ends = [marker(count + number, number) for number in range(count)]
    for each in begins:
        transactions.on_batch(each)
    began = time.thread_time_ns()
    for each in ends:
        transactions.on_marker(each, committed=False)
        transactions.stable_end(2 * count, 0)
    return time.thread_time_ns() - began


def test_the_cost_of_a_marker_does_not_grow_with_the_open_transactions() -> None:
    few, many = (min(_ending_cpu_ns(count) for _ in range(3)) for count in (2_000, 32_000))
    assert many < 3 * 16 * few, f"{many / few:.0f} times the CPU time for 16 times the markers"
