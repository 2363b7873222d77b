"""What a broker remembers of segments, and for how long."""

from bucketlog.log_format.model import SegmentId, Ticket, WriterId
from bucketlog.stateless_broker.epochs.known_segments import KnownSegments
from tests.models.indexes import WRITER, commit, partition, row, segment

PARTITION = partition(1)


def seqs(known: KnownSegments) -> list[int]:
    return [seq for seq in range(10) if known.index(SegmentId(WRITER, seq)) is not None]


def test_what_was_learnt_is_known_until_a_checkpoint_covers_it() -> None:
    known = KnownSegments(batches_max=100)
    indexes = [segment(number, {PARTITION: [row(number)]}) for number in range(4)]
    for index in indexes:
        known.learn(index)
    assert known.index(SegmentId(WRITER, 2)) is indexes[2]
    known.forget_below(Ticket(1, 2))
    assert seqs(known) == [2, 3]
    known.forget_below(Ticket(2, 0))
    assert seqs(known) == []


def test_the_oldest_go_first() -> None:
    known = KnownSegments(batches_max=6)
    for number in range(4):
        known.learn(segment(number, {PARTITION: [row(number)]}))
        known.learn(segment(number, {PARTITION: [row(number)]}))
    assert seqs(known) == [1, 2, 3]
    known.learn(segment(4, {PARTITION: [row(4), row(5), row(6)]}))
    assert seqs(known) == [3, 4]
    known.learn(segment(5, {}, commit("g", {PARTITION: 1})))
    assert seqs(known) == [4, 5]


def test_one_that_is_too_large_is_not_kept() -> None:
    known = KnownSegments(batches_max=0)
    known.learn(segment(0))
    assert seqs(known) == []


def test_what_follows_ends_at_the_first_that_is_not_known() -> None:
    known = KnownSegments(batches_max=100)
    assert [known.is_empty] == [True]
    for number in (1, 2, 3, 5):
        known.learn(segment(number))
    assert [known.is_empty] == [False]
    assert [index.segment.seq for index in known.following(WRITER, 2)] == [2, 3]
    assert known.following(WRITER, 4) == []
    assert known.following(WriterId("b" * 32), 1) == []


def test_seals_are_known_until_their_chains_are_covered() -> None:
    known = KnownSegments(batches_max=0)
    known.note_seal(WRITER, 7)
    assert known.sealed_at(WRITER) == 7
    assert known.sealed_at(WriterId("b" * 32)) is None
    known.forget_seals_but([WriterId("b" * 32), WRITER])
    assert known.sealed_at(WRITER) == 7
    known.forget_seals_but([])
    assert known.sealed_at(WRITER) is None
