"""Joining the cluster: the epoch that is active, or the next one where none is.

Invariants: a broker is a member, and says that it lives, before it claims; so that who finds a
claim can tell whether to wait for its claimant. What the view begins with is exactly what was
visible at one moment of the sequencer.
"""

import asyncio
import logging
from dataclasses import dataclass

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import (
    ClusterInUseError,
    CorruptObjectError,
    SequencerLostError,
    StaleCheckpointError,
)
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, WallClock, WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.stateless_broker.epochs.activation import Claim, EpochStarter
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog, decode_published_index
from bucketlog.stateless_broker.epochs.known_segments import KnownSegments
from bucketlog.stateless_broker.membership import Membership

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first_pause_ms=200, longest_pause_ms=5000)
CLAIM_POLLS = Backoff(first_pause_ms=20, longest_pause_ms=200)
TRIES = 10
STREAM_WAIT_MS = 1
"""What is wanted of the stream is there already."""


@dataclass(frozen=True, slots=True)
class VisibleLog:
    """What was visible when the stream's last entry was number `number`: all that `checkpoint`
    covers, and the segments after it, by ticket."""

    number: int
    checkpoint: Checkpoint | None
    segments: list[SegmentIndex]

    def shows(self, segment: SegmentId) -> bool:
        """Of a writer of the epoch in which this was read."""
        return (self.checkpoint is not None and self.checkpoint.covers(segment)) or any(
            index.segment == segment for index in self.segments
        )


@dataclass(frozen=True, slots=True)
class JoinedEpoch:
    epoch: int
    writer: WriterId
    log: VisibleLog
    claimed_here: bool
    """This broker started the epoch, and cares for what its readers need."""
    began_ms: int
    """When the epoch was claimed, by its claimant's clock."""


async def read_visible_log(
    epoch: int, *, sequencer: Sequencer, committed: CommittedLog
) -> VisibleLog:
    """What is visible now. Every visible segment is in the bucket when it becomes visible, so the
    chains are read after the sequencer: what is open or came later is left to the stream. A
    checkpoint is read before it, since all that one covers was visible before it was written.

    Raises `SequencerLostError` where the sequencer knows less than the checkpoint."""
    checkpoint = await committed.checkpoint()
    position = await sequencer.position(epoch)
    settled = min(position.open_tickets, default=position.next_ticket)
    if checkpoint is not None and checkpoint.ticket > Ticket(epoch, settled):
        raise SequencerLostError(
            f"ticket {settled} of epoch {epoch} is not settled, and yet below the checkpoint of "
            f"{checkpoint.ticket.epoch}/{checkpoint.ticket.number}: the sequencer went back",
            remedy="a new epoch is needed",
        )

    def was_visible(index: SegmentIndex) -> bool:
        ticket = index.ticket
        return ticket.epoch < epoch or (
            ticket.epoch == epoch
            and ticket.number < position.next_ticket
            and ticket.number not in position.open_tickets
        )

    await _read_published_indexes(epoch, position.visible, sequencer, committed.known)
    recalled = await committed.recall(checkpoint)
    segments = await committed.remembered(
        recalled, (tail.chain for tail in recalled.tails.values()), keep=was_visible
    )
    return VisibleLog(position.visible, checkpoint, segments)


async def _read_published_indexes(
    epoch: int, until: int, sequencer: Sequencer, known: KnownSegments
) -> None:
    """What the stream still says of segments up to number `until`: as good as it is to whoever
    follows it, and without a request to the bucket for each."""
    last = 0
    while last < until:
        entries = await sequencer.read_visible(epoch, last, block_ms=STREAM_WAIT_MS)
        if not entries or entries[-1].epoch != epoch:
            break
        for entry in entries:
            if known.index(entry.segment) is None:
                try:
                    known.learn(decode_published_index(entry))
                except CorruptObjectError as error:
                    logger.warning("the stream is damaged, the bucket is read instead: %s", error)
        last = entries[-1].number


