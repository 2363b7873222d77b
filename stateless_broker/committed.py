"""The committed segments of a bucket, as a broker reads them when it starts or lost its place.

Invariant: chains are listed anew for each call; a footer is believed only under its own key.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from bucketlog.errors import CorruptObjectError
from bucketlog.model import SegmentIndex, WriterId
from metadata.sequencer.requests import VisibleSegment
from tiered_storage import keys
from tiered_storage.bucket import Bucket, ObjectInfo, Suffix
from tiered_storage.chains import Chain, read_chains
from tiered_storage.segment import decode_footer

FOOTER_GUESS_BYTES = 16 * 1024


class CommittedLog:
    """`footer_reads_in_flight` bounds the requests of all calls together."""

    def __init__(self, bucket: Bucket, *, footer_reads_in_flight: int) -> None:
        self._bucket = bucket
        self._reads = asyncio.Semaphore(footer_reads_in_flight)

    async def chains(self) -> dict[WriterId, Chain]:
        return read_chains([info async for info in self._bucket.list(keys.LOG)])

    async def segments(
        self,
        chains: Iterable[Chain],
        *,
        keep: Callable[[SegmentIndex], bool] = lambda _: True,
        known: Mapping[str, SegmentIndex] | None = None,
    ) -> list[SegmentIndex]:
        """The footers of all committed segments that are kept, sorted by ticket; those that are
        `known`, by their keys, are not read.

        Raises `CorruptObjectError` and the bucket's errors.
        """
        known = known or {}
        committed = [info for chain in chains for info in chain.committed]
        indexes = [known[info.key] for info in committed if info.key in known]
        indexes += await asyncio.gather(
            *(self.footer(info) for info in committed if info.key not in known)
        )
        return sorted(filter(keep, indexes), key=lambda index: index.ticket)

    async def footer(self, info: ObjectInfo) -> SegmentIndex:
        key, length = info.key, min(FOOTER_GUESS_BYTES, info.size_bytes)
        async with self._reads:
            while True:
                body = await self._bucket.get(key, Suffix(length))
                index = decode_footer(key, body.data, body.object_size_bytes)
                if not isinstance(index, int):
                    break
                length = index
        if keys.segment(index.segment) != key:
            raise CorruptObjectError(key, 0, f"its footer says that it is {index.segment}")
        return index


def told_index(entry: VisibleSegment) -> SegmentIndex:
    """The index of a segment whose footer came by the stream, without the object. Raises
    `CorruptObjectError`."""
    key = keys.segment(entry.segment)
    index = decode_footer(key, entry.footer, entry.object_size_bytes)
    if isinstance(index, int):
        raise CorruptObjectError(key, 0, "the stream's footer of it is cut short")
    if index.segment != entry.segment:
        raise CorruptObjectError(key, 0, f"the stream's footer of it is that of {index.segment}")
    return index
