"""Compiled and plain key compaction answer alike, on bytes that hold and on bytes that do not."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format import key_scan
from bucketlog.log_format.batch import read_header
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.records import DecodedRecord, decode_payload, encode_batch
from bucketlog.log_format.rewriting import copy_records
from bucketlog.tiered_storage.offset_map import ENTRY_BYTES, OffsetMap, offset_map, open_batch
from tests.property.test_decoders_agree import codecs, damaged_batches, record_lists

SECRET = bytes(range(16))
int64s = st.integers(-(2**63), 2**63 - 1)
shifts = int64s | st.integers(-(2**40), 2**40) | st.integers(-130, 130)


@given(record_lists(), shifts, st.data())
def test_records_are_copied_alike(
    records: list[DecodedRecord], shift: int, data: st.DataObject
) -> None:
    batch = encode_batch(records)
    header = read_header(batch)
    raw = batch[61:]
    keep = [data.draw(st.booleans()) for _ in records]
    out = np.empty(len(raw) + key_scan.SPARE_BYTES * len(records), np.uint8)
    source = np.frombuffer(b"?" + raw, np.uint8)
    size = key_scan.copy_records(source, 1, 1 + len(raw), np.array(keep), shift, out)
    plain = copy_records(raw, keep, shift)
    assert (out[:size].tobytes() if size >= 0 else None) == plain
    if plain is not None and 0 <= header.base_timestamp - shift < 2**63:
        kept = [record for record, stays in zip(records, keep, strict=True) if stays]
        moved = header._replace(
            record_count=len(kept), base_timestamp=header.base_timestamp - shift
        )
        assert decode_payload(plain, moved) == kept


@given(damaged_batches())
def test_bytes_that_do_not_hold_are_refused_in_the_same_words(batch: bytes) -> None:
    header = read_header(batch)
    answers = []
    for compiled in (False, True):
        offsets = offset_map(100 * ENTRY_BYTES, SECRET, compiled=compiled)
        try:
            opened = open_batch(memoryview(batch), header)
            added = offsets.add([opened], 0, split_first=False)
            judged = offsets.judge([opened], header.next_offset, [False])
            answers.append(f"{added} {judged.verdicts} {judged.records(0, 1)!r}")
        except InvalidDataError as error:
            answers.append(error.message)
    assert answers[0] == answers[1]


@given(st.lists(st.tuples(record_lists(), codecs), min_size=1, max_size=5), st.integers(2, 30))
def test_maps_agree_on_records_of_every_kind(
    inputs: list[tuple[list[DecodedRecord], int]], slots: int
) -> None:
    base = 0
    batches = []
    for records, codec in inputs:
        moved = [r._replace(offset=r.offset - records[0].offset + base) for r in records]
        batch = encode_batch(moved, codec=codec)
        batches.append(open_batch(memoryview(batch), read_header(batch)))
        base = moved[-1].offset + 1
    maps: list[OffsetMap] = [
        offset_map(slots * ENTRY_BYTES, SECRET, compiled=compiled) for compiled in (False, True)
    ]
    assert len({offsets.add(batches, 3, split_first=True) for offsets in maps}) == 1
    assert len({(offsets.entries, offsets.capacity) for offsets in maps}) == 1
    past = [index % 2 == 0 for index in range(len(batches))]
    plain, compiled = (offsets.judge(batches, base - 2, past) for offsets in maps)
    assert list(plain.verdicts) == list(compiled.verdicts)
    for index in range(len(batches)):
        for shift in (0, -1, 2**63 - 1):
            assert plain.records(index, shift) == compiled.records(index, shift)