class Joiner:
    """`now_ms` is the time of day, as claims have it."""

    def __init__(
        self,
        *,
        sequencer: Sequencer,
        committed: CommittedLog,
        starter: EpochStarter,
        membership: Membership,
        claim_wait_ms: int,
        now_ms: WallClock,
    ) -> None:
        self._sequencer = sequencer
        self._committed = committed
        self._starter = starter
        self._membership = membership
        self._claim_wait_ms = claim_wait_ms
        self._now_ms = now_ms
        self._tried = 0
        """The active epoch that was to be joined: where it is lost then, a higher one is needed."""

    async def join(self, above: int = 0) -> JoinedEpoch:
        """An epoch higher than `above`. The membership has joined and keeps up its heartbeat.

        Raises `BucketlogError`.
        """
        last: Exception | None = None
        pauses_s = BACKOFF.pauses_s()
        for _ in range(TRIES):
            try:
                joined = await self._try(above)
            except (SequencerLostError, ClusterInUseError, StaleCheckpointError) as error:
                logger.info("joining again: %s", error)
                if isinstance(error, SequencerLostError):
                    above = max(above, self._tried)
                last = error
                await asyncio.sleep(next(pauses_s))
                continue
            if joined is not None:
                return joined
        raise ClusterInUseError(
            f"no epoch stayed active in {TRIES} tries: {last}",
            remedy="see the other brokers' logs: do all use the same Redis?",
        )

    async def _try(self, above: int) -> JoinedEpoch | None:
        await self._membership.heartbeat()  # a wiped Redis does not know who lives
        claim = await self._starter.highest_claim()
        epoch = await self._sequencer.active_epoch()
        if epoch is not None and epoch == claim.epoch and epoch > above:
            self._tried = epoch
            writer = await self._register_writer(epoch)
            log = await read_visible_log(
                epoch, sequencer=self._sequencer, committed=self._committed
            )
            return JoinedEpoch(epoch, writer, log, claimed_here=False, began_ms=claim.claimed_ms)
        is_open = claim.epoch > max(epoch or 0, above)
        if is_open and await self._activated_by_its_claimant(claim, after_another=above > 0):
            return None
        started = max(claim.epoch, epoch or 0, above) + 1
        sealed = await self._starter.start(started)
        if sealed is None:
            return None
        writer = await self._register_writer(started)
        log = VisibleLog(0, sealed.checkpoint, sealed.segments)
        return JoinedEpoch(started, writer, log, claimed_here=True, began_ms=self._now_ms())

    async def _register_writer(self, epoch: int) -> WriterId:
        """It has a heartbeat from now on, however long the view takes."""
        writer = await self._starter.register_writer(epoch)
        self._membership.writer = writer
        return writer

    async def _activated_by_its_claimant(self, claim: Claim, *, after_another: bool) -> bool:
        """Wait for a live broker that has claimed to activate, here or a later epoch. False: go on
        without it."""
        deadline = asyncio.get_running_loop().time() + self._claim_wait_ms / 1000
        polls_s = CLAIM_POLLS.pauses_s()
        while asyncio.get_running_loop().time() < deadline:
            await self._membership.heartbeat()
            if (await self._sequencer.active_epoch() or 0) >= claim.epoch:
                return True
            if claim.claimed_by == self._membership.incarnation:
                return False
            lives = self._membership.lives(claim.claimed_by)
            if not lives and not (after_another and await self._is_recent_claim_elsewhere(claim)):
                return False
            await asyncio.sleep(next(polls_s))
        return False

    async def _is_recent_claim_elsewhere(self, claim: Claim) -> bool:
        """Claimed a moment ago for another server: its claimant is not seen to live here, and may
        well have been right to go there."""
        if self._now_ms() - claim.claimed_ms >= self._claim_wait_ms:
            return False
        return not claim.is_for(await self._sequencer.identity())
