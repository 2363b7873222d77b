"""Reading and writing of a checkpoint's state: structs, text and committed offsets. Pure.

Every count and length is compared with the available bytes before memory is allocated.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import Buffer, TopicId, TopicIdPartition
from bucketlog.metadata.committed_offset import CommittedOffset, Offsets

COUNT = struct.Struct(">I")
OFFSET = struct.Struct(">IIqiqBq")


def binary(data: bytes) -> bytes:
    return COUNT.pack(len(data)) + data


def text_bytes(text: str) -> bytes:
    return binary(text.encode())


def offset_rows(
    offsets: Mapping[TopicIdPartition, CommittedOffset], rows: Mapping[TopicId, int]
) -> list[bytes]:
    """Encode committed offsets. `rows` are the numbers of the topics in the state."""
    pieces = [COUNT.pack(len(offsets))]
    for partition, row in offsets.items():
        pieces.append(
            OFFSET.pack(
                rows[partition.topic_id],
                partition.partition,
                row.offset,
                row.leader_epoch,
                row.committed_ms,
                row.expires_ms is not None,
                row.expires_ms or 0,
            )
        )
        pieces.append(text_bytes(row.metadata))
    return pieces


class StateReader:
    """Reads values from the bytes, one after another. Raises `InvalidDataError`."""

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, row: struct.Struct) -> tuple[Any, ...]:
        self.expect(1, row)
        self._at += row.size
        return row.unpack_from(self._data, self._at - row.size)

    def binary(self) -> bytes:
        (length,) = self.take(COUNT)
        if length > len(self._data) - self._at:
            raise self.wrong("it is cut short")
        self._at += length
        return bytes(self._data[self._at - length : self._at])

    def text(self) -> str:
        try:
            return self.binary().decode()
        except UnicodeDecodeError:
            raise self.wrong("a name is not UTF-8") from None

    def expect(self, count: int, row: struct.Struct) -> None:
        """Check that enough bytes for `count` rows are left."""
        if count * row.size > len(self._data) - self._at:
            raise self.wrong("it is cut short")

    def end(self) -> None:
        if self._at != len(self._data):
            raise self.wrong("there are bytes after its end")

    def wrong(self, reason: str) -> InvalidDataError:
        return InvalidDataError(
            f"the state of a checkpoint cannot be decoded at byte {self._at}: {reason}"
        )

    def offsets(self, partition_at: Callable[[int, int], TopicIdPartition]) -> Offsets:
        """The offsets of one group. `partition_at` gets the row of the topic and the partition."""
        (count,) = self.take(COUNT)
        self.expect(count, OFFSET)
        offsets: Offsets = {}
        for _ in range(count):
            row, number, offset, leader_epoch, at_ms, expires, expires_ms = self.take(OFFSET)
            offsets[partition_at(row, number)] = CommittedOffset(
                offset, leader_epoch, self.text(), at_ms, expires_ms if expires else None
            )
        if len(offsets) != count:
            raise self.wrong("a group has two offsets of one partition")
        return offsets
