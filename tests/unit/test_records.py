"""Decoding and encoding record batches: the format's corners, and other readers' answers."""

import os
import struct
import subprocess
import sys

import pytest
from aiokafka.record.memory_records import MemoryRecords
from crc32c import crc32c
from kio.records.readers import read_batch

from bucketlog.log_format import scan
from bucketlog.log_format.arrow import decode_batches
from bucketlog.log_format.batch import (
    CRC_START,
    HEADER_LENGTH,
    Codec,
    CorruptBatchError,
    InvalidBatchError,
    read_header,
)
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import MAX_OFFSET
from bucketlog.log_format.records import (
    DecodedRecord,
    Header,
    decode_headers,
    decode_records,
    encode_batch,
    record_spans,
    records_payload,
)
from tests.rigs.traced_memory import TracedMemory

RECORDS = [
    DecodedRecord(40, 1_700_000_000_123, b"key", b"value", (Header("a", b"1"), Header("b", None))),
    DecodedRecord(41, 1_700_000_000_000, None, b"", ()),
    DecodedRecord(42, 1_700_000_009_999, b"", None, (Header("", b""),)),
    DecodedRecord(43, 1_700_000_000_500, b"k" * 200, b"v" * 100_000, ()),
]


@pytest.mark.parametrize("codec", list(Codec))
def test_aiokafka_reads_the_same_records(codec: Codec) -> None:
    batch = encode_batch(RECORDS, codec=codec, producer_id=7, producer_epoch=1, base_sequence=5)
    theirs = MemoryRecords(batch).next_batch()
    assert theirs is not None
    assert theirs.validate_crc()
    assert [
        DecodedRecord(r.offset, r.timestamp, r.key, r.value, tuple(Header(*h) for h in r.headers))
        for r in theirs
    ] == decode_records(batch, read_header(batch))


def test_kio_reads_the_same_records() -> None:
    records = [record._replace(timestamp=1_700_000_000_000) for record in RECORDS]
    theirs, size = read_batch(encode_batch(records), 0)
    assert size == len(encode_batch(records))
    assert [
        (r.offset, r.key, r.value, tuple((h.key, h.value) for h in r.headers))
        for r in theirs.records
    ] == [
        (r.offset, r.key, r.value, tuple((h.key.encode(), h.value) for h in r.headers))
        for r in records
    ]


def test_the_header_says_what_was_asked_for() -> None:
    batch = encode_batch(
        RECORDS,
        codec=Codec.ZSTD,
        base_offset=30,
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        transactional=True,
    )
    header = read_header(batch)
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (30, 13, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 5)
    assert header.max_timestamp == 1_700_000_009_999
    assert header.is_transactional
    assert not header.is_control
    assert decode_records(batch, header) == RECORDS


def test_log_append_time_is_the_batchs() -> None:
    batch = encode_batch(RECORDS, append_time_ms=99)
    assert {record.timestamp for record in decode_records(batch, read_header(batch))} == {99}


@pytest.mark.parametrize("offsets", [[], [1, 1], [2, 1]])
def test_offsets_must_ascend(offsets: list[int]) -> None:
    with pytest.raises(InvalidDataError):
        encode_batch([DecodedRecord(offset, 0, None, None) for offset in offsets])


def rebuilt(payload: bytes, *, count: int = 1, last_delta: int = 0, base_offset: int = 0) -> bytes:
    """A batch of codec none around `payload`, its CRC right."""
    batch = bytearray(encode_batch([DecodedRecord(0, 0, None, None)])[:HEADER_LENGTH]) + payload
    struct.pack_into(">qi", batch, 0, base_offset, len(batch) - 12)
    struct.pack_into(">i", batch, 23, last_delta)
    struct.pack_into(">i", batch, 57, count)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[CRC_START:]))
    return bytes(batch)


EMPTY = bytes((12, 0, 0, 0, 1, 1, 0))
"""A record without key, value and headers: 6 bytes follow its length."""

