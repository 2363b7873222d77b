"""Transaction markers: the control batches that end a transaction in a partition. Pure.

A marker is a record batch of one record, with the attributes transactional and control. The key of
the record is an int16 version and an int16 kind. The value is an int16 version and the int32 epoch
of the coordinator. Source: KIP-98; Kafka's ControlRecordType and EndTransactionMarker.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from bucketlog.log_format.batch import CONTROL, TRANSACTIONAL, InvalidBatchError, read_header
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.records import DecodedRecord, decode_records, encode_batch

MARKER_BYTES = 78
MARKER_ATTRIBUTES = TRANSACTIONAL | CONTROL
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0
_NO_SEQUENCE = -1


class MarkerKind(IntEnum):
    """Logs of bucketlog never have control records of other kinds."""

    ABORT = 0
    COMMIT = 1


class Marker(NamedTuple):
    """How a transaction ended; `coordinator_epoch` is the sequencer's epoch."""

    committed: bool
    coordinator_epoch: int


def encode_marker(
    marker: Marker, *, base_offset: int, producer_id: int, producer_epoch: int, timestamp_ms: int
) -> bytes:
    """The marker's batch, of `MARKER_BYTES` bytes."""
    kind = MarkerKind.COMMIT if marker.committed else MarkerKind.ABORT
    record = DecodedRecord(
        base_offset,
        timestamp_ms,
        _KEY.pack(_VERSION, kind),
        _VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    return encode_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=_NO_SEQUENCE,
        transactional=True,
        control=True,
    )


def decode_marker(batch: Buffer) -> Marker:
    """`batch` is one stored batch whose CRC holds. Later versions of key and value are read by the
    fields of version 0, as in Kafka. Raises `InvalidBatchError` if the batch is not a marker."""
    header = read_header(batch)
    where = f"the control batch at offset {header.base_offset}"
    if header.attributes != MARKER_ATTRIBUTES or header.record_count != 1:
        raise InvalidBatchError(f"{where} is not a transaction marker")
    if header.size_bytes > 2 * MARKER_BYTES:
        raise InvalidBatchError(f"{where} has {header.size_bytes} bytes, too many for a marker")
    (record,) = decode_records(batch, header)
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size or len(value) < _VALUE.size:
        raise InvalidBatchError(f"{where} has a key or a value that is cut short")
    version, kind = _KEY.unpack_from(key)
    value_version, coordinator_epoch = _VALUE.unpack_from(value)
    if min(version, value_version) < _VERSION or kind not in (MarkerKind.ABORT, MarkerKind.COMMIT):
        raise InvalidBatchError(f"{where} has an unknown version or kind: {version}, {kind}")
    return Marker(kind == MarkerKind.COMMIT, coordinator_epoch)
