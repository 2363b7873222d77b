"""The committed segments of a bucket, as a broker reads them when it starts or lost its place.

Invariants: tails are listed anew for each call, and believed only if no floor is above the
checkpoint at which they begin. A footer is believed only under its own key. A damaged checkpoint is
passed over with an error in the log. Checkpoints never depend on what a broker remembers: callers
that may use it ask by `remembered`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError, ObjectNotFoundError
from bucketlog.log_format.model import SegmentIndex, WriterId
from bucketlog.metadata.sequencer.requests import VisibleSegment
from bucketlog.stateless_broker.epochs.known_segments import KnownSegments
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, ObjectInfo, Suffix, listed
from bucketlog.tiered_storage.chains import Chain
from bucketlog.tiered_storage.checkpoint import (
    CHECKPOINT_BYTES_MAX,
    check_stored_bytes,
    decode_checkpoint,
    newest_first,
)
from bucketlog.tiered_storage.floors import check_not_below
from bucketlog.tiered_storage.segment import decode_footer
from bucketlog.tiered_storage.tails import (
    Tail,
    TailStart,
    all_starts,
    registered_after,
    tail_starts,
    whole_log,
)

logger = logging.getLogger(__name__)

FOOTER_GUESS_BYTES = 16 * 1024
_T = TypeVar("_T")


class CheckpointTails(NamedTuple):
    """Tails after a checkpoint. `tails` follow the indexes in `known`, both by writer."""

    tails: Mapping[WriterId, Tail]
    known: Mapping[WriterId, Sequence[SegmentIndex]]


class CommittedLog:
    """`footer_reads_in_flight` bounds the reads and listings of all calls together. Segments in
    `known` are not read. A checkpoint above `checkpoint_bytes_max` is refused as damaged."""

    def __init__(
        self,
        bucket: Bucket,
        *,
        footer_reads_in_flight: int,
        known: KnownSegments | None = None,
        checkpoint_bytes_max: int = CHECKPOINT_BYTES_MAX,
    ) -> None:
        self._checkpoint_bytes_max = checkpoint_bytes_max
        self.known = KnownSegments(batches_max=0) if known is None else known
        self._bucket = bucket
        self._reads = asyncio.Semaphore(footer_reads_in_flight)

    async def checkpoint(self, *, unless: Checkpoint | None = None) -> Checkpoint | None:
        """Return the newest sound checkpoint. It is read, and decoded in a thread, unless it is the
        one given as `unless`. Raises `InvalidDataError` and the bucket's errors."""
        found = await self.checkpoints(1, unless=unless)
        return found[0] if found else None

    async def checkpoints(
        self, count: int, *, unless: Checkpoint | None = None
    ) -> list[Checkpoint]:
        """Return up to `count` sound checkpoints, the newest first. Raises as `checkpoint`."""
        found: list[Checkpoint] = []
        bytes_max = self._checkpoint_bytes_max
        for info in newest_first(await self._list(keys.CHECKPOINTS)):
            key = info.key
            try:
                if unless is not None and key == keys.checkpoint(unless.ticket):
                    found.append(unless)
                else:
                    check_stored_bytes(info, bytes_max)
                    body = await self._bucket.get(key)
                    found.append(
                        await asyncio.to_thread(
                            decode_checkpoint, key, body.data, bytes_max=bytes_max
                        )
                    )
            except ObjectNotFoundError:
                logger.info("%s was replaced by a newer one", key)
            except CorruptObjectError as error:
                logger.error("%s; the one before it is read", error)
            if len(found) == count:
                break
        if found:
            self.known.forget_below(found[0].ticket)
        return found

    async def tails(self, checkpoint: Checkpoint | None) -> dict[WriterId, Tail]:
        """Return the tails of the chains after `checkpoint`. Raises `InvalidDataError`,
        `CorruptObjectError` and the bucket's errors, `StaleCheckpointError` among them."""
        return await self._believed(checkpoint, self._listed_tails(checkpoint))

    async def recall(self, checkpoint: Checkpoint | None) -> CheckpointTails:
        """Return the tails as `tails` does, without listing or reading segments that are known."""
        if not self.known.is_empty:
            return await self._believed(checkpoint, self._unknown_tails(checkpoint))
        return CheckpointTails(await self.tails(checkpoint), {})

    async def _believed(self, checkpoint: Checkpoint | None, listing: Awaitable[_T]) -> _T:
        try:
            found = await listing
        except (CorruptObjectError, InvalidDataError):
            check_not_below(checkpoint, await self._list(keys.FLOORS))  # else nothing is wrong
            raise
        check_not_below(checkpoint, await self._list(keys.FLOORS))
        return found

    async def _listed_tails(self, checkpoint: Checkpoint | None) -> dict[WriterId, Tail]:
        if checkpoint is None:
            return whole_log(await self._list(keys.LOG), await self._list(keys.WRITERS))
        starts = await self._starts(checkpoint)
        tails = await asyncio.gather(*map(self._tail, starts))
        return {start.writer: tail for start, tail in zip(starts, tails, strict=True)}

    async def _unknown_tails(self, checkpoint: Checkpoint | None) -> CheckpointTails:
        starts = await self._starts(checkpoint)
        self.known.forget_seals_but(start.writer for start in starts)
        known = {start.writer: self.known.following(start.writer, start.seq) for start in starts}
        sealed = {start.writer: self.known.sealed_at(start.writer) for start in starts}

        async def tail(start: TailStart) -> Tail:
            writer, end = start.writer, start.seq + len(known[start.writer])
            if end == sealed[writer]:
                return Tail(start.epoch, Chain(writer, end, (), end, True, ()))
            return await self._tail(TailStart(writer, start.epoch, end))

        tails = await asyncio.gather(*map(tail, starts))
        found = {start.writer: tail for start, tail in zip(starts, tails, strict=True)}
        return CheckpointTails(found, known)

    async def _starts(self, checkpoint: Checkpoint | None) -> list[TailStart]:
        if checkpoint is None:
            return all_starts(await self._list(keys.WRITERS))
        return tail_starts(checkpoint, await self._list(keys.WRITERS, registered_after(checkpoint)))

    async def _tail(self, start: TailStart) -> Tail:
        async with self._reads:
            return start.read(await self._list(start.prefix, start.start_after))

    async def _list(self, prefix: str, start_after: str = "") -> list[ObjectInfo]:
        return await listed(self._bucket, prefix, start_after=start_after)

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

    async def remembered(
        self,
        recalled: CheckpointTails,
        chains: Iterable[Chain],
        *,
        keep: Callable[[SegmentIndex], bool] = lambda _: True,
    ) -> list[SegmentIndex]:
        """Return the segments of the `chains`, as `segments` does, and the known segments before
        them. Segments that were read become known."""
        chains = list(chains)
        listed = [keys.parse_segment(info.key) for chain in chains for info in chain.committed]
        known = {keys.segment(name): index for name in listed if (index := self.known.index(name))}
        found = await self.segments(chains, known=known)
        for index in found:
            self.known.learn(index)
        for chain in chains:
            if chain.sealed:
                self.known.note_seal(chain.writer, chain.end)
            found += recalled.known.get(chain.writer, ())
        return sorted(filter(keep, found), key=lambda index: index.ticket)

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


def decode_published_index(entry: VisibleSegment) -> SegmentIndex:
    """The index of a segment whose footer came by the stream, without the object. Raises
    `CorruptObjectError`."""
    key = keys.segment(entry.segment)
    index = decode_footer(key, entry.footer, entry.object_size_bytes)
    if isinstance(index, int):
        raise CorruptObjectError(key, 0, "the stream's footer of it is cut short")
    if index.segment != entry.segment:
        raise CorruptObjectError(key, 0, f"the stream's footer of it is that of {index.segment}")
    return index
