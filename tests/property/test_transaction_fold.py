"""Transactions in the fold: the order of unrelated segments does not matter, a checkpoint and the
later segments give the whole state, and a reader's answers match the batches, by Kafka's rule."""

import random
from dataclasses import replace

import pytest

from bucketlog.log_format.batch import CONTROL, TRANSACTIONAL
from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import BatchIndex, SegmentIndex, Ticket, TopicIdPartition
from bucketlog.log_format.transactions import AbortedBatches, AbortedTransaction, OpenTransaction
from bucketlog.log_format.transactions import PartitionTransactions as Found
from bucketlog.metadata.checkpoint import contradiction, extended, restored
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.committed_offset import Offsets
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.transactions import Transactions, outcomes_in
from bucketlog.metadata.view import View
from bucketlog.metadata.view_comparison import ViewComparison
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint
from tests.models.transactional_histories import (
    TransactionalHistory,
    assert_same_transactions,
    ends_of,
    some_order,
)

SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_what_is_unrelated_does_not_matter(seed: int) -> None:
    history = TransactionalHistory(seed)
    expected = fold(history.segments)
    chance = random.Random(seed)
    for _ in range(4):
        state = LogState()
        for index in some_order(history, chance):
            state.apply(index)
        assert_same_transactions(state, expected)


def checkpoint_of(history: TransactionalHistory, ticket: Ticket) -> Checkpoint:
    below = [index for index in history.segments if index.ticket < ticket]
    made = extended(None, below, ticket, history.covered(ticket), created_ms=1)
    read = decode_checkpoint(keys.checkpoint(ticket), encode_checkpoint(made))
    assert read == made
    assert contradiction(read, below) is None
    return read


@pytest.mark.parametrize("seed", SEEDS)
def test_a_checkpoint_and_the_rest_are_everything(seed: int) -> None:
    history = TransactionalHistory(seed)
    expected = fold(history.segments)
    for index in random.Random(seed).sample(history.segments, 3):
        made = checkpoint_of(history, index.ticket)
        rest = [each for each in history.segments if each.ticket >= index.ticket]
        assert_same_transactions(fold(rest, onto=restored(made)), expected)
        view = View.of(rest, made)
        for key, part in expected.partitions.items():
            log = view.log(key)
            assert log is not None
            assert log.transactions == part.transactions
            assert log.last_stable_offset == part.last_stable_offset


def test_the_histories_have_what_is_to_be_shown() -> None:
    histories = [TransactionalHistory(seed) for seed in SEEDS]
    states = [fold(history.segments) for history in histories]
    ends = [fact for history in histories for fact in ends_of(history.segments)]
    assert min(sum(fact.committed for fact in ends), sum(not f.committed for f in ends)) > 100
    parts = [part for state in states for part in state.partitions.values()]
    assert sum(bool(part.transactions.open) for part in parts) > 20
    assert sum(bool(list(part.transactions.aborted())) for part in parts) > 20
    assert sum(bool(state.transactions.pending) for state in states) > 5
    owners = [owner for state in states for owner in state.transactions.ids.values()]
    assert sum(owner.is_kept for owner in owners) > 5
    assert any(owner.is_kept and owner.txn_producer_id != owner.producer_id for owner in owners)
    assert any(some_order(each, random.Random(0)) != each.segments for each in histories)
    versions = {checkpoint_of(each, each.segments[2].ticket).version for each in histories}
    assert versions == {3, 4}


# A reader's answers, compared with the batches ----------------------------------------------------


def rows_of(history: TransactionalHistory) -> dict[TopicIdPartition, list[tuple[BatchIndex, bool]]]:
    """All batches of each partition, and whether a marker says commit."""
    found: dict[TopicIdPartition, list[tuple[BatchIndex, bool]]] = {}
    for index in history.segments:
        outcomes = outcomes_in(index)
        for part in index.partitions:
            for row in part.batches:
                committed = bool(row.attributes & CONTROL) and outcomes[row.producer_id]
                found.setdefault(part.partition, []).append((row, committed))
    return found


def committed_in(rows: list[tuple[BatchIndex, bool]]) -> tuple[set[int], int]:
    """Base offsets of batches that are plain or committed below the first open transaction, and
    that offset: each batch asks for the next marker of its producer, and no index is kept."""
    shown: set[int] = set()
    stable = rows[-1][0].next_offset
    for at, (row, _) in enumerate(rows):
        if row.attributes & CONTROL:
            continue
        later = (
            committed
            for other, committed in rows[at + 1 :]
            if other.attributes & CONTROL and other.producer_id == row.producer_id
        )
        outcome = next(later, None) if row.attributes & TRANSACTIONAL else True
        if outcome is None:
            stable = min(stable, row.base_offset)
        elif outcome:
            shown.add(row.base_offset)
    return {offset for offset in shown if offset < stable}, stable


