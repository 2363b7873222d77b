"""Records round-trip through every codec, and both decoders answer alike, on good and bad bytes."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.arrow import RecordColumns, decode_batches
from bucketlog.log_format.batch import (
    CRC_START,
    HEADER_LENGTH,
    Codec,
    crc_holds,
    read_header,
)
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.records import (
    DecodedRecord,
    Header,
    decode_headers,
    decode_records,
    encode_batch,
    record_spans,
    records_payload,
)

payloads = st.none() | st.binary(max_size=300)
header_lists = st.lists(
    st.builds(Header, key=st.text(max_size=10), value=st.none() | st.binary(max_size=20)),
    max_size=4,
).map(tuple)
timestamps = st.integers(-1, 2**45)


@st.composite
def record_lists(draw: st.DrawFn, *, gaps: bool = True) -> list[DecodedRecord]:
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 12))):
        records.append(
            DecodedRecord(
                offset, draw(timestamps), draw(payloads), draw(payloads), draw(header_lists)
            )
        )
        offset += draw(st.integers(1, 1000)) if gaps else 1
    return records


codecs = st.sampled_from(list(Codec))


def rows(columns: RecordColumns) -> list[DecodedRecord]:
    assert columns.key is not None
    assert columns.value is not None
    assert columns.headers is not None
    return [
        DecodedRecord(
            offset, timestamp, key, value, tuple(Header(h["key"], h["value"]) for h in headers)
        )
        for offset, timestamp, key, value, headers in zip(
            columns.offset.to_pylist(),
            columns.timestamp.to_pylist(),
            columns.key.to_pylist(),
            columns.value.to_pylist(),
            columns.headers.to_pylist(),
            strict=True,
        )
    ]


@given(record_lists(), codecs)
def test_decoding_inverts_encoding(records: list[DecodedRecord], codec: Codec) -> None:
    batch = encode_batch(records, codec=codec)
    header = read_header(batch)
    assert crc_holds(batch, header)
    assert header.size_bytes == len(batch)
    assert header.codec == codec
    assert header.next_offset == records[-1].offset + 1
    assert decode_records(batch, header) == records


@given(st.lists(st.tuples(record_lists(), codecs, st.booleans(), st.booleans()), max_size=5))
def test_the_vectorised_decoder_equals_the_plain_one(
    inputs: list[tuple[list[DecodedRecord], Codec, bool, bool]],
) -> None:
    data = b"leading bytes"
    positions = []
    expected: list[DecodedRecord] = []
    counts = []
    for records, codec, append_time, control in inputs:
        batch = encode_batch(
            records, codec=codec, append_time_ms=1234 if append_time else None, control=control
        )
        positions.append(len(data))
        data += batch
        mine = [] if control else decode_records(batch, read_header(batch))
        expected += mine
        counts.append(len(mine))
    columns = decode_batches(data, positions, headers=True)
    assert rows(columns) == expected
    assert columns.rows.tolist() == counts


def by_spans(batch: bytes) -> list[DecodedRecord]:
    header = read_header(batch)
    payload = bytes(records_payload(batch, header))
    found = []
    for record in record_spans(payload, header):
        headers = decode_headers(payload, record, headers_max=record.header_count)
        assert len(headers) == record.header_count
        key, value = (span and payload[slice(*span)] for span in (record.key, record.value))
        found.append(DecodedRecord(record.offset, record.timestamp, key, value, headers))
    return found


@given(record_lists(), codecs, st.booleans())
def test_spans_are_where_the_records_are(
    records: list[DecodedRecord], codec: Codec, append_time: bool
) -> None:
    batch = encode_batch(records, codec=codec, append_time_ms=7 if append_time else None)
    assert by_spans(batch) == decode_records(batch, read_header(batch))


def with_records(batch: bytes, payload: Buffer) -> bytes:
    """`batch` with other record bytes, and lengths and CRC that fit them."""
    changed = bytearray(batch[:HEADER_LENGTH]) + payload
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[CRC_START:]))
    return bytes(changed)


@st.composite
def damaged_batches(draw: st.DrawFn) -> bytes:
    batch = encode_batch(draw(record_lists()))
    payload = bytearray(batch[HEADER_LENGTH:])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(payload) - 1))
        match draw(st.integers(0, 2)):
            case 0:
                payload[at] = draw(st.integers(0, 255))
            case 1:
                payload[at:at] = draw(st.binary(min_size=1, max_size=6))
            case _ if len(payload) > 1:
                del payload[at]
    return with_records(batch, payload)


@given(damaged_batches())
def test_both_decoders_refuse_the_same_bytes_in_the_same_words(batch: bytes) -> None:
    refusal = ""
    try:
        expected = decode_records(batch, read_header(batch))
    except InvalidDataError as error:
        refusal = error.message
    if refusal:
        with pytest.raises(InvalidDataError) as caught:
            decode_batches(batch, [0], headers=True)
        assert caught.value.message == refusal
    else:
        assert rows(decode_batches(batch, [0], headers=True)) == expected


@given(damaged_batches())
def test_spans_refuse_what_the_decoder_refuses(batch: bytes) -> None:
    try:
        expected = decode_records(batch, read_header(batch))
    except InvalidDataError:
        with pytest.raises(InvalidDataError):
            by_spans(batch)
    else:
        assert by_spans(batch) == expected


@given(record_lists(), codecs, st.data())
def test_damaged_compressed_bytes_raise_or_decode_alike(
    records: list[DecodedRecord], codec: Codec, data: st.DataObject
) -> None:
    batch = encode_batch(records, codec=codec)
    payload = bytearray(batch[HEADER_LENGTH:])
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    batch = with_records(batch, payload[: data.draw(st.integers(0, len(payload)))])
    try:
        expected = decode_records(batch, read_header(batch), max_decompressed_bytes=1 << 20)
    except InvalidDataError:
        with pytest.raises(InvalidDataError):
            decode_batches(batch, [0], max_decompressed_bytes=1 << 20)
    else:
        assert rows(decode_batches(batch, [0], headers=True)) == expected
