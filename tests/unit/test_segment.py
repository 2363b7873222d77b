"""The segment format: there and back, and no damage that goes unnoticed."""

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from crc32c import crc32c

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import (
    BatchIndex,
    FactEntry,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.log_format.records import encode_batch
from bucketlog.tiered_storage.segment import (
    HEADER,
    MIN_SEGMENT_LENGTH,
    SEAL_LENGTH,
    TRAILER_LENGTH,
    Seal,
    body_crc32c,
    check_batch,
    check_segment,
    decode_footer,
    decode_seal,
    encode_footer,
    encode_seal,
    is_seal,
)
from tests.rigs.written_log import row_of, some_records

KEY = "log/x"
WRITER = WriterId("0123456789abcdef" * 2)
FOOTER_HEAD = 76
COUNTS_AT = 60
"""Where, in the footer, the four counts stand: topics, partitions, batches, control entries."""


def batch(offset: int, records: int, codec: Codec = Codec.NONE) -> bytes:
    placed = [each._replace(offset=offset + at) for at, each in enumerate(some_records(records))]
    return encode_batch(placed, codec=codec)


BATCHES = {
    TopicIdPartition(TopicId(b"a" * 16), 0): [batch(5, 3), batch(8, 1, Codec.ZSTD)],
    TopicIdPartition(TopicId(b"a" * 16), 7): [batch(0, 2)],
    TopicIdPartition(TopicId(b"b" * 16), 1): [],
    TopicIdPartition(TopicId(b"b" * 16), 2): [batch(2**53 - 9, 1)],
}
CONTROL = (FactEntry(1, 1, b"{}"), FactEntry(0xFFFF, 9, b""), FactEntry(2, 1, b"\0" * 90))


def whole() -> tuple[SegmentIndex, bytes]:
    parts: list[bytes] = [HEADER]
    position = len(HEADER)
    partitions = []
    for key, batches in BATCHES.items():
        rows: list[BatchIndex] = []
        for data in batches:
            rows.append(row_of(data, position))
            parts.append(data)
            position += len(data)
        partitions.append(PartitionIndex(key, -1 if not rows else 4, tuple(rows)))
    index = SegmentIndex(
        segment=SegmentId(WRITER, 2**62),
        ticket=Ticket(3, 2**53),
        low_ticket=17,
        created_ms=1_700_000_000_000,
        partitions=tuple(partitions),
        facts=CONTROL,
    )
    footer = encode_footer(index)
    data = b"".join([*parts, footer])
    assert body_crc32c([*parts, footer]) == crc32c(data)
    return index, data


INDEX, DATA = whole()
FOOTER_LENGTH = struct.unpack_from(">I", DATA, len(DATA) - TRAILER_LENGTH)[0]
FOOTER_AT = len(DATA) - TRAILER_LENGTH - FOOTER_LENGTH


def test_there_and_back() -> None:
    assert check_segment(KEY, DATA) == INDEX
    assert check_segment(KEY, memoryview(DATA)) == INDEX
    assert check_segment(KEY, bytearray(DATA)) == INDEX


def test_an_empty_segment_is_the_shortest_and_no_seal() -> None:
    index = replace(INDEX, partitions=(), facts=())
    data = HEADER + encode_footer(index)
    assert check_segment(KEY, data) == index
    assert len(data) == MIN_SEGMENT_LENGTH > SEAL_LENGTH


@pytest.mark.parametrize("control", [(), CONTROL[:1], CONTROL])
def test_control_entries(control: tuple[FactEntry, ...]) -> None:
    data = HEADER + encode_footer(replace(INDEX, partitions=(), facts=control))
    assert check_segment(KEY, data).facts == control


def test_every_flipped_byte_is_found_and_named() -> None:
    for at in range(len(DATA)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(DATA)
            damaged[at] ^= mask
            with pytest.raises(CorruptObjectError, match="'log/x' is damaged") as caught:
                check_segment(KEY, damaged)
            assert 0 <= caught.value.position <= at


def test_every_truncation_is_found() -> None:
    for length in range(len(DATA)):
        with pytest.raises(CorruptObjectError):
            check_segment(KEY, DATA[:length])
        with pytest.raises(CorruptObjectError):
            check_segment(KEY, DATA[length + 1 :])


@pytest.mark.parametrize("at", [0, len(HEADER), FOOTER_AT, len(DATA) - TRAILER_LENGTH, len(DATA)])
def test_bytes_put_in_are_found(at: int) -> None:
    with pytest.raises(CorruptObjectError):
        check_segment(KEY, DATA[:at] + b"\0" + DATA[at:])


def test_any_suffix_gives_the_index_or_says_what_it_needs() -> None:
    for length in range(len(DATA) + 1):
        tail = DATA[len(DATA) - length :]
        answer = decode_footer(KEY, tail, len(DATA))
        if length >= FOOTER_LENGTH + TRAILER_LENGTH:
            assert answer == INDEX
        else:
            assert isinstance(answer, int)
            assert length < answer <= len(DATA)
            assert isinstance(decode_footer(KEY, DATA[-answer:], len(DATA)), SegmentIndex) or (
                length < TRAILER_LENGTH
            )


def test_two_reads_are_enough() -> None:
    first = decode_footer(KEY, b"", len(DATA))
    assert isinstance(first, int)
    second = decode_footer(KEY, DATA[-first:], len(DATA))
    assert isinstance(second, int)
    assert decode_footer(KEY, DATA[-second:], len(DATA)) == INDEX


# Footers whose checksum holds, and which lie ----------------------------------------------------


def resealed(change: Callable[[bytearray], None]) -> bytes:
    """`change` is made to the footer, then length and checksum are made good."""
    body = bytearray(DATA[FOOTER_AT : FOOTER_AT + FOOTER_LENGTH])
    change(body)
    return DATA[:FOOTER_AT] + body + struct.pack(">II8s", len(body), crc32c(body), b"bktlogft")


def put(at: int, kind: str, value: int) -> Callable[[bytearray], None]:
    return lambda body: struct.pack_into(kind, body, at, value)


TOPICS = len({key.topic_id for key in BATCHES})
PARTITIONS_AT = FOOTER_HEAD + 16 * TOPICS
BATCHES_AT = PARTITIONS_AT + 20 * len(BATCHES)
CONTROL_AT = BATCHES_AT + 52 * 4


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("value", [0, 1, 3, 5, 2**16, 2**31, 2**32 - 1])
def test_counts_that_lie(count: int, value: int) -> None:
    """A count of 2^32 must not cost memory: it is held against the bytes there are."""
    if value == [TOPICS, len(BATCHES), 4, len(CONTROL)][count]:
        value += 1
    with pytest.raises(CorruptObjectError):
        check_segment(KEY, resealed(put(COUNTS_AT + 4 * count, ">I", value)))


LIES: dict[str, tuple[Callable[[bytearray], Any], str]] = {
    "a newer version": (put(0, ">H", 2), "version 2.*upgrade"),
    "an epoch far out": (put(4, ">Q", 2**63), "impossible"),
    "a ticket far out": (put(12, ">Q", 2**64 - 1), "impossible"),
    "a low ticket far out": (put(20, ">Q", 2**63), "impossible"),
    "a seq far out": (put(44, ">Q", 2**63), "impossible"),
    "a topic row that is not": (put(PARTITIONS_AT, ">I", 2), "names topic row 2"),
    "partitions out of order": (put(PARTITIONS_AT + 4, ">i", 2**31 - 1), "not sorted"),
    "more batches in a partition": (put(PARTITIONS_AT + 8, ">I", 3), "do not agree|one after"),
    "billions of batches": (put(PARTITIONS_AT + 8, ">I", 2**32 - 1), "do not agree"),
    "fewer batches": (put(PARTITIONS_AT + 20 * 3 + 8, ">I", 0), "between the last batch|agree"),
    "another position": (put(BATCHES_AT + 8, ">Q", 17), "do not follow one another"),
    "a position far out": (put(BATCHES_AT + 8, ">Q", 2**64 - 1), "do not follow one another"),
    "a length too short": (put(BATCHES_AT + 16, ">I", 99), "do not follow one another"),
    "a length far out": (
        put(BATCHES_AT + 52 * 3 + 16, ">I", 2**32 - 1),
        "do not follow one another",
    ),
    "another offset": (put(BATCHES_AT, ">q", 4), "base offset 5, the footer has 4"),
    "an offset below 0": (put(BATCHES_AT, ">q", -1), "offsets from -1"),
    "an offset far out": (put(BATCHES_AT, ">q", 2**63 - 2), "end past 9007199254740991"),
    "another record count": (put(BATCHES_AT + 20, ">I", 4), "differs from its footer row"),
    "another producer": (put(BATCHES_AT + 36, ">q", 1), "differs from its footer row"),
    "another sequence": (put(BATCHES_AT + 48, ">i", 1), "differs from its footer row"),
    "an entry that is longer": (put(CONTROL_AT + 4, ">I", 3), "entry is cut short|after the last"),
    "an entry far too long": (put(CONTROL_AT + 4, ">I", 2**32 - 1), "entry is cut short"),
    "bytes after the entries": (lambda body: body.append(0), "after the last control entry"),
    "no body": (lambda body: body.clear(), "footer length 0 is impossible"),
}


@pytest.mark.parametrize("lie", LIES)
def test_footers_that_lie(lie: str) -> None:
    change, message = LIES[lie]
    with pytest.raises(CorruptObjectError, match=message):
        check_segment(KEY, resealed(change))


def test_a_batch_is_held_against_its_row() -> None:
    data = BATCHES[TopicIdPartition(TopicId(b"a" * 16), 0)][0]
    row = row_of(data, 16)
    check_batch(KEY, data, row)
    for field in row._fields:
        if field != "position":
            with pytest.raises(CorruptObjectError) as caught:
                check_batch(KEY, data, row._replace(**{field: getattr(row, field) + 1}))
            assert caught.value.position == 16
    for length in range(len(data)):
        with pytest.raises(CorruptObjectError):
            check_batch(KEY, data[:length], row)
    with pytest.raises(CorruptObjectError):
        check_batch(KEY, data + b"\0", row)


# Seals -----------------------------------------------------------------------------------------

SEAL = Seal(SegmentId(WRITER, 12), 4, 1_700_000_000_000)


def test_a_seal_there_and_back() -> None:
    data = encode_seal(SEAL)
    assert decode_seal(KEY, data) == SEAL
    assert is_seal(len(data))
    assert not is_seal(len(data) + 1)


def test_every_flipped_byte_of_a_seal_is_found() -> None:
    for at in range(SEAL_LENGTH):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(encode_seal(SEAL))
            damaged[at] ^= mask
            with pytest.raises(CorruptObjectError):
                decode_seal(KEY, damaged)


@pytest.mark.parametrize("length", [0, 1, SEAL_LENGTH - 1, SEAL_LENGTH + 1])
def test_a_seal_of_another_length_is_found(length: int) -> None:
    with pytest.raises(CorruptObjectError, match="a seal has 64 bytes"):
        decode_seal(KEY, (encode_seal(SEAL) * 2)[:length])


def test_a_seal_is_no_segment() -> None:
    with pytest.raises(CorruptObjectError, match="header"):
        check_segment(KEY, encode_seal(SEAL))
    with pytest.raises(CorruptObjectError, match="too few"):
        decode_footer(KEY, encode_seal(SEAL), SEAL_LENGTH)
