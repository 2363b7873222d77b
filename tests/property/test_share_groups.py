"""Share groups through facts, folds and checkpoints, against a model of single records."""

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import SHARES_VERSION, CoveredWriter
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import Ticket
from bucketlog.metadata.checkpoint import extended
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.facts import decode_fact, encode_fact
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.share_facts import (
    ShareBatchRow,
    ShareFact,
    ShareOffsetsForgotten,
    ShareOffsetsSet,
    SharePartitionsTaken,
    ShareStartRow,
    ShareStateWritten,
    ShareTakenRow,
    ShareWrittenRow,
)
from bucketlog.metadata.share_groups import ShareBatch, SharePartition, overlaid
from bucketlog.metadata.view import View
from bucketlog.metadata.view_comparison import ViewComparison
from tests.models.indexes import WRITER, create, delete, partition, segment

TOPIC = UUID(int=1)
END = 20
leaders = st.sampled_from(["a", "b"])
epochs = st.integers(1, 4)
starts = st.integers(0, END)
spans = st.tuples(st.integers(0, END), st.integers(0, END)).map(sorted)
changes = st.builds(
    lambda span, state, deliveries: ShareBatchRow(span[0], span[1], state, deliveries),
    spans,
    st.sampled_from([0, 2, 4]),
    st.integers(0, 2),
)
taken = st.builds(
    lambda leader, epoch, start: SharePartitionsTaken(
        group="g", leader=leader, rows=(ShareTakenRow(TOPIC, 0, epoch, start),)
    ),
    leaders,
    epochs,
    starts,
)
written = st.builds(
    lambda leader, epoch, start, some: ShareStateWritten(
        group="g",
        leader=leader,
        rows=(ShareWrittenRow(TOPIC, 0, epoch, start, tuple(some)),),
    ),
    leaders,
    epochs,
    starts,
    st.lists(changes, max_size=4),
)
moved = st.builds(
    lambda start: ShareOffsetsSet(group="g", rows=(ShareStartRow(TOPIC, 0, start),)), starts
)
forgotten = st.sampled_from([None, (TOPIC,), (UUID(int=2),)]).map(
    lambda topics: ShareOffsetsForgotten(group="g", topics=topics)
)
histories = st.lists(taken | taken | written | written | written | moved | forgotten, max_size=12)


@dataclass
class Model:
    """One share-partition, record by record."""

    exists: bool = False
    state_epoch: int = 0
    leader_epoch: int = 0
    leader: str = ""
    start: int = 0
    records: dict[int, tuple[int, int]] = field(default_factory=dict)

    def apply(self, fact: ShareFact) -> None:
        match fact:
            case SharePartitionsTaken(rows=(row,)):
                if row.leader_epoch == self.leader_epoch + 1:
                    self.start = self.start if self.exists else row.start_offset
                    self.exists, self.leader = True, fact.leader
                    self.leader_epoch = row.leader_epoch
            case ShareStateWritten(rows=(row,)):
                if self.exists and (fact.leader, row.leader_epoch) == (
                    self.leader,
                    self.leader_epoch,
                ):
                    self.start = max(self.start, row.start_offset)
                    for first, last, state, deliveries in row.changes:
                        for offset in range(first, last + 1):
                            self.records[offset] = state, deliveries
            case ShareOffsetsSet(rows=(row,)):
                is_new = not self.exists
                self.state_epoch += not is_new
                self.leader_epoch += not is_new
                self.exists, self.leader, self.start = True, "", row.start_offset
                self.records.clear()
            case ShareOffsetsForgotten(topics=topics):
                if topics is None or TOPIC in topics:
                    self.__init__()  # type: ignore[misc]  # as new


def records_of(share: SharePartition) -> dict[int, tuple[int, int]]:
    return {
        offset: (batch.state, batch.deliveries)
        for batch in share.batches
        for offset in range(max(batch.first, share.start_offset), batch.last + 1)
    }


