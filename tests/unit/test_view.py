"""The view: which bytes answer a fetch, watermarks, look-ups by time, deleted topics."""

import weakref

import pytest

from bucketlog.log_format.model import SegmentId
from bucketlog.metadata.partition_log import PartitionLog, StoredRange
from bucketlog.metadata.view import View, ViewChange
from tests.models.indexes import (
    WRITER,
    begin,
    commit,
    create,
    delete,
    forget,
    grow,
    partition,
    row,
    segment,
    swap,
    swapped,
    tier_row,
    topic_id,
)

FIRST, SECOND = SegmentId(WRITER, 0), SegmentId(WRITER, 1)


def filled() -> PartitionLog:
    """Offsets 0-2 and 3-4 side by side in one segment, 5 further on, 9-10 in the next segment."""
    log = PartitionLog(partition(1))
    log.append(FIRST, row(0, 3, at=(16, 100), timestamp=50))
    log.append(FIRST, row(3, 2, at=(116, 10), timestamp=40))
    log.append(FIRST, row(5, 1, at=(200, 30), timestamp=70))
    log.append(SECOND, row(9, 2, at=(16, 500), timestamp=70))
    return log


def test_the_high_watermark_is_the_end_of_the_last_batch() -> None:
    assert PartitionLog(partition(1)).high_watermark == 0
    assert filled().high_watermark == 11


def test_a_log_that_grows_leaves_empty_logs_empty() -> None:
    empty, other = PartitionLog(partition(1)), PartitionLog(partition(2))
    filled()
    assert not empty.batches.base_offsets
    assert not empty.batches.segments
    other.become(empty)
    other.append(FIRST, row(0, at=(16, 100)))
    empty.begin_at(5)
    assert empty.ranges(0, 1000, at_least_one=True) == []
    assert PartitionLog(partition(3)).available_bytes(0, 1000) == 0


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, [(FIRST, 16, 110), (FIRST, 200, 30), (SECOND, 16, 500)]),
        (2, [(FIRST, 16, 110), (FIRST, 200, 30), (SECOND, 16, 500)]),
        (3, [(FIRST, 116, 10), (FIRST, 200, 30), (SECOND, 16, 500)]),
        (5, [(FIRST, 200, 30), (SECOND, 16, 500)]),
        (6, [(SECOND, 16, 500)]),  # in the gap: the next batch above it
        (10, [(SECOND, 16, 500)]),
        (11, []),
        (99, []),
    ],
)
def test_ranges_start_at_the_batch_that_holds_the_offset(
    offset: int, expected: list[tuple[SegmentId, int, int]]
) -> None:
    ranges = filled().ranges(offset, 10_000, at_least_one=False)
    assert ranges == [StoredRange(*each) for each in expected]


@pytest.mark.parametrize(
    ("max_bytes", "at_least_one", "total"),
    [
        (0, False, 0),
        (99, False, 0),
        (99, True, 100),
        (100, False, 100),
        (109, True, 100),
        (110, False, 110),
        (139, True, 110),
        (640, False, 640),
    ],
)
def test_whole_batches_up_to_the_bound(max_bytes: int, at_least_one: bool, total: int) -> None:
    ranges = filled().ranges(0, max_bytes, at_least_one=at_least_one)
    assert sum(each.length for each in ranges) == total


def test_neighbours_in_different_segments_are_not_one_range() -> None:
    log = PartitionLog(partition(1))
    log.append(FIRST, row(0, at=(16, 100)))
    log.append(SECOND, row(1, at=(116, 100)))
    assert len(log.ranges(0, 1000, at_least_one=True)) == 2


@pytest.mark.parametrize(
    ("offset", "limit", "least"), [(0, 10_000, 640), (0, 1, 1), (6, 10_000, 500), (11, 1, 0)]
)
def test_available_bytes(offset: int, limit: int, least: int) -> None:
    available = filled().available_bytes(offset, limit)
    assert available >= least
    assert limit < 10_000 or available == least


@pytest.mark.parametrize(
    ("timestamp", "position"), [(-5, 16), (50, 16), (51, 200), (70, 200), (71, None)]
)
def test_the_first_batch_since_a_time(timestamp: int, position: int | None) -> None:
    """The second batch's lower timestamp hides nothing."""
    found = filled().first_since(timestamp)
    assert (found.position if found else None) == position


def test_the_highest_timestamp_and_its_first_batch() -> None:
    assert PartitionLog(partition(1)).with_max_timestamp() is None
    assert filled().with_max_timestamp() == (70, StoredRange(FIRST, 200, 30))


