"""Fetches from a partition's tier: what they answer, and how often they ask the bucket."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Body, Span, Suffix
from tests.models.partition_batches import PARTITION, Planned, made
from tests.rigs.tiered_log import MIB, SECOND, BucketAroundLog, TieredLog

SIZE = 100_100
"""One of `filled` fits, two do not."""


def filled(total: int, size: int = 100_000, start: int = 0) -> list[bytes]:
    """Batches of one record each."""
    return made([Planned(0, 1, 1000 + at, size) for at in range(total // size)], start)


def next_offset(data: bytes) -> int:
    position, end = 0, 0
    while position < len(data):
        header = read_header(data, position)
        position, end = position + header.size_bytes, header.next_offset
    return end


async def read_all(log: TieredLog, offset: int = 0, max_bytes: int = MIB) -> bytes:
    data = b""
    while True:
        found = await log.fetch(offset, max_bytes)
        assert found.error is ErrorCode.none
        if offset == found.high_watermark:
            return data
        assert found.data
        data += found.data
        offset = next_offset(found.data)


@pytest.mark.parametrize(("sizes", "most"), [((10,), 6), ((9, 1), 6), ((40,), 9)])
async def test_a_full_read_takes_few_requests(sizes: tuple[int, ...], most: int) -> None:
    log = TieredLog()
    everything = b""
    start = 0
    for size in sizes:
        batches = filled(size * 1_000_000, start=start)
        log.append(batches)
        log.split(batches, start)
        start += len(batches)
        everything += b"".join(batches)
    assert await read_all(log) == everything
    assert log.gets <= most
    assert log.gets <= len(everything) / (8 * MIB) + 5


def laid(
    batches: list[bytes], *, ahead: int = 8 * MIB, history: int = 64 * MIB, index_bytes: int = MIB
) -> TieredLog:
    """All in one partition segment."""
    log = TieredLog(ahead=ahead, history=history, index_bytes=index_bytes)
    log.append(batches)
    log.split(batches, 0)
    return log


async def test_a_small_answer_has_one_batch_at_least_and_never_a_part_of_one() -> None:
    batches = filled(1_000_000)
    log = laid(batches)
    assert (await log.fetch(3, 1)).data == batches[3]
    assert (await log.fetch(3, 2 * len(batches[3]) + 1)).data == batches[3] + batches[4]
    log.append(batches, SECOND)
    first, second = await log.fetch_all([(PARTITION, 0, 1), (SECOND, 0, 1)])
    assert (first.data, second.data) == (batches[0], b"")
    first, second = await log.fetch_all([(SECOND, 0, 1), (PARTITION, 0, 1)])
    assert (first.data, second.data) == (batches[0], b"")


async def test_all_partitions_share_what_a_fetch_may_answer() -> None:
    batches = filled(1_000_000)
    log = laid(batches)
    log.append(batches, SECOND)
    most = 3 * len(batches[0])
    wanted = [(PARTITION, 0, 2 * len(batches[0])), (SECOND, 0, MIB)]
    first, second = await log.fetch_all(wanted, max_bytes=most)
    assert (first.data, second.data) == (batches[0] + batches[1], batches[0])


async def test_an_index_is_read_once_for_all_who_ask() -> None:
    batches = filled(1_000_000)
    log = laid(batches)
    found = await asyncio.gather(*(log.fetch(5, SIZE) for _ in range(5)))
    assert {each.data for each in found} == {batches[5]}
    assert log.gets == 2
    assert (await log.fetch(8, SIZE)).data == batches[8]
    assert log.gets == 3


async def test_neither_a_beginning_nor_a_reader_that_goes_on_needs_an_index() -> None:
    batches = filled(1_000_000)
    log = laid(batches, index_bytes=0, ahead=0, history=0)
    for at, batch in enumerate(batches):
        assert (await log.fetch(at, SIZE)).data == batch
    assert log.gets == len(batches)


async def test_manifests_are_read_once() -> None:
    log = TieredLog(history=0)
    start, rows, everything = 0, [], []
    for _ in range(3):
        batches = filled(200_000, start=start)
        log.append(batches)
        rows.append(log.split(batches, start))
        start += len(batches)
        everything += batches
    log.list_in_manifest(rows)
    for row in rows:
        assert (await log.fetch(row.start, SIZE)).data == everything[row.start]
    assert log.gets == 1 + len(rows)


class _Swapping(BucketAroundLog):
    """The first segment is merged, and its object gone, at the moment that somebody reads it."""

    again = True

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        row = self.log.rows[0]
        if self.again and key == keys.tier_object(self.log.there(row)):
            self.again = False
            whole = self.log.write(filled(1_000_000), 0, 10)
            self.log.replace([row], whole)
            self.log.delete(row)
        return await super().get(key, span)


async def test_what_was_swapped_meanwhile_is_looked_for_anew() -> None:
    batches = filled(1_000_000)
    log = TieredLog(around=_Swapping)
    log.append(batches)
    log.split(batches, 0)
    assert (await log.fetch(4, 1)).data == batches[4]


async def test_look_ups_by_time_look_anew_too() -> None:
    batches = filled(1_000_000)
    log = TieredLog(around=_Swapping)
    log.append(batches)
    log.split(batches, 0)
    assert await log.list_offset(1004) == (ErrorCode.none, 4, 1004)


async def test_an_object_that_is_missing_is_told() -> None:
    log = laid(filled(1_000_000))
    log.delete(log.rows[0])
    found = await log.fetch(0)
    assert (found.error, found.data) == (ErrorCode.kafka_storage_error, b"")
    assert (await log.list_offset(1000))[0] is ErrorCode.kafka_storage_error


async def test_what_stands_before_a_missing_object_is_answered() -> None:
    batches = filled(400_000)
    log = TieredLog()
    log.append(batches)
    log.split(batches[:2], 0)
    log.split(batches[2:], 2)
    assert (await log.fetch(0, 1)).data == batches[0]
    log.delete(log.rows[1])
    assert (await log.fetch(1)).data == batches[1]
    assert (await log.fetch(2)).error is ErrorCode.kafka_storage_error


class _Retention(BucketAroundLog):
    """The log start moves while somebody reads."""

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self.log.begin_at(6)
        return await super().get(key, span)


async def test_nothing_is_answered_once_the_log_start_has_come_by() -> None:
    batches = filled(1_000_000)
    log = TieredLog(around=_Retention)
    log.append(batches)
    log.split(batches, 0)
    found = await log.fetch(5)
    assert (found.error, found.log_start, found.data) == (ErrorCode.offset_out_of_range, -1, b"")
    assert (await log.fetch(6, 1)).data == batches[6]
    assert (await log.fetch(5)).error is ErrorCode.offset_out_of_range


def with_gap_at_the_end() -> TieredLog:
    """Of offsets 0 to 9 the last five were cleaned away."""
    batches = filled(1_000_000)
    log = laid(batches)
    log.replace(log.rows[:], log.write(batches[:5], 0, 10))
    return log


async def test_a_gap_at_the_end_is_waited_in_without_requests() -> None:
    log = with_gap_at_the_end()
    found = await log.fetch(7)
    assert (found.error, found.high_watermark, found.data) == (ErrorCode.none, 10, b"")
    gets = log.gets
    shown = log.view.log(PARTITION)
    assert shown is not None
    assert log.tier.available_bytes(PARTITION, shown, 7, MIB) == 0
    assert (await log.fetch(7)).data == b""
    assert log.gets == gets


async def test_an_empty_answer_does_not_take_the_place_of_the_one_batch() -> None:
    log = with_gap_at_the_end()
    (batch,) = filled(100_000)
    log.append([batch], SECOND)
    first, second = await log.fetch_all([(PARTITION, 7, 1), (SECOND, 0, 1)])
    assert (first.data, second.data) == (b"", batch)


async def test_many_readers_do_not_read_the_same_again_and_again() -> None:
    """Twelve partitions' worth of parts, where the cache keeps two."""
    log = TieredLog(ahead=MIB, history=2 * MIB)
    start, rows = 0, []
    for _ in range(12):
        batches = filled(1_000_000, start=start)
        log.append(batches)
        rows.append(log.split(batches, start))
        start += len(batches)
    for step in range(5):
        for row in rows:
            found = await log.fetch(row.start + 2 * step, 250_000)
            assert next_offset(found.data) == row.start + 2 * step + 2
    assert log.bucket.snapshot().bytes_out < 2.5 * 12_000_000


