"""Partition segments, byte by byte: whatever is damaged or lies is found before it is believed."""

import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c

from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import TierRow, TopicId, TopicIdPartition
from bucketlog.tiered_storage.block_index import BLOCK_BYTES
from bucketlog.tiered_storage.partition_segment import (
    HEADER,
    PartitionSegmentIndex,
    PartitionSegmentWriter,
    check_partition_segment,
    decode_index,
    index_span,
    walk_batches,
)
from tests.models.partition_batches import (
    NAME,
    PARTITION,
    WRITTEN_MS,
    Planned,
    described,
    joined,
    made,
    written,
)

BATCHES = made(
    [Planned(5, 2, 70), Planned(0, 1, -1), Planned(9, 3, 50, 22_000), Planned(1, 1, 90)], 100
)
SEGMENT = written(BATCHES, start=101, end=130)
THERE, DATA = joined(SEGMENT)
INDEX = check_partition_segment(THERE, DATA)
INDEX_AT = index_span(SEGMENT.row).start
HEAD_LENGTH = 80


def test_there_and_back() -> None:
    positions = [16, 16 + sum(map(len, BATCHES[:3]))]
    assert (INDEX.partition, INDEX.start, INDEX.end) == (PARTITION, 101, 130)
    assert (INDEX.batches, INDEX.records, INDEX.max_timestamp) == (4, 7, 90)
    assert list(INDEX.blocks.rows()) == [(105, positions[0], -1), (121, positions[1], 70)]
    assert DATA[16:INDEX_AT] == b"".join(BATCHES)
    assert SEGMENT.row == TierRow(101, 130, NAME, False, len(DATA), INDEX.batch_bytes, 90)
    assert decode_index(THERE, DATA[INDEX_AT:], len(DATA)) == INDEX
    assert check_partition_segment(THERE, memoryview(bytearray(DATA))) == INDEX
    span = index_span(SEGMENT.row)
    assert span.start + span.length == len(DATA)


def test_a_segment_without_timestamps_is_as_old_as_its_writing() -> None:
    segment = written(made([Planned(0, 2, -1)]))
    assert segment.row.max_timestamp_ms == WRITTEN_MS
    assert check_partition_segment(*joined(segment)).max_timestamp == -1


def test_every_flipped_byte_is_found() -> None:
    for at in [*range(1_000), *range(1_000, INDEX_AT - 200, 97), *range(INDEX_AT - 200, len(DATA))]:
        for mask in (0x01, 0x80):
            damaged = bytearray(DATA)
            damaged[at] ^= mask
            with pytest.raises(CorruptObjectError, match="is damaged") as caught:
                check_partition_segment(THERE, damaged)
            assert 0 <= caught.value.position <= at


def test_every_flipped_byte_of_a_small_segment_is_found_under_every_mask() -> None:
    there, data = joined(written(made([Planned(0, 1, 7), Planned(2, 2, 9)])))
    for at in range(len(data)):
        for mask in range(1, 256):
            damaged = bytearray(data)
            damaged[at] ^= mask
            with pytest.raises(CorruptObjectError):
                check_partition_segment(there, damaged)


def test_every_truncation_is_found() -> None:
    there, data = joined(written(made([Planned(0, 1, 7), Planned(2, 2, 9)])))
    for length in range(len(data)):
        for cut in (data[:length], data[length + 1 :], data[:length] + b"\0" + data[length:]):
            with pytest.raises(CorruptObjectError):
                check_partition_segment(there, cut)


def test_the_index_needs_its_whole_tail() -> None:
    for length in range(len(DATA) - INDEX_AT):
        with pytest.raises(CorruptObjectError):
            decode_index(THERE, DATA[len(DATA) - length :], len(DATA))
    with pytest.raises(CorruptObjectError, match="too few"):
        decode_index(THERE, b"", 16)


def test_a_segment_is_believed_under_its_own_key_only() -> None:
    for there in (
        THERE._replace(start=100),
        THERE._replace(partition=TopicIdPartition(PARTITION.topic_id, 4)),
        THERE._replace(partition=TopicIdPartition(TopicId(b"u" * 16), 3)),
    ):
        with pytest.raises(CorruptObjectError, match="another partition's"):
            decode_index(there, DATA, len(DATA))


