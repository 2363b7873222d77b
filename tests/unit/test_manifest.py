"""Manifests, byte by byte: whatever is damaged or lies is found before it is believed."""

import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import compress
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import Ticket, TierRow, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.manifest import (
    HEADER_BYTES,
    JSON_BYTES_MAX,
    decode_manifest,
    encode_manifest,
)
from tests.models.partition_batches import NAME, PARTITION

ROWS = [
    TierRow(5, 90, NAME, False, 1_300, 1_200, 77),
    TierRow(90, 91, NAME, False, 1_000, 900, -1),
    TierRow(95, 2**53, NAME, False, 2**40, 2**39, 12),
]
MANIFEST = encode_manifest(PARTITION, ROWS, NAME)
THERE, DATA = MANIFEST.there, MANIFEST.data


def row_at(start: int, length: int, number: int) -> TierRow:
    name = keys.tier_name(Ticket(number % 7, number), f"{number:016x}")
    return TierRow(start, start + length, name, False, number + 200, number + 100, number - 1)


@given(
    gaps=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 10**6), st.integers(0, 10**12)),
        min_size=1,
        max_size=40,
    )
)
def test_there_and_back(gaps: list[tuple[int, int, int]]) -> None:
    rows: list[TierRow] = []
    for gap, length, number in gaps:
        rows.append(row_at((rows[-1].end if rows else 0) + gap, length, number))
    manifest = encode_manifest(PARTITION, rows, NAME)
    assert decode_manifest(manifest.there, manifest.data) == rows
    row = manifest.row
    assert (row.start, row.end, row.segments, row.manifest) == (
        rows[0].start,
        rows[-1].end,
        len(rows),
        True,
    )
    assert row.batch_bytes == sum(each.batch_bytes for each in rows)
    assert row.max_timestamp_ms == max(each.max_timestamp_ms for each in rows)
    assert row.size_bytes == len(manifest.data)


def test_a_full_manifest_is_small() -> None:
    rows = [row_at(at * 10**6, 10**6, 10**12 + at) for at in range(1_024)]
    manifest = encode_manifest(PARTITION, rows, NAME)
    assert len(manifest.data) < 64 * 1024
    assert decode_manifest(manifest.there, manifest.data) == rows


def test_every_flipped_byte_is_found() -> None:
    for at in range(len(DATA)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(DATA)
            damaged[at] ^= mask
            with pytest.raises(CorruptObjectError, match="is damaged") as caught:
                decode_manifest(THERE, damaged)
            assert 0 <= caught.value.position <= at


def test_every_truncation_is_found() -> None:
    for length in range(len(DATA)):
        for cut in (DATA[:length], DATA[length + 1 :], DATA[:length] + b"\0" + DATA[length:]):
            with pytest.raises(CorruptObjectError):
                decode_manifest(THERE, cut)


def sealed(
    text: bytes, *, length: int | None = None, version: int = 1, frame: bytes | None = None
) -> bytes:
    stored = compress(Codec.ZSTD, text) if frame is None else frame
    length = len(text) if length is None else length
    header = struct.pack(">8sHHII", b"bktlogmf", version, 0, length, crc32c(stored))
    return header + struct.pack(">I", crc32c(header)) + stored


def content(change: Callable[[Any], Any] | None = None) -> bytes:
    found = {"topic_id": PARTITION.topic_id.hex(), "partition": 3, "rows": [[*r] for r in ROWS]}
    if change is not None:
        change(found)
    return json.dumps(found).encode()


def put(row: int, field: str, value: object) -> Callable[[Any], Any]:
    return lambda found: found["rows"][row].__setitem__(TierRow._fields.index(field), value)


LIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another topic": (lambda c: c.update(topic_id="00" * 16), "another partition's"),
    "another partition": (lambda c: c.update(partition=4), "another partition's"),
    "no partition": (lambda c: c.pop("partition"), "not a manifest's"),
    "rows that are none": (lambda c: c.update(rows=7), "not a manifest's"),
    "no rows": (lambda c: c.update(rows=[]), "does not begin at 5"),
    "a row that is none": (lambda c: c["rows"].append(7), "row 3 is wrong: its form"),
    "a row too short": (lambda c: c["rows"][1].pop(), "row 1 is wrong: its form"),
    "another start": (put(0, "start", 6), "does not begin at 5"),
    "a start below": (put(0, "start", 4), "row 0 is wrong: offsets"),
    "an overlap": (put(1, "start", 89), "row 1 is wrong: offsets"),
    "nothing in it": (put(1, "end", 90), "row 1 is wrong: offsets"),
    "beyond all offsets": (put(2, "end", 2**53 + 1), "row 2 is wrong: offsets"),
    "a number as text": (put(1, "end", "91"), "row 1 is wrong: its form"),
    "a fraction": (put(1, "end", 91.0), "row 1 is wrong: its form"),
    "true for one": (put(1, "segments", True), "row 1 is wrong: its form"),
    "a manifest": (put(1, "manifest", True), "not one partition segment's"),
    "several segments": (put(1, "segments", 2), "not one partition segment's"),
    "a name of another kind": (put(1, "name", "x"), "not a name of a tier's object"),
    "a name that leaves its folder": (put(1, "name", "../" + NAME), "row 1 is wrong"),
    "more batches than bytes": (put(1, "batch_bytes", 1_000), "out of bounds"),
    "no batches": (put(1, "batch_bytes", 0), "out of bounds"),
    "a size beyond 63 bits": (put(1, "size_bytes", 2**63), "out of bounds"),
    "a timestamp beyond 63 bits": (put(1, "max_timestamp_ms", 2**63), "out of bounds"),
    "a timestamp before all": (put(1, "max_timestamp_ms", -2), "out of bounds"),
}