@given(histories)
def test_only_the_present_leader_counts(history: list[ShareFact]) -> None:
    model, state = Model(), LogState()
    state.apply(segment(0, {}, create(1)))
    for at, fact in enumerate(history, 1):
        assert decode_fact(encode_fact(fact)) == fact
        model.apply(fact)
        state.apply(segment(at, {}, fact))
        share = state.share_groups.by_group.get("g", {}).get(partition(1))
        assert (share is not None) is model.exists
        assert state.share_groups.partition_count == int(model.exists)
        if share is None:
            continue
        epochs_now = share.state_epoch, share.leader_epoch, share.leader, share.start_offset
        assert epochs_now == (model.state_epoch, model.leader_epoch, model.leader, model.start)
        shown = {key: row for key, row in records_of(share).items() if row != (0, 0)}
        left = {key: row for key, row in model.records.items() if key >= model.start}
        assert shown == {key: row for key, row in left.items() if row != (0, 0)}
        assert share.completed == sum(row[0] != 0 for row in shown.values())
        for before, after in zip(share.batches, share.batches[1:], strict=False):
            assert before.last < after.first
            assert before.last + 1 < after.first or before[2:] != after[2:]
    again = decode_state(encode_state(state), version=state_version(state))
    assert again.share_groups.by_group == state.share_groups.by_group
    assert again.share_groups.partition_count == state.share_groups.partition_count
    assert (state_version(state) == SHARES_VERSION) is model.exists


def held(leader: str = "a") -> LogState:
    state = LogState()
    row = ShareTakenRow(TOPIC, 0, 1, 3)
    write = ShareWrittenRow(
        TOPIC, 0, 1, 4, (ShareBatchRow(6, 8, 2, 1), ShareBatchRow(11, 12, 4, 5))
    )
    state.apply(segment(0, {}, create(1, 2)))
    state.apply(segment(1, {}, SharePartitionsTaken(group="g", leader=leader, rows=(row,))))
    state.apply(segment(2, {}, ShareStateWritten(group="g", leader=leader, rows=(write,))))
    return state


def test_a_deleted_topic_takes_its_share_partitions_along() -> None:
    state = held()
    state.apply(segment(3, {}, delete(1)))
    assert not state.share_groups.by_group
    assert state.share_groups.partition_count == 0
    late = SharePartitionsTaken(group="g", leader="a", rows=(ShareTakenRow(TOPIC, 0, 1, 0),))
    state.apply(segment(4, {}, late))
    assert not state.share_groups.by_group


def test_readers_of_records_skip_share_groups() -> None:
    whole = encode_state(held())
    assert (
        decode_state(whole, version=SHARES_VERSION, keep_groups=False).share_groups.by_group == {}
    )
    state = LogState(keep_groups=False)
    state.apply(segment(0, {}, create(1)))
    row = ShareTakenRow(TOPIC, 0, 1, 3)
    state.apply(segment(1, {}, SharePartitionsTaken(group="g", leader="a", rows=(row,))))
    assert state.share_groups.by_group == {}


@given(st.data())
def test_a_cut_checkpoint_is_refused(data: st.DataObject) -> None:
    whole = encode_state(held())
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidDataError):
        decode_state(cut, version=SHARES_VERSION)


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        (b"\x06" + bytes(7) + b"\x08\x02", b"\x09" + bytes(7) + b"\x08\x02", "ascend"),
        (b"\x0b" + bytes(7) + b"\x0c\x04", b"\x08" + bytes(7) + b"\x0c\x04", "ascend"),
        (b"\x08\x02\x00\x01", b"\x08\x01\x00\x01", "unknown state"),
    ],
)
def test_damaged_batches_are_refused(good: bytes, bad: bytes, problem: str) -> None:
    whole = encode_state(held())
    assert whole.count(good) == 1
    with pytest.raises(InvalidDataError, match=problem):
        decode_state(whole.replace(good, bad), version=SHARES_VERSION)


def test_a_view_that_differs_from_its_checkpoint_is_named() -> None:
    row = ShareTakenRow(TOPIC, 0, 1, 3)
    segments = [
        segment(0, {}, create(1)),
        segment(1, {}, SharePartitionsTaken(group="g", leader="a", rows=(row,))),
    ]
    writer = CoveredWriter(WRITER, 1, 2, False)
    checkpoint = extended(None, segments, Ticket(1, 2), [writer], created_ms=0)
    same = ViewComparison(View.of(segments), checkpoint)
    assert list(same.steps())
    assert same.unexplained([]) == []
    other = SharePartitionsTaken(group="g", leader="b", rows=(ShareTakenRow(TOPIC, 0, 2, 3),))
    later = segment(2, {}, other)
    differing = ViewComparison(View.of([*segments, later]), checkpoint)
    assert list(differing.steps())
    assert differing.unexplained([]) == ["the share group 'g'"]
    assert differing.unexplained([later]) == []


def test_neighbours_that_are_alike_become_one() -> None:
    rows = overlaid((), [ShareBatch(3, 3, 2, 1)], 0)
    rows = overlaid(rows, [ShareBatch(5, 5, 2, 1)], 0)
    assert overlaid(rows, [ShareBatch(4, 4, 2, 1)], 0) == (ShareBatch(3, 5, 2, 1),)