# Indexes whose checksum holds, and which lie ------------------------------------------------------


def resealed(change: Callable[[bytearray], None]) -> bytes:
    body = bytearray(DATA[INDEX_AT:-16])
    change(body)
    return DATA[:INDEX_AT] + body + struct.pack(">II8s", len(body), crc32c(body), b"bktlogpt")


def put(at: int, kind: str, value: int) -> Callable[[bytearray], None]:
    return lambda body: struct.pack_into(kind, body, at, value)


LIES: dict[str, tuple[Callable[[bytearray], None], str]] = {
    "fewer bytes": (put(40, ">Q", INDEX.batch_bytes - 1), "are not before it"),
    "far more bytes": (put(40, ">Q", 2**64 - 1), "are not before it"),
    "no batches": (put(48, ">Q", 0), "are not before it"),
    "more batches than bytes": (put(48, ">Q", INDEX.batch_bytes // 61 + 1), "are not before"),
    "fewer batches": (put(48, ">Q", 3), "do not agree with its index"),
    "other records": (put(56, ">Q", 8), "do not agree with its index"),
    "a higher timestamp": (put(64, ">q", 91), "do not agree with its index"),
    "a lower timestamp": (put(64, ">q", 69), "do not agree with one another"),
    "billions of rows": (put(72, ">I", 2**32 - 1), "rows do not fit"),
    "no rows": (put(72, ">I", 0), "rows do not fit"),
    "another checksum": (put(76, ">I", 0), "checksum of its batches"),
    "a start after its batches": (put(24, ">q", 106), "another partition's, or begins"),
    "an end before its last row": (put(32, ">q", 121), "do not agree with one another"),
    "an end before its last batch": (put(32, ">q", 119), "do not agree with one another"),
    "an end beyond all offsets": (put(32, ">q", 2**53 + 1), "do not agree with one another"),
    "a first row elsewhere": (put(HEAD_LENGTH + 8, ">q", 17), "do not agree with one another"),
    "a first offset too low": (put(HEAD_LENGTH, ">q", 100), "do not agree with one another"),
    "another first offset": (put(HEAD_LENGTH, ">q", 104), "another batch there"),
    "rows that descend": (put(HEAD_LENGTH + 24, ">q", 105), "do not agree with one another"),
    "rows too near": (
        put(HEAD_LENGTH + 32, ">q", 16 + BLOCK_BYTES - 1),
        "do not agree with one another",
    ),
    "a row that begins no batch": (
        put(HEAD_LENGTH + 32, ">q", 16 + BLOCK_BYTES),
        "another batch there",
    ),
    "a row after the end": (put(HEAD_LENGTH + 32, ">q", INDEX_AT), "do not agree with one another"),
    "a timestamp before the first": (put(HEAD_LENGTH + 16, ">q", 0), "agree with one another"),
    "another timestamp before": (put(HEAD_LENGTH + 40, ">q", 71), "another batch there"),
}


@pytest.mark.parametrize("lie", LIES)
def test_indexes_that_lie(lie: str) -> None:
    change, message = LIES[lie]
    with pytest.raises(CorruptObjectError, match=message):
        check_partition_segment(THERE, resealed(change))


@pytest.mark.parametrize("at", [0, 2])
def test_a_version_that_is_not_known(at: int) -> None:
    with pytest.raises(InvalidDataError, match="upgrade this one"):
        check_partition_segment(THERE, resealed(put(at, ">H", 2)))


def test_a_batch_beyond_the_range_is_found() -> None:
    change = put(32, ">q", 122)
    assert check_partition_segment(THERE, resealed(change)).end == 122
    there, data = joined(written(made([Planned(0, 5, 1)]), end=9))
    body = bytearray(data[-120:-16])
    struct.pack_into(">q", body, 32, 4)
    lying = data[:-120] + body + struct.pack(">II8s", len(body), crc32c(body), b"bktlogpt")
    with pytest.raises(CorruptObjectError, match="out of place"):
        check_partition_segment(there, lying)


# Walking -----------------------------------------------------------------------------------------


def test_a_walk_leaves_out_what_is_cut_off() -> None:
    ends = [sum(map(len, BATCHES[: at + 1])) for at in range(len(BATCHES))]
    data = b"".join(BATCHES)
    for length in [*range(300), *(end + by for end in ends for by in (-1, 0, 1))]:
        found = list(walk_batches("k", data[:length], 16))
        assert len(found) == sum(end <= length for end in ends)
        assert [data[b.position - 16 :][: b.length] for b in found] == BATCHES[: len(found)]
    assert [(b.base_offset, b.next_offset) for b in walk_batches("k", data, 16)] == [
        (105, 107),
        (107, 108),
        (117, 120),
        (121, 122),
    ]


@pytest.mark.parametrize(
    ("at", "kind", "value"),
    [(0, ">q", -1), (8, ">i", 48), (8, ">i", -1), (16, ">b", 1), (23, ">i", -1)],
)
def test_a_walk_stops_loudly_where_no_batch_stands(at: int, kind: str, value: int) -> None:
    damaged = bytearray(BATCHES[0] + BATCHES[1])
    struct.pack_into(kind, damaged, len(BATCHES[0]) + at, value)
    walk = walk_batches("k", damaged, 16)
    assert next(walk).position == 16
    with pytest.raises(CorruptObjectError, match="there is no batch") as caught:
        next(walk)
    assert caught.value.position == 16 + len(BATCHES[0])


def test_a_walk_stops_where_offsets_go_back() -> None:
    with pytest.raises(CorruptObjectError):
        list(walk_batches("k", BATCHES[1] + BATCHES[0], 16))


# Writing -----------------------------------------------------------------------------------------


def test_a_writer_takes_only_what_follows() -> None:
    writer = PartitionSegmentWriter(PARTITION, 106)
    with pytest.raises(InvalidDataError, match="come after 106"):
        described(writer, BATCHES[0])
    described(writer, BATCHES[1])
    assert (writer.next_offset, writer.batch_bytes) == (108, len(BATCHES[1]))
    with pytest.raises(InvalidDataError, match="come after 108"):
        described(writer, BATCHES[1])


def test_a_writer_finishes_only_what_is_whole() -> None:
    writer = PartitionSegmentWriter(PARTITION, 0)
    with pytest.raises(InvalidDataError, match="0 batches"):
        writer.finish(1, NAME, WRITTEN_MS)
    described(writer, BATCHES[0])
    with pytest.raises(InvalidDataError, match="not a partition segment"):
        writer.finish(107, NAME, WRITTEN_MS)
    writer.append(BATCHES[0])
    with pytest.raises(InvalidDataError, match="ends at 106"):
        writer.finish(106, NAME, WRITTEN_MS)
    assert writer.finish(107, NAME, WRITTEN_MS).row.end == 107


def test_writing_borrows() -> None:
    segment = written(BATCHES)
    assert all(found is given for found, given in zip(segment.parts[1:], BATCHES, strict=False))


def test_a_damaged_segment_is_not_merged() -> None:
    batches = bytearray(DATA[16:INDEX_AT])
    batches[5_000] ^= 1
    for wrong in ([batches], [DATA[16 : INDEX_AT - 1]], []):
        writer = PartitionSegmentWriter(PARTITION, 0)
        with pytest.raises(CorruptObjectError, match="checksum of its batches"):
            writer.append_segment("k", INDEX, wrong)
        assert writer.batch_bytes == 0


def test_only_what_follows_and_is_the_same_partition_s_is_merged() -> None:
    batches = [DATA[16:INDEX_AT]]
    other = PartitionSegmentWriter(TopicIdPartition(PARTITION.topic_id, 4), 0)
    with pytest.raises(InvalidDataError, match="does not belong"):
        other.append_segment("k", INDEX, batches)
    late = PartitionSegmentWriter(PARTITION, 102)
    with pytest.raises(InvalidDataError, match="come after 102"):
        late.append_segment("k", INDEX, batches)


def test_an_index_is_a_value() -> None:
    assert isinstance(INDEX, PartitionSegmentIndex)
    assert INDEX.batches_end == INDEX_AT
    assert DATA.startswith(HEADER)