@pytest.mark.parametrize("lie", LIES)
def test_manifests_that_lie(lie: str) -> None:
    change, message = LIES[lie]
    assert decode_manifest(THERE, sealed(content())) == ROWS
    with pytest.raises(CorruptObjectError, match=message):
        decode_manifest(THERE, sealed(content(change)))


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"7", b'{"rows"', b"\xff", b"[" * 90_000, b"9" * 5_000]
)
def test_what_is_no_json_of_a_manifest(text: bytes) -> None:
    with pytest.raises(CorruptObjectError):
        decode_manifest(THERE, sealed(text))


def test_nothing_is_unpacked_beyond_the_bound() -> None:
    bomb = sealed(b"[" + b" " * (JSON_BYTES_MAX + 1) + b"]")
    assert len(bomb) < 10_000
    with pytest.raises(CorruptObjectError, match="too many for a manifest"):
        decode_manifest(THERE, bomb)
    with pytest.raises(CorruptObjectError, match="cannot be read"):
        decode_manifest(THERE, sealed(content(), length=7))
    with pytest.raises(CorruptObjectError, match=r"cannot be read|bytes, not"):
        decode_manifest(THERE, sealed(b" " * JSON_BYTES_MAX, length=100))
    with pytest.raises(CorruptObjectError, match="bytes, not"):
        decode_manifest(THERE, sealed(content(), length=len(content()) + 1))


def test_a_version_that_is_not_known() -> None:
    with pytest.raises(InvalidDataError, match="upgrade this one"):
        decode_manifest(THERE, sealed(content(), version=2))


def test_a_manifest_is_believed_under_its_own_key_only() -> None:
    for there in (
        THERE._replace(start=4),
        THERE._replace(start=6),
        THERE._replace(partition=TopicIdPartition(PARTITION.topic_id, 2)),
    ):
        with pytest.raises(CorruptObjectError):
            decode_manifest(there, DATA)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        ROWS[::-1],
        [ROWS[0], ROWS[0]],
        [ROWS[0]._replace(manifest=True)],
        [ROWS[0]._replace(name="x")],
    ],
)
def test_no_manifest_is_written_that_could_not_be_read(rows: list[TierRow]) -> None:
    with pytest.raises(InvalidDataError):
        encode_manifest(PARTITION, rows, NAME)


def test_too_many_rows_are_refused() -> None:
    rows = [row_at(at, 1, 10**12) for at in range(40_000)]
    with pytest.raises(InvalidDataError, match="list fewer"):
        encode_manifest(PARTITION, rows, NAME)


def test_the_header_is_what_the_format_says() -> None:
    assert HEADER_BYTES == 24
    assert DATA[:8] == b"bktlogmf"