def test_the_log_of_an_empty_partition_lives_as_long_as_somebody_holds_it() -> None:
    view = View()
    view.apply(segment(0, {}, create(1, 2)))
    held = view.log(partition(1, 1))
    assert held is not None
    dropped = weakref.ref(view.log(partition(1, 0)))
    assert dropped() is None
    view.apply(segment(1, {partition(1, 1): [row(0, 4)]}))
    assert view.log(partition(1, 1)) is held
    assert held.high_watermark == 4


def test_whoever_holds_the_log_of_an_empty_partition_sees_a_later_view() -> None:
    view, segments = View(), [segment(0, {}, create(1, 2))]
    view.apply(segments[0])
    held = view.log(partition(1, 1)), view.log(partition(1, 0))
    segments.append(segment(1, {partition(1, 1): [row(0, 4)]}))
    view.become(View.of(segments))
    assert (view.log(partition(1, 1)), view.log(partition(1, 0))) == held
    assert [log.high_watermark for log in held if log is not None] == [4, 0]
    view.apply(segment(2, {partition(1, 0): [row(0, 2)]}))
    assert [log.high_watermark for log in held if log is not None] == [4, 2]


def test_applying_tells_what_changed() -> None:
    view = View()
    assert view.apply(segment(0, {partition(1, 1): [row(0, 4)]}, create(1, 2))) == ViewChange(
        [create(1, 2)], [partition(1, 1)]
    )
    assert view.apply(segment(1, {partition(1): []}, grow(1, 3))) == ViewChange([grow(1, 3)], [])
    log = view.log(partition(1, 1))
    assert log is not None
    assert log.high_watermark == 4


def test_topics_by_name_and_id() -> None:
    view = View()
    view.apply(segment(0, {}, create(1, 2), create(2)))
    first = view.topic("t1")
    assert first is not None
    assert first.partitions == 2
    assert view.topic_by_id(topic_id(1)) == first
    assert [topic.name for topic in view.topics()] == ["t1", "t2"]
    assert (view.topic("t3"), view.topic_by_id(topic_id(3))) == (None, None)


def test_a_partition_without_batches_has_a_log_and_one_that_is_not_has_none() -> None:
    view = View()
    view.apply(segment(0, {}, create(1, 2)))
    empty = view.log(partition(1, 1))
    assert empty is not None
    assert empty is view.log(partition(1, 1))
    assert empty.high_watermark == view.log_start(partition(1, 1)) == 0
    for missing in (partition(1, 2), partition(1, -1), partition(2)):
        assert view.log(missing) is None


def test_a_deleted_topic_is_gone_and_its_name_is_empty_when_it_comes_again() -> None:
    view = View()
    view.apply(
        segment(0, {partition(1): [row(0, 4)], partition(2): [row(0)]}, create(1), create(2))
    )
    view.apply(segment(1, {}, delete(1), create(3, name="t1")))
    assert view.log(partition(1)) is None
    for there, high_watermark in ((partition(2), 1), (partition(3), 0)):
        log = view.log(there)
        assert log is not None
        assert log.high_watermark == high_watermark


def test_committed_offsets_by_group() -> None:
    view = View()
    assert view.groups() == []
    assert view.offsets("g") == {}
    first, second = commit("g", {partition(1): 5}), commit("h", {partition(1): 7})
    assert view.apply(segment(0, {}, create(1), first, second)).facts[1:] == [first, second]
    assert view.groups() == ["g", "h"]
    assert view.offsets("g")[partition(1)].offset == 5
    view.apply(segment(1, {}, forget("g")))
    assert view.groups() == ["h"]
    assert view.offsets("g") == {}


def test_a_view_that_begins_again_has_the_offsets_of_its_segments() -> None:
    view = View()
    view.apply(segment(0, {}, create(1), commit("old", {partition(1): 1})))
    view.become(View.of([segment(0, {}, create(1), commit("new", {partition(1): 2}))]))
    assert view.groups() == ["new"]


def test_one_segment_moves_what_it_deletes() -> None:
    view = View()
    view.apply(
        segment(0, {partition(1): [row(0, 4)], partition(2): [row(0, 4)]}, *map(create, (1, 2)))
    )
    swaps = (swap(each, 0, 4, tier_row(0, 4)) for each in (partition(1), partition(2)))
    view.apply(segment(1, {}, swapped(*swaps), delete(1)))
    view.apply(segment(2, {}, begin({partition(2): 2}), delete(2)))
    assert (dict(view.logs()), list(view.waiting)) == ({}, [])
