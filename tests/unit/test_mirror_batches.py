"""What a mirror writes for what a source has: every offset once, and what committed readers see."""

from collections.abc import Iterable

import pytest

from bucketlog.log_format.batch import (
    CONTROL,
    DELETE_HORIZON,
    TRANSACTIONAL,
    check_mirrored,
    crc_holds,
    read_header,
    stamp_base_offset,
)
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.records import DecodedRecord, decode_records
from bucketlog.log_format.rewriting import left_out_batch
from bucketlog.mirror.batches import SPAN_MAX, BatchesToWrite, copied, gap
from tests.rigs.wire_client import build_batch, patch_batch

ATTRIBUTES_AT, LAST_DELTA_AT = 21, 23
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


def at(batch: bytes, offset: int) -> bytes:
    placed = bytearray(batch)
    stamp_base_offset(memoryview(placed), offset)
    return bytes(placed)


def plain(offset: int, count: int = 2) -> bytes:
    return at(build_batch([(b"k", str(offset + n).encode()) for n in range(count)]), offset)


def of(producer: int, offset: int, count: int = 2) -> bytes:
    rows = [(b"k", str(offset + n).encode()) for n in range(count)]
    made = build_batch(
        rows, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
    )
    return at(made, offset)


def marker(producer: int, offset: int, kind: bytes) -> bytes:
    made = build_batch(
        [(kind, b"\0\0\0\0\0\0")],
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    return at(patch_batch(made, ATTRIBUTES_AT, ">h", TRANSACTIONAL | CONTROL), offset)


def copy(
    *batches: bytes, position: int = 0, aborted: Iterable[tuple[int, int]] = ()
) -> tuple[BatchesToWrite, list[DecodedRecord]]:
    """Checks what holds for every answer."""
    found = copied(memoryview(b"".join(batches)), position, aborted, "t-0")
    end, records = position, []
    for batch in found.batches:
        header = read_header(batch)
        check_mirrored(header, max_records=1000)
        assert crc_holds(batch, header)
        assert header.base_offset == end
        end = header.next_offset
        records += decode_records(batch, header)
    assert end == found.end
    assert len(records) == found.records
    return found, records


def offsets(records: list[DecodedRecord]) -> list[int]:
    assert all(each.value == str(each.offset).encode() for each in records)
    return [each.offset for each in records]


def test_batches_stay_as_they_are() -> None:
    batches = plain(0), plain(2, 3)
    found, records = copy(*batches)
    assert [bytes(each) for each in found.batches] == list(batches)
    assert offsets(records) == [0, 1, 2, 3, 4]


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    found, _ = copy(plain(0), plain(2)[:-1])
    assert found.end == 2
    assert copy(plain(0)[:11])[0] == BatchesToWrite([], 0, 0)


def test_missing_offsets_become_empty_batches() -> None:
    found, records = copy(plain(5), plain(20), position=3)
    assert found.end == 22
    assert offsets(records) == [5, 6, 20, 21]


def test_what_the_target_has_is_not_taken_again() -> None:
    found, records = copy(plain(0), plain(2), position=2)
    assert found.end == 4
    assert offsets(records) == [2, 3]
    with pytest.raises(InvalidDataError, match="begins before offset 3"):
        copy(plain(0), plain(2), position=3)


def test_a_damaged_batch_is_refused() -> None:
    damaged = bytearray(plain(0))
    damaged[-1] ^= 1
    with pytest.raises(InvalidDataError, match="t-0: the CRC of the batch at 0 is wrong"):
        copy(bytes(damaged))


def test_transactions_as_committed_readers_see_them() -> None:
    """Two producers: one commits, one aborts twice, and commits in between."""
    found, records = copy(
        *(of(1, 0), of(2, 2), plain(4), marker(2, 6, ABORT), marker(1, 7, COMMIT)),
        *(of(2, 8), marker(2, 10, COMMIT), of(2, 11), marker(2, 13, ABORT)),
        aborted=[(2, 2), (2, 11)],
    )
    assert offsets(records) == [0, 1, 4, 5, 8, 9]
    assert found.end == 14


def test_a_fetch_that_begins_within_an_aborted_transaction() -> None:
    found, records = copy(of(2, 4), marker(2, 6, ABORT), plain(7), position=4, aborted=[(2, 0)])
    assert offsets(records) == [7, 8]
    assert found.end == 9


def test_headers_lose_what_belongs_to_the_source() -> None:
    horizon = patch_batch(plain(0), ATTRIBUTES_AT, ">h", DELETE_HORIZON)
    idempotent = at(
        build_batch([(None, b"2")], producer_id=7, producer_epoch=1, base_sequence=9), 2
    )
    found, _ = copy(horizon, idempotent)
    headers = [read_header(each) for each in found.batches]
    assert [each.attributes for each in headers] == [0, 0]
    assert [(each.producer_id, each.base_sequence) for each in headers] == [(-1, -1)] * 2


def test_empty_batches_of_the_source() -> None:
    header = read_header(plain(2, 6))
    found, records = copy(plain(0), left_out_batch(header), plain(8))
    assert offsets(records) == [0, 1, 8, 9]
    assert found.end == 10


def test_compacted_batches_keep_their_span() -> None:
    compacted = patch_batch(plain(0), LAST_DELTA_AT, ">i", 8)
    found, records = copy(compacted, plain(9))
    assert offsets(records) == [0, 1, 9, 10]
    assert [bytes(each) for each in found.batches] == [compacted, plain(9)]


def test_a_large_gap_takes_several_batches() -> None:
    headers = [read_header(each) for each in gap(7, 7 + 2 * SPAN_MAX + 5)]
    assert [each.base_offset for each in headers] == [7, 7 + SPAN_MAX, 7 + 2 * SPAN_MAX]
    assert headers[-1].next_offset == 7 + 2 * SPAN_MAX + 5
    assert gap(7, 7) == []
