"""What inits and ends put into a segment, and when a request of version 1 is too old."""

import pytest

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.control_batch import Marker, decode_marker
from bucketlog.log_format.model import FactEntry, TopicId, TopicIdPartition
from bucketlog.metadata.fact_model import FactKind
from bucketlog.metadata.facts import (
    ProducerInitialised,
    TransactionEnded,
    TransactionKept,
    decode_fact,
)
from bucketlog.metadata.sequencer.transaction_requests import (
    EndedBy,
    MarkerPlace,
    ProducerPair,
    TransactionChange,
    WantedEnd,
    WantedForgetting,
    WantedInit,
)
from bucketlog.stateless_broker.produce.loop_pauses import LoopPauses
from bucketlog.stateless_broker.produce.transaction_entries import (
    entry_facts,
    entry_markers,
    stand_in,
)

A, B = ProducerPair(2**60, 3), ProducerPair(2**60, 4)
PLACES = tuple(
    MarkerPlace(TopicIdPartition(TopicId(bytes(16)), number), 10 + number, 5) for number in range(3)
)
NOTHING = FactEntry(FactKind.TRANSACTIONAL_IDS_FORGOTTEN, 1, b"{}")


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("by", EndedBy)
def test_an_end_is_a_fact_and_markers(commit: bool, by: EndedBy) -> None:
    wanted = WantedEnd("x", A, commit, 2, by)
    change = TransactionChange(B, A, A, PLACES)
    (entry,) = entry_facts(wanted, change, stand_in(wanted), 77)
    assert decode_fact(entry) == TransactionEnded(
        id="x",
        producer_id=A.producer_id,
        producer_epoch=3,
        committed=commit,
        next_producer_id=B.producer_id,
        next_epoch=4,
        by=by.value,
        version=2,
        at_ms=77,
    )
    markers = list(entry_markers(wanted, change, sequencer_epoch=9, at_ms=77))
    assert [each[:3] for each in markers] == list(PLACES)
    for each in markers:
        header = read_header(each.data)
        assert (header.base_offset, header.producer_id) == (each.base_offset, A.producer_id)
        assert header.producer_epoch == 4
        assert decode_marker(each.data) == Marker(commit, 9)


def test_an_init_that_keeps_a_transaction_says_which() -> None:
    wanted = WantedInit("x", None, 60_000, 2, 8, two_phase=True, keeps=True)
    change = TransactionChange(B, kept=A)
    (entry,) = entry_facts(wanted, change, NOTHING, 5)
    assert decode_fact(entry) == TransactionKept(
        id="x",
        producer_id=B.producer_id,
        producer_epoch=4,
        timeout_ms=60_000,
        version=2,
        two_phase=True,
        at_ms=5,
        txn_producer_id=A.producer_id,
        txn_producer_epoch=3,
    )
    assert list(entry_markers(wanted, change, sequencer_epoch=1, at_ms=5)) == []


def test_the_markers_of_a_kept_transaction_follow_the_pair_that_began_it() -> None:
    """As in Kafka: the producer's later batches have higher epochs."""
    owner, follower = ProducerPair(2**61, 7), ProducerPair(2**61, 8)
    wanted, change = WantedEnd("x", owner, True, 2), TransactionChange(follower, owner, A, PLACES)
    (entry,) = entry_facts(wanted, change, stand_in(wanted), 77)
    fact = decode_fact(entry)
    assert isinstance(fact, TransactionEnded)
    assert (fact.producer_id, fact.producer_epoch) == A
    assert (fact.next_producer_id, fact.next_epoch) == follower
    markers = entry_markers(wanted, change, sequencer_epoch=1, at_ms=1)
    headers = [read_header(each.data) for each in markers]
    assert {(each.producer_id, each.producer_epoch) for each in headers} == {(A.producer_id, 4)}


def test_an_end_of_version_1_keeps_the_epoch_in_its_markers() -> None:
    wanted = WantedEnd("x", A, True, 1)
    change = TransactionChange(A, A, A, PLACES)
    markers = entry_markers(wanted, change, sequencer_epoch=1, at_ms=1)
    assert {read_header(each.data).producer_epoch for each in markers} == {3}


def test_the_marker_of_the_last_epoch_is_within_16_bits() -> None:
    last = ProducerPair(5, 2**15 - 2)
    change = TransactionChange(ProducerPair(6, 0), last, last, PLACES)
    markers = entry_markers(WantedEnd("x", last, True, 2), change, sequencer_epoch=1, at_ms=1)
    assert {read_header(each.data).producer_epoch for each in markers} == {2**15 - 1}


def test_an_init_that_ends_a_transaction_has_two_facts() -> None:
    wanted = WantedInit("x", None, 60_000, 2, 8)
    ended, initialised = map(
        decode_fact, entry_facts(wanted, TransactionChange(B, None, A, PLACES), NOTHING, 5)
    )
    assert isinstance(ended, TransactionEnded)
    assert (ended.by, ended.committed, ended.next_epoch) == ("init", False, 4)
    assert isinstance(initialised, ProducerInitialised)
    assert initialised.last_producer_id == -1
    (alone,) = entry_facts(wanted, TransactionChange(B, A), NOTHING, 5)
    fact = decode_fact(alone)
    assert isinstance(fact, ProducerInitialised)
    assert (fact.last_producer_id, fact.last_producer_epoch) == A
    assert not list(entry_markers(wanted, TransactionChange(B, A), sequencer_epoch=1, at_ms=1))


def test_other_entries_stay_as_they_are() -> None:
    wanted = WantedForgetting("x", 5)
    assert entry_facts(wanted, TransactionChange(A), NOTHING, 1) == [NOTHING]


def test_a_pause_of_the_loop_counts_for_what_was_read_before() -> None:
    now = [5.0]
    pauses = LoopPauses(1_000, lambda: now[0])
    assert not pauses.since(5.0)
    now[0] = 5.9
    assert not pauses.since(5.0)
    now[0] = 7.0
    assert pauses.since(5.0)
    assert pauses.since(7.0)
    assert not pauses.since(7.1)
