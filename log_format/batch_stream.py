"""Whole record batches out of pieces of a partition's bytes, cut anywhere.

Invariant: what comes out are the bytes that went in, batch by batch, in ascending offsets that do
not overlap. Held back is one batch that is not complete, never more than `batch_bytes_max`: a
damaged length cannot make memory grow. CRCs are for whoever opens the batches.
"""

import struct
from collections.abc import Iterator

from bucketlog.log_format.batch import (
    HEADER_LENGTH,
    LENGTH_OVERHEAD,
    BatchHeader,
    CorruptBatchError,
    crc_holds,
    read_header,
)
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import MAX_OFFSET, Buffer

BATCH_BYTES_MAX = 128 * 1024 * 1024
"""Default bound of one stored batch; brokers take far smaller ones (`max.message.bytes`)."""

_LENGTH = struct.Struct(">qi")


class BatchStream:
    """`feed` it pieces in order, then `finish`. Raises `CorruptBatchError`, which names the offset
    where the stream can no longer be trusted."""

    def __init__(self, *, batch_bytes_max: int = BATCH_BYTES_MAX) -> None:
        self.next_offset = 0
        """Below it are all batches that came out."""
        self._batch_bytes_max = batch_bytes_max
        self._rest = bytearray()

    def feed(self, piece: Buffer) -> Iterator[tuple[memoryview, BatchHeader]]:
        """The batches that are complete; they borrow from `piece`. Read them to the end."""
        data = memoryview(piece).cast("B")
        while self._rest:
            size = self._size(self._rest, 0)
            taken = data[: size - len(self._rest)]
            self._rest += taken
            data = data[len(taken) :]
            if len(self._rest) < size:
                return
            if size > LENGTH_OVERHEAD:
                whole = memoryview(self._rest)
                self._rest = bytearray()
                yield self._batch(whole)
        at = 0
        while len(data) - at >= LENGTH_OVERHEAD:
            size = self._size(data, at)
            if len(data) - at < size:
                break
            yield self._batch(data[at : at + size])
            at += size
        self._rest += data[at:]

    def finish(self) -> None:
        if self._rest:
            raise self._corrupt(f"{len(self._rest)} bytes at the end are not a whole batch")

    def _size(self, data: Buffer, at: int) -> int:
        """Of the batch at `at`; as long as that cannot be known, of what says it."""
        if len(data) - at < LENGTH_OVERHEAD:
            return LENGTH_OVERHEAD
        _, length = _LENGTH.unpack_from(data, at)
        size = int(length) + LENGTH_OVERHEAD
        if not HEADER_LENGTH <= size <= self._batch_bytes_max:
            raise self._corrupt(
                f"a batch of {size} bytes, not {HEADER_LENGTH} to {self._batch_bytes_max}"
            )
        return size

    def _batch(self, batch: memoryview) -> tuple[memoryview, BatchHeader]:
        try:
            header = read_header(batch)
        except InvalidDataError as error:
            raise self._corrupt(error.message) from error
        if header.base_offset < self.next_offset:
            raise self._corrupt(f"a batch begins at offset {header.base_offset}")
        if not 0 <= header.last_offset_delta <= MAX_OFFSET - header.base_offset:
            raise self._corrupt(
                f"the batch at offset {header.base_offset} spans {header.last_offset_delta}"
            )
        self.next_offset = header.next_offset
        return batch, header

    def _corrupt(self, reason: str) -> CorruptBatchError:
        return CorruptBatchError(f"batches from offset {self.next_offset} on are damaged: {reason}")


def check_crc(batch: Buffer, header: BatchHeader) -> None:
    """Raises `CorruptBatchError`."""
    if not crc_holds(batch, header):
        raise CorruptBatchError(
            f"the CRC of the batch at offset {header.base_offset} does not hold"
        )