async def test_reads_of_the_tier_are_counted() -> None:
    batches = filled(1_000_000)
    log = laid(batches)
    await log.fetch(0, 3 * len(batches[0]))
    counts = log.reader.counts
    assert counts.requests == log.gets == 1
    assert counts.requested_bytes == log.bucket.snapshot().bytes_out
    assert counts.bytes_from_bucket == counts.requested_bytes


async def test_indexes_are_kept_apart_from_what_is_read() -> None:
    batches = filled(1_000_000)
    log = laid(batches, history=0)
    for at in (5, 8):
        assert (await log.fetch(at, SIZE)).data == batches[at]
    assert log.gets == 3


async def test_one_answer_goes_on_from_the_tier_to_log_segments() -> None:
    batches = filled(1_000_000)
    log = TieredLog()
    log.append(batches[:6])
    log.append(batches[6:])
    log.split(batches[:6], 0)
    assert (await log.fetch(0, SIZE)).data == batches[0]
    assert (await log.fetch(1)).data == b"".join(batches[1:])


async def test_offsets_that_a_manifest_lists_no_segment_for() -> None:
    batches = filled(600_000)
    log = TieredLog()
    log.append(batches)
    rows = [log.split(batches[at : at + 2], at) for at in (0, 2, 4)]
    manifest = log.list_in_manifest(rows[:1])
    log.replace([manifest, rows[1]], manifest._replace(end=4))
    assert (await log.fetch(2, SIZE)).data == batches[4]


