"""The interface to a partition's encryption, for code that reads or rewrites its batches.

A protocol, so that reading an unencrypted log does not import a cipher.
"""

from typing import NamedTuple, Protocol

from bucketlog.log_format.batch import BatchHeader
from bucketlog.log_format.model import Buffer


class OpenedBatch(NamedTuple):
    """A batch without its seal, in two parts. `head` has the bytes of the header; `header` lacks
    their CRC."""

    header: BatchHeader
    head: bytes
    payload: bytes

    def joined(self) -> bytes:
        return self.head + self.payload


class PartitionSeals(Protocol):
    """May block for keys. Raises `KeyRefusedError`, `KeyUnavailableError`, `BrokenSealError`."""

    def open(self, batch: Buffer, header: BatchHeader) -> OpenedBatch:
        """Open a sealed batch."""
        ...

    def seal_as(self, sealed: Buffer, header: BatchHeader, batch: bytes) -> bytes:
        """Seal `batch` with the data key of the batch `sealed`, whose header is `header`: who
        deletes the key erases the rewritten batch, too."""
        ...
