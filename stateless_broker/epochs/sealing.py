"""Sealing: deciding the rest of any writer's chain (commit protocol, "Sealing").

Invariant: the first create of the chain's next key decides. If it is a segment, it is published on
its writer's behalf; a seal makes everything from there on void. Any number of brokers may do this
at once, and may stop anywhere in it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import (
    BucketError,
    BucketlogError,
    CorruptObjectError,
    SequencerError,
    SequencerUnavailableError,
    StaleCheckpointError,
)
from bucketlog.log_format.model import SegmentId, WallClock, WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import (
    FenceStatus,
    OverdueReason,
    OverdueWriter,
    PublishStatus,
)
from bucketlog.stateless_broker.epochs.claim_watch import ClaimWatch
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, ObjectInfo
from bucketlog.tiered_storage.segment import Seal, encode_footer, encode_seal, is_seal

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first_pause_ms=50, longest_pause_ms=2000)
SLOW_SHARE = 2
"""An answer that takes a session divided by this number is as late as heartbeats then are."""


async def segment_or_seal(
    bucket: Bucket, segment: SegmentId, *, epoch: int, now_ms: int
) -> ObjectInfo | None:
    """Seal a chain at `segment`, unless a segment is there. Returns the segment, or None for a
    seal. Raises `StaleCheckpointError` if the object at the key was deleted just now, and the
    bucket's errors."""
    key = keys.segment(segment)
    if await bucket.create(key, [encode_seal(Seal(segment, epoch, now_ms))]):
        return None
    info = await bucket.head(key)
    if info is None:
        raise StaleCheckpointError(
            f"what stood at {key!r} is deleted: this broker knew of it from before a safety age",
            remedy="reading begins again",
        )
    return None if is_seal(info.size_bytes) else info


class Sealer:
    """Seals chains. `bucket` retries. A request that it gives up on, or that is refused, is
    repeated here until it is answered: rights to a bucket may be given again, too."""

    def __init__(
        self,
        *,
        epoch: int,
        bucket: Bucket,
        committed: CommittedLog,
        sequencer: Sequencer,
        claims: ClaimWatch,
        health: Health,
        now_ms: WallClock,
    ) -> None:
        self._epoch = epoch
        self._bucket = bucket
        self._committed = committed
        self._sequencer = sequencer
        self._claims = claims
        self._health = health
        self._now_ms = now_ms

    async def close(self, first: SegmentId) -> int:
        """Decide the chain from `first`, the first undecided segment as far as is known, on.

        Tries until it is done. Returns the first seq that is void. Raises `SequencerLostError`,
        `CorruptObjectError`.
        """
        pauses_s = BACKOFF.pauses_s()
        while True:
            try:
                fenced_seq = await self._close(first)
            except BucketlogError as error:
                if not error.retriable and not isinstance(error, BucketError):
                    raise
                self._health.degrade(BrokerPart.SEALING, str(error))
                await asyncio.sleep(next(pauses_s))
            else:
                self._health.recover(BrokerPart.SEALING)
                return fenced_seq

    async def _close(self, first: SegmentId) -> int:
        writer, seq = first
        while True:
            segment = SegmentId(writer, seq)
            there = await segment_or_seal(
                self._bucket, segment, epoch=self._epoch, now_ms=self._now_ms()
            )
            if there is None:
                fence = await self._sequencer.fence(self._epoch, segment)
                if fence.status is FenceStatus.FENCED:
                    logger.warning("writer %s is sealed at segment %d", writer, seq)
                    return seq
                if fence.first <= seq:  # a seal, and yet the sequencer waits for what is before it
                    raise CorruptObjectError(
                        keys.segment(SegmentId(writer, fence.first)), 0, "it was passed over"
                    )
                seq = fence.first
                continue
            index = await self._committed.footer(there)
            await self._claims.check()
            published = await self._sequencer.publish(
                self._epoch,
                segment,
                footer=encode_footer(index),
                object_size_bytes=there.size_bytes,
            )
            if published.status is PublishStatus.VOID:
                return published.fenced_seq
            seq += 1


@dataclass(frozen=True, slots=True)
class OverdueLimits:
    """Limits of writers. A writer is silent after `silent_ms` without a heartbeat, and stuck when a
    segment of it has been open for `pending_ms`. The sequencer is asked once in `round_ms`."""

    silent_ms: int
    pending_ms: int
    round_ms: int


class OverdueWatch:
    """Closes the chains of writers that are silent or stuck, so that nobody waits for them.

    Every broker may do this. The broker that is first in line for a writer begins. The others
    follow, a round later each, if it is still needed then. While the sequencer was away, it got
    nobody's heartbeat. So writers count as silent only after they had time to come back. A
    sequencer that lost its state ends the epoch.
    """

    def __init__(
        self,
        *,
        end: EpochEnd,
        sequencer: Sequencer,
        sealer: Sealer,
        place_in_line: Callable[[WriterId], int],
        is_own: Callable[[WriterId], bool],
        limits: OverdueLimits,
    ) -> None:
        self._end = end
        self._epoch = end.epoch
        self._sequencer = sequencer
        self._sealer = sealer
        self._place_in_line = place_in_line
        self._is_own = is_own
        self._silent_ms = limits.silent_ms
        self._pending_ms = limits.pending_ms
        self._round_ms = limits.round_ms
        self._rounds: dict[WriterId, int] = {}
        self._closing: set[WriterId] = set()
        self._is_due = asyncio.Event()

    def look_now(self) -> None:
        """Begin the next round at once, because members have changed."""
        self._is_due.set()

    async def _until_due(self) -> None:
        try:
            async with asyncio.timeout(self._round_ms / 1000):
                await self._is_due.wait()
        except TimeoutError:
            pass
        self._is_due.clear()

    async def run(self, spawn: Callable[[Coroutine[Any, Any, None], str], object]) -> None:
        loop = asyncio.get_running_loop()
        back_at = float("-inf")
        while self._end.reason is None:
            await self._until_due()
            asked_at = loop.time()
            try:
                overdue = await self._sequencer.overdue(
                    self._epoch, silent_ms=self._silent_ms, pending_ms=self._pending_ms
                )
            except SequencerUnavailableError:
                back_at = loop.time()
                continue
            except SequencerError as error:
                self._end.end(str(error))
                return
            if (loop.time() - asked_at) * SLOW_SHARE > self._silent_ms / 1000:
                back_at = loop.time()
            if loop.time() < back_at + self._silent_ms / 1000:
                overdue = [one for one in overdue if one.reason is not OverdueReason.SILENT]
            for writer in self._due(overdue):
                self._closing.add(writer.writer)
                spawn(self._close(writer), f"closing writer {writer.writer}")

    def _due(self, overdue: Sequence[OverdueWriter]) -> list[OverdueWriter]:
        others = [
            entry
            for entry in overdue
            if not self._is_own(entry.writer) and entry.writer not in self._closing
        ]
        self._rounds = {entry.writer: self._rounds.get(entry.writer, -1) + 1 for entry in others}
        return [
            entry
            for entry in others
            if self._rounds[entry.writer] >= self._place_in_line(entry.writer)
        ]

    async def _close(self, overdue: OverdueWriter) -> None:
        logger.warning("writer %s is %s: its chain is closed", overdue.writer, overdue.reason)
        try:
            await self._sealer.close(SegmentId(overdue.writer, overdue.seq))
        except SequencerError as error:
            self._end.end(str(error))
        finally:
            self._closing.discard(overdue.writer)
