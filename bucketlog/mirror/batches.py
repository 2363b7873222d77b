"""Translates batches of a source into the batches that a mirror writes. Pure.

Invariants: the translated batches cover all offsets from the position to their end, without a gap.
They contain every record that a `read_committed` consumer of the source sees, at its offset.
Offsets without such a record are in empty batches.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from crc32c import crc32c

from bucketlog.log_format.batch import (
    CRC_START,
    DELETE_HORIZON,
    LENGTH_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    crc_holds,
    read_header,
    stamp_base_offset,
)
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import NO_TIMESTAMP
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.rewriting import empty_batch

SPAN_MAX = 2**31
"""The most offsets of a batch, because the last offset delta has 31 bits."""
_LENGTH = struct.Struct(">qi")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
_ATTRIBUTES_AT, _PRODUCER_AT, _CRC_AT = 21, 43, 17
_ABORT_MARKER = 0
_MARKER_KEY = struct.Struct(">hh")
_NO_PRODUCER = -1, -1, -1


@dataclass(frozen=True, slots=True)
class BatchesToWrite:
    """Batches to write in this order, from the position up to offset `end`."""

    batches: Sequence[bytes | bytearray]
    end: int
    records: int


def copied(
    data: memoryview, position: int, aborted: Iterable[tuple[int, int]], where: str
) -> BatchesToWrite:
    """Translate the batches of a Fetch response from `position` on.

    `data` may end within a batch, which is left out. `aborted` has the producer id and first offset
    of each aborted transaction. `where` names the partition in errors. Raises `InvalidDataError`.
    """
    found: list[bytes | bytearray] = []
    records, end, gap_from = 0, position, position
    filter_ = _Aborted(aborted)
    for batch in _whole_batches(data):
        header = read_header(batch)
        if header.next_offset <= position:
            continue
        if not crc_holds(batch, header):
            raise InvalidDataError(
                f"{where}: the CRC of the batch at {header.base_offset} is wrong"
            )
        if header.base_offset < end:
            raise InvalidDataError(
                f"{where}: the batch at {header.base_offset} begins before offset {end}, up to "
                "which the records are copied: the batches of the source have changed",
                remedy="delete the topic in the target, and mirror the topic again",
            )
        end = header.next_offset
        if filter_.leaves_out(header, batch) or not header.record_count:
            continue
        found += gap(gap_from, header.base_offset)
        found.append(_plain(batch, header))
        records += header.record_count
        gap_from = end
    found += gap(gap_from, end)
    return BatchesToWrite(found, end, records)


def gap(start: int, end: int) -> list[bytes]:
    """Empty batches for the offsets from `start` up to, but not including, `end`."""
    batches = []
    while start < end:
        span = min(end - start, SPAN_MAX)
        header = BatchHeader(
            *(start, 0, 0, MAGIC, 0, 0, span - 1, NO_TIMESTAMP, NO_TIMESTAMP, *_NO_PRODUCER, 0)
        )
        batches.append(empty_batch(header))
        start += span
    return batches


def _whole_batches(data: memoryview) -> Iterator[memoryview]:
    at = 0
    while at + LENGTH_OVERHEAD <= len(data):
        _, length = _LENGTH.unpack_from(data, at)
        end = at + LENGTH_OVERHEAD + length
        if length < 0 or end > len(data):
            return
        yield data[at:end]
        at = end


def _plain(batch: memoryview, header: BatchHeader) -> bytearray:
    """The batch without producer id, transactional bit and delete horizon. The records stay as
    they are: timestamp deltas refer to the base timestamp, also if this is the delete horizon
    (KIP-534)."""
    copy = bytearray(batch)
    view = memoryview(copy)
    stamp_base_offset(view, header.base_offset)
    attributes = header.attributes & ~(TRANSACTIONAL | DELETE_HORIZON)
    if attributes != header.attributes or header.producer_id >= 0:
        _ATTRIBUTES.pack_into(copy, _ATTRIBUTES_AT, attributes)
        _PRODUCER.pack_into(copy, _PRODUCER_AT, *_NO_PRODUCER)
        struct.pack_into(">I", copy, _CRC_AT, crc32c(view[CRC_START:]))
    return copy


class _Aborted:
    """Finds the batches that `read_committed` consumers skip (KIP-98).

    Source: Kafka's CompletedFetch.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._coming = sorted(aborted, key=lambda each: each[1])
        self._producers: set[int] = set()

    def leaves_out(self, header: BatchHeader, batch: memoryview) -> bool:
        while self._coming and self._coming[0][1] <= header.next_offset - 1:
            self._producers.add(self._coming.pop(0)[0])
        if header.is_control:
            if _is_abort_marker(batch):
                self._producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._producers


def _is_abort_marker(batch: memoryview) -> bool:
    """Whether a control batch aborts a transaction: the key of its record has version and type."""
    records = decode_records(batch, read_header(batch))
    key = records[0].key if records else None
    return key is not None and len(key) >= 4 and _MARKER_KEY.unpack_from(key)[1] == _ABORT_MARKER
