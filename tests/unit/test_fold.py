"""The fold: topics, offsets, producers, and what stops it."""

from itertools import permutations

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import FactEntry, SegmentIndex
from bucketlog.metadata.fold import LogState, PartitionState, fold
from bucketlog.metadata.producers import ProducedBatch, last_sequence
from tests.models.indexes import configure, create, delete, grow, partition, row, segment, topic_id


def test_nothing_folds_to_nothing() -> None:
    state = fold([])
    assert (state.topics, state.names, state.partitions) == ({}, {}, {})


def test_the_order_in_which_segments_come_does_not_matter() -> None:
    segments = [
        segment(3, {partition(1): [row(0, 2)]}, create(1, 2)),
        segment(4, {partition(1): [row(2, 3), row(9)]}, create(2)),
        segment(0, {partition(1): [row(10)], partition(1, 1): [row(0)]}, epoch=2),
        segment(1, {}, delete(2), epoch=2),
    ]
    for order in permutations(segments):
        state = fold(order)
        assert state.partitions == {
            partition(1): PartitionState(11),
            partition(1, 1): PartitionState(1),
        }
        assert state.names == {"t1": topic_id(1)}


def test_topics_come_grow_go_and_their_names_come_again() -> None:
    state = LogState()
    state.apply(segment(0, {}, create(1, 1)))
    state.apply(segment(1, {partition(1): [row(0, 5)]}, grow(1, 3)))
    assert state.topics[topic_id(1)].partitions == 3
    assert [state.partitions[partition(1, n)].next_offset for n in range(3)] == [5, 0, 0]
    facts = state.apply(segment(2, {}, delete(1), create(2, 1, name="t1")))
    assert facts == [delete(1), create(2, 1, name="t1")]
    assert state.names == {"t1": topic_id(2)}
    assert state.partitions == {partition(2): PartitionState()}


WRONG: dict[str, tuple[SegmentIndex, str]] = {
    "created twice": (segment(1, {}, create(1)), "creates topic 't1', which exists"),
    "name in use": (segment(1, {}, create(2, name="t1")), "creates topic 't1', which exists"),
    "id in use": (segment(1, {}, create(1, name="u")), "creates topic 'u', which exists"),
    "deleted, not there": (segment(1, {}, delete(2)), "deletes topic 't2', which is not"),
    "grown, not there": (segment(1, {}, grow(2, 5)), "adds partitions to 't2' wrongly"),
    "not grown": (segment(1, {}, grow(1, 2)), "adds partitions to 't1' wrongly"),
    "shrunk": (segment(1, {}, grow(1, 1)), "adds partitions to 't1' wrongly"),
    "offset again": (segment(1, {partition(1): [row(3)]}), "gives offset 3"),
    "overlap in one segment": (segment(1, {partition(1): [row(4, 3), row(6)]}), "gives offset 6"),
    "no such partition": (segment(1, {partition(1, 2): [row(0)]}), "which does not exist"),
    "no such topic": (segment(1, {partition(2): [row(0)]}), "which does not exist"),
    "deleted before": (segment(1, {partition(1): [row(4)]}, delete(1)), "which does not exist"),
    "one ticket twice": (segment(0, {partition(1): [row(4)]}), "have one ticket"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_protocol_never_writes_stops_the_fold(case: str) -> None:
    wrong, message = WRONG[case]
    with pytest.raises(InvalidDataError, match=message):
        fold([segment(0, {partition(1): [row(0, 4)]}, create(1, 2)), wrong])


def test_configs_are_changed_name_by_name_or_all() -> None:
    facts = [
        create(1),
        configure(1, {"a": "1", "b": "2"}),
        configure(1, {"b": None, "c": "3", "never.set": None}),
        grow(1, 4),
    ]
    state = fold([segment(at, {}, fact) for at, fact in enumerate(facts)])
    assert state.topics[topic_id(1)].configs == {"a": "1", "c": "3"}
    assert state.topics[topic_id(1)].partitions == 4
    state.apply(segment(9, {}, configure(1, {"d": "4"}, replaces_all=True)))
    assert state.topics[topic_id(1)].configs == {"d": "4"}
    with pytest.raises(InvalidDataError, match="configures topic 't2', which is not"):
        state.apply(segment(10, {}, configure(2, {"d": "4"})))


def test_an_unknown_kind_stops_the_fold_unless_it_may_be_skipped() -> None:
    def with_kind(kind: int) -> SegmentIndex:
        index = segment(0)
        return SegmentIndex(index.segment, index.ticket, 0, 0, (), (FactEntry(kind, 1, b"{}"),))

    assert LogState().apply(with_kind(0x8099)) == []
    with pytest.raises(InvalidDataError, match=r"kind 153 version 1.*upgrade"):
        LogState().apply(with_kind(0x99))


def test_stamps_without_batches_say_nothing_of_offsets() -> None:
    state = fold([segment(0, {partition(9): []})])
    assert state.partitions == {}


def test_a_void_tail_does_not_count_and_a_gap_does() -> None:
    state = fold([segment(0, {partition(1): [row(0), row(7, 2)]}, create(1))])
    assert state.partitions[partition(1)].next_offset == 9


def test_a_compacted_batch_ends_at_its_last_offset() -> None:
    batch = row(5, 2)._replace(last_offset_delta=9)
    state = fold([segment(0, {partition(1): [batch]}, create(1))])
    assert state.partitions[partition(1)].next_offset == 15


def test_the_last_five_batches_of_a_producer_are_kept() -> None:
    batches = [row(n, producer=(7, n // 4, n)) for n in range(7)]
    others = [row(20, producer=(8, 0, 0)), row(21)]
    segments = [segment(0, {partition(1): batches[:3]}, create(1))]
    segments.append(segment(1, {partition(1): [*batches[3:], *others]}))
    producers = fold(segments).partitions[partition(1)].producers
    assert producers == {
        7: [ProducedBatch(n // 4, n, n, n, 0) for n in range(2, 7)],
        8: [ProducedBatch(0, 0, 0, 20, 0)],
    }
    assert (
        fold(segments, onto=LogState(keep_producers=False)).partitions[partition(1)].producers == {}
    )


@pytest.mark.parametrize(
    ("first", "count", "last"),
    [(0, 1, 0), (5, 3, 7), (2**31 - 1, 1, 2**31 - 1), (2**31 - 1, 2, 0), (2**31 - 2, 5, 2)],
)
def test_sequences_wrap(first: int, count: int, last: int) -> None:
    assert last_sequence(first, count) == last
