"""Transaction markers: the bytes that Kafka writes, and batches that are not markers."""

import pytest
from aiokafka.record.control_record import ControlRecord
from aiokafka.record.default_records import DefaultRecordBatch
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

from bucketlog.log_format.batch import InvalidBatchError, check_produced, read_header
from bucketlog.log_format.control_batch import MARKER_BYTES, Marker, decode_marker, encode_marker
from bucketlog.log_format.records import DecodedRecord, encode_batch

PRODUCER_ID = (3 << 40) + 5
START_MS = 1_700_000_000_000
# MemoryRecords.withEndTransactionMarker of kafka-clients 4.3.1: base offset 1000, START_MS, leader
# epoch 0, PRODUCER_ID, producer epoch 7, coordinator epoch 9.
OF_KAFKA = {
    False: "00000000000003e8000000420000000002f89b8fe50030000000000000018bcfe568000000018bcfe568"
    "0000000300000000050007ffffffff000000012000000008000000000c00000000000900",
    True: "00000000000003e80000004200000000020ca559ad0030000000000000018bcfe568000000018bcfe568"
    "0000000300000000050007ffffffff000000012000000008000000010c00000000000900",
}


def marker(*, committed: bool) -> bytes:
    return encode_marker(
        Marker(committed, 9),
        base_offset=1000,
        producer_id=PRODUCER_ID,
        producer_epoch=7,
        timestamp_ms=START_MS,
    )


@pytest.mark.parametrize("committed", [False, True])
def test_a_marker_has_the_bytes_of_kafkas(committed: bool) -> None:
    data = marker(committed=committed)
    assert data == bytes.fromhex(OF_KAFKA[committed])
    assert len(data) == MARKER_BYTES
    header = read_header(data)
    assert (header.attributes, header.base_sequence, header.record_count) == (0x30, -1, 1)
    assert decode_marker(data) == Marker(committed, 9)


@pytest.mark.parametrize("committed", [False, True])
def test_other_parsers_read_a_marker(committed: bool) -> None:
    batch = DefaultRecordBatch(marker(committed=committed))
    assert (batch.is_control_batch, batch.is_transactional) == (True, True)
    assert (batch.producer_id, batch.next_offset) == (PRODUCER_ID, 1001)
    parsed = ControlRecord.parse(next(batch).key)
    assert (parsed.version, parsed.type_) == (0, int(committed))
    other = KafkaPythonBatch(marker(committed=committed))
    assert (other.is_control_batch, other.validate_crc()) == (True, True)


def test_clients_may_not_produce_a_marker() -> None:
    with pytest.raises(InvalidBatchError, match="control batches"):
        check_produced(read_header(marker(committed=True)), max_records=10)


def control(key: bytes | None, value: bytes | None, records: int = 1, **flags: bool) -> bytes:
    rows = [DecodedRecord(at, START_MS, key, value) for at in range(records)]
    return encode_batch(rows, producer_id=1, **{"control": True, "transactional": True, **flags})


KEY, VALUE = b"\0\0\0\1", b"\0\0\0\0\0\7"
NO_MARKERS = {
    "not of a transaction": control(KEY, VALUE, transactional=False),
    "no control batch": control(KEY, VALUE, control=False),
    "two records": control(KEY, VALUE, records=2),
    "no key": control(None, VALUE),
    "no value": control(KEY, None),
    "a short key": control(KEY[:3], VALUE),
    "a short value": control(KEY, VALUE[:5]),
    "another kind": control(b"\0\0\0\2", VALUE),
    "an impossible version": control(b"\xff\xff\0\1", VALUE),
    "too large": control(KEY + bytes(200), VALUE),
}


@pytest.mark.parametrize("case", NO_MARKERS)
def test_what_is_no_marker_is_refused(case: str) -> None:
    with pytest.raises(InvalidBatchError, match="the control batch at offset 0"):
        decode_marker(NO_MARKERS[case])


def test_later_versions_are_read_by_the_fields_of_version_0() -> None:
    """As in Kafka: ControlRecordType.parse, EndTransactionMarker.deserializeValue."""
    later = control(b"\0\1\0\1more", b"\0\1\0\0\0\7more")
    assert decode_marker(later) == Marker(True, 7)
