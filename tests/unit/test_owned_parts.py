"""Which parts of large objects a response copies."""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer, SegmentId, StoredObject, WriterId
from bucketlog.metadata.partition_log import StoredRange
from bucketlog.stateless_broker.handlers.fetch_plan import FetchedRecords, PlannedRead
from bucketlog.stateless_broker.handlers.owned_parts import own_parts, own_records, taken_bytes

OBJECT_BYTES = 1000


def view(source: bytes, size: int, start: int = 0) -> memoryview:
    return memoryview(source)[start : start + size]


def records(*parts: Buffer) -> FetchedRecords:
    return FetchedRecords(ErrorCode.none, list(parts))


def is_kept(part: Buffer, source: bytes) -> bool:
    return isinstance(part, memoryview) and part.obj is source


def test_small_parts_are_copied_and_large_parts_are_not() -> None:
    source = bytes(OBJECT_BYTES)
    small, large = own_parts([view(source, 499), view(source, 500)])
    assert not is_kept(small, source)
    assert is_kept(large, source)
    assert [len(small), len(large)] == [499, 500]


def test_a_small_part_stays_if_the_response_takes_half_of_the_object() -> None:
    source = bytes(OBJECT_BYTES)
    assert is_kept(own_parts([view(source, 10)], 500)[0], source)
    assert not is_kept(own_parts([view(source, 10)], 499)[0], source)


def test_parts_of_several_partitions_count_together() -> None:
    shared, lone = bytes(OBJECT_BYTES), bytes(OBJECT_BYTES + 1)
    found = own_records(
        [
            records(view(shared, 250), b"other bytes"),
            records(view(lone, 250)),
            records(view(shared, 250, 250)),
        ]
    )
    assert [len(part) for each in found for part in each.parts] == [250, 11, 250, 250]
    assert is_kept(found[0].parts[0], shared)
    assert is_kept(found[2].parts[0], shared)
    assert not is_kept(found[1].parts[0], lone)


def test_the_bytes_of_reads_are_counted_by_object() -> None:
    async def start(_: Mapping[StoredObject, int]) -> FetchedRecords:
        return records()

    writer = WriterId("w")
    first, second = SegmentId(writer, 0), SegmentId(writer, 1)
    reads = [
        PlannedRead(30, start, ranges=(StoredRange(first, 0, 10), StoredRange(second, 5, 20))),
        PlannedRead(7, start, ranges=(StoredRange(first, 50, 7),)),
        PlannedRead(9, start),
    ]
    assert taken_bytes(reads) == {first: 17, second: 20}
