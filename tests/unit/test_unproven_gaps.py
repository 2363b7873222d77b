"""Gaps of a view that no visible stamp reaches: batches create them, and stamps remove them."""

from uuid import UUID

import pytest

from bucketlog.metadata.facts import LogStartPayload, LogStartsMoved
from bucketlog.metadata.view import View
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.written_log import ReservedSegment, WrittenLog, some_records


class Shown:
    """A topic `t` with two partitions, and the view of a broker."""

    def __init__(self) -> None:
        self.log = WrittenLog(MemoryBucket())
        self.other = self.log.register()
        self.view = View()
        self.log.create_topic("t", 2)
        self.flush()

    def flush(self) -> None:
        """Write and show what was appended."""
        self.show(self.log.reserve())

    def reserve(self) -> ReservedSegment:
        """Three records of partition 0, by a broker that may die."""
        self.log.append("t", 0, some_records(3))
        return self.log.reserve(self.other)

    def show(self, reserved: ReservedSegment) -> None:
        self.log.land(reserved)
        self.view.apply(reserved.index)

    def leave_a_gap(self) -> None:
        """Show a batch at 3. A reservation at 0 was open when it was reserved, and is void now."""
        void = self.reserve()
        self.log.append("t", 0, some_records(3))
        later = self.log.reserve()
        self.log.void(void)
        self.other = self.log.register()
        self.show(later)

    @property
    def gaps(self) -> dict[int, int]:
        return {key.partition: end for key, end in self.view.gaps.ends.items()}


@pytest.fixture
def shown() -> Shown:
    found = Shown()
    found.leave_a_gap()
    return found


def test_a_gap_is_unproven_until_a_stamp_reaches_its_end(shown: Shown) -> None:
    assert shown.gaps == {0: 3}
    shown.log.append("t", 1, some_records(1))
    shown.flush()
    assert shown.gaps == {0: 3}
    shown.log.stamp("t", 0)
    shown.flush()
    assert shown.gaps == {}


def test_the_next_batch_proves_the_gap(shown: Shown) -> None:
    shown.log.append("t", 0, some_records(1))
    shown.flush()
    assert shown.gaps == {}


def test_a_stamp_that_was_reserved_too_early_proves_nothing() -> None:
    """A reservation below the gap's end was open then, so the stamp is the gap's start."""
    shown = Shown()
    void = shown.reserve()
    shown.log.append("t", 0, some_records(3))
    later = shown.log.reserve()
    shown.log.void(void)
    shown.log.stamp("t", 0)
    early = shown.log.reserve(shown.log.register())
    shown.show(early)
    assert shown.gaps == {}
    shown.show(later)
    assert shown.gaps == {0: 3}


def test_batches_side_by_side_have_no_gap(shown: Shown) -> None:
    for count in (2, 3):
        shown.log.append("t", 0, some_records(count))
    shown.flush()
    assert shown.gaps == {}


def test_the_last_gap_counts(shown: Shown) -> None:
    shown.leave_a_gap()
    assert shown.gaps == {0: 9}


def test_nothing_is_in_flight_below_the_log_start(shown: Shown) -> None:
    topic_id = UUID(bytes=shown.log.topics["t"][0])
    for start, left in ((2, {0: 3}), (3, {})):
        moved = LogStartPayload(topic_id=topic_id, partition=0, log_start=start)
        shown.log.fact(LogStartsMoved(partitions=(moved,)))
        shown.flush()
        assert shown.gaps == left


def test_partitions_of_deleted_topics_need_no_stamp(shown: Shown) -> None:
    shown.log.delete_topic("t")
    shown.flush()
    assert shown.gaps == {}


def test_a_view_that_is_read_anew_has_the_same_gaps(shown: Shown) -> None:
    fresh = View()
    fresh.become(shown.view)
    assert fresh.gaps.ends == shown.view.gaps.ends
    assert fresh.gaps.ends
