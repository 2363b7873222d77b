"""Splitting log segments by partition: nothing is lost, nothing damaged is passed on."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from bucketlog.log_format.batch import BatchHeader, crc_holds, read_header
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import Buffer, Ticket, TierRow, TopicIdPartition
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.partition_segment import HEADER, check_partition_segment
from bucketlog.tiered_storage.splitting import Split, SplitPartition, StoredSegment, join_segments
from bucketlog.tiered_storage.tier_plan import CompactionSettings, SplitPlan, plan_split
from tests.models.partition_batches import NAME, Planned, joined, made, next_of, written
from tests.rigs.split_logs import Ids, SplitLog
from tests.rigs.written_log import WrittenLog, some_records

WRITTEN_MS = 1_700_000_000_000


def begun(plan: SplitPlan, target: int = 10**6) -> Split:
    ids = Ids()
    return Split(
        plan,
        new_name=lambda: keys.tier_name(Ticket(1, 9), ids()),
        segment_bytes_target=target,
        written_ms=WRITTEN_MS,
    )


def split_all(log: SplitLog, plan: SplitPlan, target: int = 10**6) -> list[SplitPartition]:
    split = begun(plan, target)
    for segment, data in log.objects(plan):
        for _ in split.take(segment, data):
            pass
    return list(split.finish())


def contents(part: SplitPartition) -> bytes:
    found = b""
    for segment in part.segments:
        there, data = joined(segment)
        index = check_partition_segment(there, data)
        found += data[len(HEADER) : index.batches_end]
    return found


@pytest.mark.parametrize("target", [1, 400, 10**6])
@pytest.mark.parametrize("below", [0, 4, 6])
def test_every_batch_of_the_plan_is_there_once_and_in_order(below: int, target: int) -> None:
    log = SplitLog()
    plan = log.plan(below)
    parts = split_all(log, plan, target)
    assert {part.partition for part in parts} == set(plan.ranges)
    for part in parts:
        wanted = plan.ranges[part.partition]
        assert contents(part) == b"".join(log.batches[part.partition])
        rows = [segment.row for segment in part.segments]
        assert (part.start, part.end) == (wanted.start, wanted.end)
        assert (rows[0].start, rows[-1].end) == (wanted.start, wanted.end)
        assert all(low.end == high.start for low, high in pairwise(rows))
        assert len({row.name for row in rows}) == len(rows)
        assert all(row.batch_bytes >= target for row in rows[:-1])
        if target == 1:
            assert len(rows) == wanted.batches


def test_what_a_plan_counted_is_what_must_be_found() -> None:
    """A segment that the plan does not know of would leave a hole."""
    log = SplitLog()
    plan = log.plan()
    for gone in range(len(plan.segments)):
        lacking = plan._replace(
            segments=tuple(each for at, each in enumerate(plan.segments) if at != gone)
        )
        with pytest.raises(InvalidDataError, match="were expected"):
            split_all(log, lacking)


def test_segments_are_taken_in_the_plan_s_order_and_all() -> None:
    log = SplitLog()
    plan = log.plan()
    (first, data), (second, other), *_ = log.objects(plan)
    with pytest.raises(InvalidDataError, match="not the next"):
        list(begun(plan).take(second, other))
    split = begun(plan)
    assert list(split.take(first, data)) == []
    with pytest.raises(InvalidDataError, match="were not taken"):
        next(split.finish())
    with pytest.raises(CorruptObjectError, match="another segment's"):
        list(begun(plan).take(first, other))


def test_damage_is_found_before_it_is_copied() -> None:
    log = SplitLog(2)
    plan = log.plan()
    (segment, data), *_ = log.objects(plan)
    reserved = log.written[0]
    planned = [
        row
        for part in reserved.index.partitions
        if part.partition in plan.ranges
        for row in part.batches
    ]
    footer_at = max(
        row.position + row.length for part in reserved.index.partitions for row in part.batches
    )
    places = [at for row in planned for at in range(row.position, row.position + row.length)]
    for at in [*range(16), *places, *range(footer_at, len(data))]:
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        with pytest.raises(CorruptObjectError):
            list(begun(plan).take(segment, damaged))


def test_a_large_segment_is_taken_with_pauses() -> None:
    log = SplitLog(0)
    for _ in range(1_200):
        log.log.append("t", 0, some_records(1))
    log.written.append(log.log.flush())
    plan = log.plan()
    (segment, data), *_ = log.objects(plan)
    split = begun(plan)
    assert len(list(split.take(segment, data))) == 2
    (part,) = split.finish()
    assert contents(part) == b"".join(log.batches[part.partition])


# Joining -----------------------------------------------------------------------------------------


def stored() -> list[StoredSegment]:
    found, start = [], 5
    for at, timestamp in enumerate((90, -1, 30)):
        batches = made([Planned(1, 2, timestamp), Planned(0, 1, timestamp)], start)
        name = keys.tier_name(Ticket(1, at), f"{at:016x}")
        segment = written(batches, start, next_of(batches, start) + 1, name)
        there, data = joined(segment)
        found.append(StoredSegment(there, segment.row, data))
        start = segment.row.end
    return found


def test_neighbours_become_one() -> None:
    segments = stored()
    finished = join_segments(segments, NAME)
    there, data = joined(finished)
    index = check_partition_segment(there, data)
    expected = b"".join(
        bytes(each.data)[len(HEADER) : len(HEADER) + each.row.batch_bytes] for each in segments
    )
    assert data[len(HEADER) : index.batches_end] == expected
    row = finished.row
    assert row == TierRow(
        5, segments[-1].row.end, NAME, False, len(data), len(expected), WRITTEN_MS
    )
    assert (index.max_timestamp, index.batches) == (90, 6)


def test_nothing_damaged_is_joined() -> None:
    segments = stored()
    size = len(segments[1].data)
    for at in range(size):
        damaged = bytearray(segments[1].data)
        damaged[at] ^= 0x10
        wrong: Buffer = damaged
        with pytest.raises((CorruptObjectError, InvalidDataError)):
            join_segments([segments[0], segments[1]._replace(data=wrong), segments[2]], NAME)


def test_only_what_its_row_says_is_joined_and_in_order() -> None:
    first, second, third = stored()
    with pytest.raises(InvalidDataError, match="come after"):
        join_segments([second, first, third], NAME)
    with pytest.raises(CorruptObjectError, match="what its row says"):
        join_segments([first, second._replace(row=second.row._replace(end=99)), third], NAME)
    elsewhere = TopicIdPartition(first.there.partition.topic_id, 9)
    with pytest.raises(CorruptObjectError, match="another partition's"):
        join_segments(
            [first, second._replace(there=second.there._replace(partition=elsewhere))], NAME
        )


def test_aborted_batches_and_markers_are_left_out() -> None:
    bucket = MemoryBucket()
    log = WrittenLog(bucket)
    log.create_topic("t")
    key = log.partition("t", 0)
    plain = log.append("t", 0, some_records(2))
    log.append("t", 0, some_records(3), producer_id=7, transactional=True)
    log.append("t", 0, some_records(1), producer_id=8, transactional=True)
    first = log.flush()
    log.end_transaction(7, commit=False)
    log.end_transaction(8, commit=True)
    second = log.flush()
    indexes = [first.index, second.index]
    logs = {key: found.batches for key, found in View.of(indexes).logs().items()}
    plan = plan_split(
        View.of(indexes).waiting, logs, settings=CompactionSettings(), now_ms=2 * WRITTEN_MS
    )
    assert plan is not None
    wanted = plan.ranges[key]
    assert (wanted.end, wanted.batches, wanted.aborted) == (8, 5, ((7, 2, 6),))
    for target in (1, 10**6):
        split = begun(plan, target)
        for each in (first, second):
            for _ in split.take(each.index.segment, each.data):
                pass
        (part,) = split.finish()
        found = list(batches_of(contents(part)))
        offsets = [
            (header.base_offset, header.next_offset, header.record_count) for header in found
        ]
        assert offsets == [(0, 2, 2), (5, 6, 1), (7, 8, 0)], "the last batch stays, emptied"
        assert (found[-1].is_control, found[-1].is_transactional) == (False, False)
        assert sum(each.row.batch_bytes for each in part.segments) == len(contents(part))
        assert (part.segments[0].row.start, part.segments[-1].row.end) == (0, 8)
        assert plain[0].offset == 0


def batches_of(data: bytes) -> Iterator[BatchHeader]:
    at = 0
    while at < len(data):
        header = read_header(data, at)
        assert crc_holds(data[at : at + header.size_bytes], header)
        yield header
        at += header.size_bytes