@pytest.mark.parametrize("in_tier", [True, False])
async def test_records_below_the_log_start_answer_no_look_up_by_time(in_tier: bool) -> None:
    first = [DecodedRecord(at, stamp, None, b"") for at, stamp in enumerate((50, 10, 12))]
    batches = [encode_batch(first), encode_batch([DecodedRecord(3, 20, None, b"")])]
    log = TieredLog()
    log.append(batches)
    if in_tier:
        log.split(batches, 0)
    assert await log.list_offset(15) == (ErrorCode.none, 0, 50)
    log.begin_at(1)
    assert await log.list_offset(5) == (ErrorCode.none, 1, 10)
    assert await log.list_offset(11) == (ErrorCode.none, 2, 12)
    assert await log.list_offset(15) == (ErrorCode.none, 3, 20)
    assert await log.list_offset(21) == (ErrorCode.none, -1, -1)


async def test_an_answer_pins_no_object_that_is_much_larger_than_it() -> None:
    log = TieredLog(ahead=8 * MIB, history=64 * MIB)
    batches = filled(20_000_000)
    log.append(batches)
    log.split(batches, 0)
    offset = 0
    for _ in range(5):  # the first by an index, those behind it from parts that are read ahead
        found = await log.fetch(offset, MIB)
        offset = next_offset(found.data)
        pinned = sum(
            memoryview(part.obj).nbytes if isinstance(part, memoryview) else len(bytes(part))
            for part in log.answered
        )
        assert pinned <= 2 * sum(len(bytes(part)) for part in log.answered)


async def test_a_partition_that_is_named_again_and_again_is_answered_once() -> None:
    log = TieredLog()
    batches = filled(1_000_000)
    log.append(batches)
    log.split(batches, 0)
    found = await log.fetch_all([(PARTITION, 0, 10)] * 1_000 + [(PARTITION, 5, MIB)])
    assert len(found) == 1
    assert read_header(found[0].data).base_offset == 5, "as it was named last"
