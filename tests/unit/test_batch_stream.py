"""Whole batches out of pieces: any cut gives the same, and damage is named where it begins."""

import struct

import pytest

from bucketlog.log_format.batch import CorruptBatchError, read_header
from bucketlog.log_format.batch_stream import BatchStream
from bucketlog.log_format.records import DecodedRecord, encode_batch

BATCHES = [
    encode_batch([DecodedRecord(offset, 0, b"key", b"v" * length)])
    for offset, length in [(3, 0), (4, 100), (9, 1)]
]
DATA = b"".join(BATCHES)


def read_all(data: bytes, cut: int) -> list[bytes]:
    stream = BatchStream()
    found = []
    for at in range(0, len(data), cut):
        found += [bytes(batch) for batch, _ in stream.feed(data[at : at + cut])]
    stream.finish()
    return found


@pytest.mark.parametrize("cut", [*range(1, 14), 61, 70, 71, 72, len(DATA) - 1, len(DATA)])
def test_any_cut_gives_the_same_batches(cut: int) -> None:
    stream = BatchStream()
    found = []
    for at in range(0, len(DATA), cut):
        found += [(bytes(batch), header) for batch, header in stream.feed(DATA[at : at + cut])]
    stream.finish()
    assert found == [(batch, read_header(batch)) for batch in BATCHES]
    assert stream.next_offset == 10


def test_a_cut_end_is_named() -> None:
    for missing in (1, 60, len(BATCHES[2]) - 1):
        stream = BatchStream()
        assert len(list(stream.feed(DATA[:-missing]))) == 2
        with pytest.raises(CorruptBatchError, match="from offset 5 on"):
            stream.finish()


@pytest.mark.parametrize(
    ("position", "fmt", "value", "reason"),
    [
        (0, ">q", 4, "begins at offset 4"),
        (8, ">i", 48, "a batch of 60 bytes"),
        (8, ">i", -1, "a batch of 11 bytes"),
        (8, ">i", 2**31 - 1, "a batch of 2147483659 bytes"),
        (16, ">b", 1, "magic 1"),
        (23, ">i", -1, "spans -1"),
        (0, ">q", 2**53, "spans 0"),
    ],
)
def test_damage_is_named(position: int, fmt: str, value: int, reason: str) -> None:
    data = bytearray(DATA)
    struct.pack_into(fmt, data, len(DATA) - len(BATCHES[2]) + position, value)
    for cut in (7, len(data)):
        with pytest.raises(CorruptBatchError, match=f"from offset 5 on.*{reason}"):
            read_all(bytes(data), cut)


def test_a_length_beyond_the_bound_is_refused_before_it_is_waited_for() -> None:
    stream = BatchStream(batch_bytes_max=len(BATCHES[1]) - 1)
    with pytest.raises(CorruptBatchError, match="from offset 4 on"):
        list(stream.feed(DATA[: len(BATCHES[0]) + 12]))
