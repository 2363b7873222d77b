"""Batches for a Fetch, without their seals: the work of a thread.

Invariant: no thread waits here for a key service. If a data key is not in memory, the key is named,
and only the batches before it are returned.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bucketlog.log_format.batch_stream import BatchStream
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import Buffer, TopicIdPartition
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.tiered_storage.encryption.opened_keys import TopicSeals


class OpenedPart(NamedTuple):
    """The first batches of a part. `sealed_bytes` are those of sealed batches among them. `missing`
    is the data key of the next batch, if it must be unwrapped first."""

    batches: bytes
    sealed_bytes: int
    missing: WrappedKey | None = None


def opened_part(
    seals: TopicSeals, partition: TopicIdPartition, parts: Sequence[Buffer]
) -> OpenedPart:
    """Open whole batches, which may be cut anywhere into `parts`. Raises `InvalidDataError` if the
    first one does not open: later ones end the result."""
    found: list[Buffer] = []
    sealed_bytes, stream = 0, BatchStream()
    try:
        for part in parts:
            for batch, header in stream.feed(part):
                if not header.is_sealed:
                    found.append(batch)
                    continue
                opened = seals.opened_now(partition, batch, header)
                if isinstance(opened, WrappedKey):
                    return OpenedPart(b"".join(found), sealed_bytes, opened)
                sealed_bytes += header.size_bytes
                found += (opened.head, opened.payload)
    except InvalidDataError:
        if not found:
            raise
    return OpenedPart(b"".join(found), sealed_bytes)
