"""The duty of writing checkpoints: one broker at a time, from the bucket, compared with the view.

Invariants: a checkpoint is folded from the last sound one and what the chains hold after it, never
from the view. A checkpoint that the view contradicts is not written, and the contradiction is
reported until it is gone. A checkpoint is deleted only when two newer sound ones exist. A failure
here loses nothing, because the chains stay.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import BucketError, CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import SegmentIndex, Ticket, WallClock, WriterId
from bucketlog.metadata.checkpoint import extended
from bucketlog.metadata.producers import IdleLimit
from bucketlog.metadata.view_comparison import ViewComparison
from bucketlog.stateless_broker.duties.current_view import CurrentView
from bucketlog.stateless_broker.duties.rounds import CATCH_UP_MS, DutyContext
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, listed
from bucketlog.tiered_storage.checkpoint import encode_checkpoint, newest_first
from bucketlog.tiered_storage.checkpoint_cut import cut_prefix, low_ticket
from bucketlog.tiered_storage.deletion import GarbageKind
from bucketlog.tiered_storage.segment import body_crc32c
from bucketlog.tiered_storage.tails import Tail

logger = logging.getLogger(__name__)

SHARE_OF_TIME = 20
"""The part of the time that writing takes is at most one in this number, whatever the size."""
STEPS_AT_ONCE = 10
ROUNDS_A_PLACE = 5


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """A checkpoint is due after `interval_ms` or `segments`, whichever comes first. Producers that
    have not written for `producer_idle_ms` are left out. A checkpoint of more than `bytes_max`
    uncompressed bytes is not written."""

    interval_ms: int
    segments: int
    producer_idle_ms: int
    bytes_max: int


class CheckpointTurns:
    """The turns of brokers. The first broker in line writes. The others step in if there has
    been no newer checkpoint for long: `ROUNDS_A_PLACE` rounds for each broker before them."""

    def __init__(self) -> None:
        self._newest = ""
        self._rounds = 0

    def is_next(self, newest: str, place: int) -> bool:
        """Return whether this broker writes now. Call this once a round: `newest` is the newest
        checkpoint's key, `place` this broker's place in line."""
        self._rounds = self._rounds + 1 if newest == self._newest else 0
        self._newest = newest
        return self._rounds >= place * ROUNDS_A_PLACE


class Checkpointer:
    def __init__(
        self,
        *,
        epoch: int,
        bucket: Bucket,
        committed: CommittedLog,
        current: CurrentView,
        context: DutyContext,
        settings: CheckpointSettings,
        clocks: Sequence[WallClock],
    ) -> None:
        """The earliest of `clocks` decides which producers are idle."""
        self._epoch = epoch
        self._bucket = bucket
        self._committed = committed
        self._view = current.view
        self._catch_up = current.catch_up
        self._visible = current.visible
        self._place_in_line = context.place_in_line
        self._health = context.health
        self._counts = context.counts
        self._now_ms = context.now_ms
        self._settings = settings
        self._clocks = clocks
        self._turns = CheckpointTurns()

    async def run(self) -> None:
        """Run for the epoch's life. A checkpoint is written only when it is this broker's turn."""
        self._health.recover(BrokerPart.CHECKPOINTS)
        loop = asyncio.get_running_loop()
        pause_s = 0.0
        while self._health.stopped is None:
            await self._until_due(pause_s)
            began = loop.time()
            try:
                if await self._is_next():
                    await self.write()
            except BucketError as error:
                logger.warning("no checkpoint now: %s", error)
            except (CorruptObjectError, InvalidDataError) as error:
                self._health.degrade(BrokerPart.CHECKPOINTS, str(error))
            pause_s = (loop.time() - began) * SHARE_OF_TIME

    async def _until_due(self, pause_s: float) -> None:
        loop = asyncio.get_running_loop()
        interval_s = self._settings.interval_ms / 1000
        began, before = loop.time(), self._visible()
        while True:
            await asyncio.sleep(min(1.0, interval_s))
            waited_s = loop.time() - began
            many = self._visible() - before >= self._settings.segments
            if waited_s >= pause_s and (many or waited_s >= interval_s):
                return

    async def _is_next(self) -> bool:
        newest = max(
            [info.key for info in await listed(self._bucket, keys.CHECKPOINTS)], default=""
        )
        if newest:
            self._committed.known.forget_below(keys.parse_checkpoint(newest))
        return self._turns.is_next(newest, self._place_in_line(BrokerPart.CHECKPOINTS))

    async def write(self) -> Checkpoint | None:
        """Write the next one, if there is anything to cover. Raises `BucketError`,
        `CorruptObjectError`, `InvalidDataError`."""
        began = asyncio.get_running_loop().time()
        base = await self._committed.checkpoint()
        first = await self._segments(await self._committed.tails(base), ())
        low = low_ticket(first, active_epoch=self._epoch)
        if low.epoch != self._epoch or (base is not None and low <= base.ticket):
            return None
        second = await self._committed.tails(base)
        indexes = await self._segments(second, first)
        prefix = cut_prefix(low, second, {index.segment: index for index in indexes})
        if not prefix.segments or not await self._catch_up(CATCH_UP_MS):
            return None
        made = await asyncio.to_thread(
            extended,
            base,
            prefix.segments,
            low,
            prefix.writers,
            created_ms=self._now_ms(),
            idle=IdleLimit(min(now() for now in self._clocks), self._settings.producer_idle_ms),
        )
        if not await self._matches_view(made, indexes):
            return None
        data = await asyncio.to_thread(encode_checkpoint, made, bytes_max=self._settings.bytes_max)
        key = keys.checkpoint(low)
        if await self._bucket.create(key, [data], crc32c=body_crc32c([data])):
            took_ms = round((asyncio.get_running_loop().time() - began) * 1000)
            self._counts.count_checkpoint(made.segments, len(data), took_ms)
            logger.info("%s: %d segments, %d bytes, %d ms", key, made.segments, len(data), took_ms)
        self._health.recover(BrokerPart.CHECKPOINTS)
        if base is not None:
            await self._delete_before(base.ticket)
        return made

    async def _segments(
        self, tails: Mapping[WriterId, Tail], known: Iterable[SegmentIndex]
    ) -> list[SegmentIndex]:
        by_key = {keys.segment(index.segment): index for index in known}
        return await self._committed.segments((tail.chain for tail in tails.values()), known=by_key)

    async def _matches_view(self, made: Checkpoint, known: Iterable[SegmentIndex]) -> bool:
        comparison = await asyncio.to_thread(ViewComparison, self._view, made)
        for step, _ in enumerate(comparison.steps()):
            if step % STEPS_AT_ONCE == 0:
                await asyncio.sleep(0)
        after = await self._segments(await self._committed.tails(made), known)
        differing = comparison.unexplained(after)
        if differing:
            reason = f"the view and the bucket differ: {', '.join(differing)}"
            logger.error("no checkpoint of %d/%d is written: %s", *made.ticket, reason)
            self._health.degrade(BrokerPart.CHECKPOINTS, reason)
        return not differing

    async def _delete_before(self, base: Ticket) -> None:
        """Delete the checkpoints before `base`. Two sound ones stay: the base, which was read, and
        the one made on it. Checkpoints that others have written since stay, too."""
        there = await listed(self._bucket, keys.CHECKPOINTS)
        old = [i.key for i in newest_first(there) if keys.parse_checkpoint(i.key) < base]
        if old:
            await self._bucket.delete(old)
            self._counts.count_deleted(GarbageKind.CHECKPOINTS, len(old))
            logger.info(
                "deleted below %s: %d %s", keys.checkpoint(base), len(old), GarbageKind.CHECKPOINTS
            )