def by_kafkas_rule(
    rows: list[tuple[BatchIndex, bool]], start: int, aborted: list[AbortedTransaction]
) -> set[int]:
    """What a consumer shows of batches from `start` on: `CompletedFetch.nextFetchedRecord`."""
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    dropping: set[int] = set()
    shown: set[int] = set()
    for row, committed in rows:
        if row.next_offset <= start:
            continue
        while waiting and waiting[-1].first_offset < row.next_offset:
            dropping.add(waiting.pop().producer_id)
        if row.attributes & CONTROL:
            if not committed:
                dropping.discard(row.producer_id)
        elif not (row.attributes & TRANSACTIONAL and row.producer_id in dropping):
            shown.add(row.base_offset)
    return shown


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_reader_is_told_is_what_is_committed(seed: int) -> None:
    """From every offset: the batches up to the last stable offset, and the aborted list of them."""
    history = TransactionalHistory(seed)
    state, rows = fold(history.segments), rows_of(history)
    chance = random.Random(seed)
    for key, part in state.partitions.items():
        mine = rows.get(key)
        if not mine or part.log_start or part.tier.end:
            continue
        shown, stable = committed_in(mine)
        assert part.last_stable_offset == stable
        left_out = AbortedBatches(list(part.transactions.aborted()))
        below = [(row, committed) for row, committed in mine if row.next_offset <= stable]
        kept = [row for row, _ in below if not row.attributes & CONTROL and row not in left_out]
        assert {row.base_offset for row in kept} == shown
        for start in range(0, part.next_offset + 1, max(1, part.next_offset // 9)):
            end = chance.randint(start, stable) if start < stable else stable
            until = [(row, committed) for row, committed in below if row.next_offset <= end]
            aborted = part.transactions.aborted_in(start, end)
            expected = {row.base_offset for row, _ in until if row.next_offset > start} & shown
            assert by_kafkas_rule(until, start, aborted) == expected


# Checkpoints and views that are wrong -------------------------------------------------------------

WRONG = ("an id", "an owner", "a kept pair", "an offset", "an open one", "an aborted one")


def _pending_rows(transactions: Transactions) -> list[Offsets]:
    return [rows for groups in transactions.pending.values() for rows in groups.values()]


def spoil(state: LogState, wrong: str) -> bool:
    transactions = state.transactions
    match wrong:
        case "an id" if transactions.ids.keys() - transactions.pending.keys():
            del transactions.ids[min(transactions.ids.keys() - transactions.pending.keys())]
        case "an owner" if transactions.ids:
            name, owner = transactions.ids.popitem()
            transactions.ids[name] = owner._replace(serial=owner.serial + 1)
        case "a kept pair" if kept := [
            each for each in transactions.ids.items() if each[1].is_kept
        ]:
            name, owner = kept[0]
            epoch = owner.txn_producer_epoch + 1
            transactions.ids[name] = owner._replace(txn_producer_epoch=epoch)
        case "an offset" if any(_pending_rows(transactions)):
            next(rows for rows in _pending_rows(transactions) if rows).popitem()
        case "an open one" | "an aborted one":
            for part in state.partitions.values():
                opened, aborted = part.transactions.open, list(part.transactions.aborted())
                if wrong == "an open one" and opened:
                    producer, (epoch, first) = opened.popitem()
                    opened[producer] = OpenTransaction(epoch + 1, first)
                    return True
                if wrong == "an aborted one" and aborted:
                    part.transactions = Found.of(opened, aborted[:-1])
                    return True
            return False
        case _:
            return False
    return True


@pytest.mark.parametrize("wrong", WRONG)
def test_a_checkpoint_that_is_wrong_is_contradicted_and_differs_from_the_view(wrong: str) -> None:
    found = 0
    for seed in SEEDS:
        history = TransactionalHistory(seed)
        made = checkpoint_of(history, Ticket(9, 0))
        state = restored(made)
        if spoil(state, wrong):
            bad = replace(made, state=encode_state(state), version=state_version(state))
            assert "transactions" in (contradiction(bad, history.segments) or "")
            assert differences(history.segments, bad)
            found += 1
        assert differences(history.segments, made) == []
    assert found > 2


def differences(shown: list[SegmentIndex], made: Checkpoint) -> list[str]:
    comparison = ViewComparison(View.of(shown), made)
    for _ in comparison.steps():
        pass
    return comparison.unexplained([])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_comes_later_explains_what_a_view_shows_more(seed: int) -> None:
    history = TransactionalHistory(seed)
    ticket = random.Random(seed).choice(history.segments).ticket
    comparison = ViewComparison(View.of(history.segments), checkpoint_of(history, ticket))
    for _ in comparison.steps():
        pass
    assert comparison.unexplained(i for i in history.segments if i.ticket >= ticket) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_state_is_refused_or_another_state(seed: int) -> None:
    """Whatever byte is wrong: never another error, and never more rows than bytes."""
    history = TransactionalHistory(seed, segments=30)
    state = fold(history.segments)
    data, version = encode_state(state), state_version(state)
    chance = random.Random(seed)
    for _ in range(60):
        bad = bytearray(data)
        bad[-chance.randint(1, min(len(data), 600))] ^= chance.randint(1, 255)
        try:
            decode_state(bytes(bad), version=version)
        except InvalidDataError:
            continue
    for cut in range(1, 60):
        with pytest.raises(InvalidDataError):
            decode_state(data[:-cut], version=version)