REFUSED = {
    "too many records for the bytes": rebuilt(EMPTY, count=2),
    "a negative count": rebuilt(EMPTY, count=-1),
    "2^31 - 1 records": rebuilt(EMPTY, count=2**31 - 1),
    "bytes after the last record": rebuilt(EMPTY + EMPTY),
    "a record longer than the batch": rebuilt(b"\x0e" + EMPTY[1:]),
    "a record shorter than its fields": rebuilt(b"\x0a" + EMPTY[1:]),
    "a negative record length": rebuilt(b"\x01" + EMPTY[1:]),
    "an endless varint": rebuilt(b"\xff" * 20),
    "a varint of more than 32 bits": rebuilt(b"\x80\x80\x80\x80\x10" + EMPTY),
    "a key of 2 GiB": rebuilt(bytes((20, 0, 0, 0)) + b"\xfe\xff\xff\xff\x0f" + EMPTY[5:]),
    "a key length of -2": rebuilt(bytes((12, 0, 0, 0, 3, 1, 0))),
    "a value past its record": rebuilt(bytes((12, 0, 0, 0, 1, 4, 0))),
    "more headers than bytes": rebuilt(bytes((12, 0, 0, 0, 1, 1, 2))),
    "a negative header count": rebuilt(bytes((12, 0, 0, 0, 1, 1, 1))),
    "a header without a key": rebuilt(bytes((16, 0, 0, 0, 1, 1, 2, 1, 1))),
    "bytes after the headers": rebuilt(bytes((14, 0, 0, 0, 1, 1, 0, 0))),
    "an offset delta past the last": rebuilt(bytes((12, 0, 0, 2, 1, 1, 0))),
    "an offset delta twice": rebuilt(EMPTY + EMPTY, count=2, last_delta=1),
    "a negative offset delta": rebuilt(bytes((12, 0, 0, 1, 1, 1, 0))),
    "offsets past the last one allowed": rebuilt(EMPTY, base_offset=MAX_OFFSET + 1),
    "a negative base offset": rebuilt(EMPTY, base_offset=-1),
    "a negative last offset delta": rebuilt(EMPTY, last_delta=-1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_records_are_refused_by_both_decoders(name: str) -> None:
    batch = REFUSED[name]
    with pytest.raises(InvalidBatchError) as plain:
        decode_records(batch, read_header(batch))
    with pytest.raises(InvalidBatchError) as vectorised:
        decode_batches(batch, [0])
    assert plain.value.message == vectorised.value.message


def test_a_timestamp_past_64_bits_is_refused() -> None:
    batch = bytearray(
        encode_batch([DecodedRecord(0, 2**62, None, None), DecodedRecord(1, 0, None, None)])
    )
    struct.pack_into(">q", batch, 27, -(2**62) - 1)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[CRC_START:]))
    with pytest.raises(InvalidBatchError, match="timestamp"):
        decode_records(batch, read_header(batch))
    with pytest.raises(InvalidBatchError, match="timestamp"):
        decode_batches(batch, [0])


def test_a_header_key_that_is_not_utf8_reads_as_in_java() -> None:
    payload = bytes((20, 0, 0, 0, 1, 1, 2, 4, 0x41, 0xFF, 1))
    batch = rebuilt(payload)
    (record,) = decode_records(batch, read_header(batch))
    assert record.headers == (Header("A\ufffd", None),)
    columns = decode_batches(batch, [0], headers=True)
    assert columns.headers is not None
    assert columns.headers.to_pylist() == [[{"key": "A\ufffd", "value": None}]]


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    batch = rebuilt(b"", count=0, last_delta=9)
    assert decode_records(batch, read_header(batch)) == []
    assert decode_batches(batch, [0]).rows.tolist() == [0]


def test_a_crc_that_does_not_hold_is_refused() -> None:
    batch = bytearray(encode_batch(RECORDS))
    batch[-1] ^= 1
    with pytest.raises(CorruptBatchError, match="40"):
        decode_batches(batch, [0])


def test_columns_that_are_not_wanted_are_not_made() -> None:
    batch = encode_batch(RECORDS)
    columns = decode_batches(batch, [0], key=False, value=False)
    assert columns.key is columns.value is columns.headers is None
    assert columns.offset.to_pylist() == [40, 41, 42, 43]


def test_without_numba_the_answer_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_batch(RECORDS) + encode_batch(RECORDS, control=True)
    positions = [0, len(data) // 2]
    fast = decode_batches(data, positions, headers=True)
    assert scan.COMPILED
    monkeypatch.setattr(scan, "COMPILED", False)
    plain = decode_batches(data, positions, headers=True)
    for name in ("offset", "timestamp", "key", "value", "headers"):
        assert getattr(fast, name).equals(getattr(plain, name))
        assert getattr(fast, name).type == getattr(plain, name).type
    assert fast.rows.tolist() == plain.rows.tolist() == [4, 0]


def test_where_no_cache_can_be_written_the_kernel_is_compiled_in_memory() -> None:
    batch = encode_batch(RECORDS[:3]).hex()
    program = f"""
from bucketlog.log_format import scan
from bucketlog.log_format.arrow import decode_batches
assert scan.COMPILED and scan.find_records.stats.cache_path is None
print(decode_batches(bytes.fromhex({batch!r}), [0]).offset.to_pylist())
"""
    unwritable = {
        "NUMBA_CACHE_DIR": "/dev/null/no-folder",
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **unwritable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[40, 41, 42]\n", done.stderr


def test_headers_that_are_only_counted_cost_no_memory(traced_memory: TracedMemory) -> None:
    many = DecodedRecord(0, 0, b"k", b"v", (Header("", b""),) * 200_000)
    batch = encode_batch([many], codec=Codec.ZSTD)
    header = read_header(batch)
    payload = bytes(records_payload(batch, header))
    with traced_memory.below(50_000):
        (record,) = record_spans(payload, header)
        first = decode_headers(payload, record, headers_max=3)
    assert (record.header_count, first) == (200_000, many.headers[:3])
