"""Joining the cluster: the epoch that is active, or the next one where none is.

Invariants: before a broker claims, it is a member with a heartbeat, so that others that find the
claim know whether to wait for the claimant. A broker takes an epoch from another server only if
`foreign_epochs` allows it. The view begins with exactly what was visible at one moment of the
sequencer.
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
    SequencerUnavailableError,
    StaleCheckpointError,
)
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import ServerIdentity
from bucketlog.stateless_broker.epochs.activation import Claim, EpochStarter
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog, decode_published_index
from bucketlog.stateless_broker.epochs.foreign_epochs import ForeignEpochs
from bucketlog.stateless_broker.epochs.known_segments import KnownSegments
from bucketlog.stateless_broker.epochs.servers import Servers
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.membership.membership import Membership

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first_pause_ms=200, longest_pause_ms=5000)
CLAIM_POLLS = Backoff(first_pause_ms=20, longest_pause_ms=500)
TRIES = 10
STREAM_WAIT_MS = 1
"""The shortest possible wait: the entries that a joining broker reads are in the stream already."""


@dataclass(frozen=True, slots=True)
class VisibleLog:
    """The log that was visible when the stream's last entry was number `number`: everything that
    `checkpoint` covers, and the segments after it, by ticket."""

    number: int
    checkpoint: Checkpoint | None
    segments: list[SegmentIndex]

    def shows(self, segment: SegmentId) -> bool:
        """Return whether the segment was visible. Its writer is one of the epoch in which this was
        read."""
        return (self.checkpoint is not None and self.checkpoint.covers(segment)) or any(
            index.segment == segment for index in self.segments
        )


@dataclass(frozen=True, slots=True)
class _Turn:
    """The highest claim, and the epoch that is active on this broker's server, 0 for none."""

    server: ServerIdentity
    claim: Claim
    active_here: int
    above: int

    @property
    def is_active(self) -> bool:
        """Whether the claimed epoch can be joined."""
        return self.active_here == self.claim.epoch > self.above

    @property
    def lost_here(self) -> bool:
        """Whether the claimed epoch was active here and no longer is."""
        return self.claim.epoch <= max(self.active_here, self.above)


@dataclass(frozen=True, slots=True)
class JoinedEpoch:
    epoch: int
    writer: WriterId
    log: VisibleLog
    claimed_here: bool
    """Whether this broker started the epoch. It then cares for what the epoch's readers need."""
    began_ms: int
    """Time of the claim, by its claimant's clock."""


async def read_visible_log(
    epoch: int, *, sequencer: Sequencer, committed: CommittedLog
) -> VisibleLog:
    """Read what is visible now. Every visible segment is in the bucket when it becomes visible, so
    the chains are read after the sequencer. The stream will show segments that are open or come
    later. The checkpoint is read before the sequencer, because everything that it covers was
    visible before it was written.

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
    """Learn the indexes of segments up to number `until` that are still in the stream. They are as
    reliable as for a follower of the stream, and cost no request to the bucket for each segment."""
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
    """`health` shows why `join` waits."""

    def __init__(
        self,
        *,
        sequencer: Sequencer,
        committed: CommittedLog,
        starter: EpochStarter,
        membership: Membership,
        foreign: ForeignEpochs,
        servers: Servers,
        health: Health,
        claim_wait_ms: int,
    ) -> None:
        self._sequencer = sequencer
        self._committed = committed
        self._starter = starter
        self._membership = membership
        self._foreign = foreign
        self._servers = servers
        self._health = health
        self._claim_wait_ms = claim_wait_ms
        self._tried = 0
        """The active epoch that this broker tried to join. If it is lost then, a higher one is
        needed."""
        self._selected_for = 0
        """The newest claimed epoch when the server was chosen."""
        self._checkpoint: Checkpoint | None = None
        """The newest checkpoint that was read while this broker waited."""

    async def join(self, above: int = 0) -> JoinedEpoch:
        """An epoch higher than `above`. The membership has joined and keeps up its heartbeat.

        Raises `BucketlogError`; `SequencerUnavailableError` if the epoch is on another Redis.
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
                await self._servers.settle()
                self._membership.note_joined()
                return joined
        raise ClusterInUseError(
            f"no epoch stayed active in {TRIES} tries: {last}",
            remedy="see the other brokers' logs: do all use the same Redis?",
        )

    async def _try(self, above: int) -> JoinedEpoch | None:
        """Try to join. Returns None if another broker has claimed the next epoch."""
        turn = await self._await_turn(above)
        if turn.is_active:
            self._tried = turn.claim.epoch
            return await self._follow(turn.claim)
        started = max(turn.claim.epoch, turn.active_here, above) + 1
        sealed = await self._starter.start(started)
        if sealed is None:
            return None
        self._foreign.note_claim(turn.claim.epoch)
        writer = await self._register_writer(started)
        log = VisibleLog(0, sealed.checkpoint, sealed.segments)
        return JoinedEpoch(started, writer, log, claimed_here=True, began_ms=self._starter.now_ms())

    async def _follow(self, claim: Claim) -> JoinedEpoch:
        writer = await self._register_writer(claim.epoch)
        log = await read_visible_log(
            claim.epoch, sequencer=self._sequencer, committed=self._committed
        )
        return JoinedEpoch(claim.epoch, writer, log, claimed_here=False, began_ms=claim.claimed_ms)

    async def _register_writer(self, epoch: int) -> WriterId:
        """Register the writer, which sends heartbeats before its view is complete."""
        writer = await self._starter.register_writer(epoch)
        self._membership.writer = writer
        return writer

    async def _await_turn(self, above: int) -> _Turn:
        """Wait until an epoch is active here, or the next one may be claimed. Raises
        `SequencerUnavailableError` if neither happens within `claim_wait_ms`."""
        loop, pauses_s = asyncio.get_running_loop(), CLAIM_POLLS.pauses_s()
        began, waited_for = loop.time(), 0
        while True:
            try:
                await self.select_server(above)
                server = await self._sequencer.identity()
                await self._membership.heartbeat()  # a wiped Redis does not know who lives
            except SequencerUnavailableError as error:
                late_s = loop.time() - began - self._claim_wait_ms / 1000
                if late_s >= 0 or not self._servers.may_switch:
                    raise
                self._health.degrade(BrokerPart.JOINING, str(error))
                await asyncio.sleep(next(pauses_s))
                continue
            # An epoch is claimed before it is active: asked in this order, no claim is missed.
            active_here = await self._sequencer.active_epoch() or 0
            claim = await self._starter.highest_claim()
            if self._servers.may_switch and claim.epoch != self._selected_for:
                continue
            turn = _Turn(server, claim, active_here, above)
            if turn.is_active:
                return turn
            if claim.epoch != waited_for:
                began, waited_for = loop.time(), claim.epoch
            is_late = loop.time() - began >= self._claim_wait_ms / 1000
            reason = await self._reason_to_wait(turn, is_late=is_late)
            if reason is None and await self._sequencer.identity() == server:
                return turn
            if reason is None:  # the answers of two servers together prove nothing
                continue
            self._health.degrade(BrokerPart.JOINING, reason)
            if is_late:
                raise SequencerUnavailableError(reason)
            await self._keep_up()
            await asyncio.sleep(next(pauses_s))

    async def _keep_up(self) -> None:
        """Read what others commit while this broker waits. Otherwise joining would take the longer,
        the longer the wait was. Raises the bucket's errors."""
        committed = self._committed
        self._checkpoint = await committed.checkpoint(unless=self._checkpoint)
        recalled = await committed.recall(self._checkpoint)
        await committed.remembered(recalled, (tail.chain for tail in recalled.tails.values()))

    async def select_server(self, left: int = 0) -> None:
        """Choose the server for the epoch after the newest claim. `left` is the last epoch of this
        broker, 0 for none. Raises `SequencerUnavailableError` if the broker has to wait."""
        if not self._servers.may_switch:
            return
        claim = await self._starter.highest_claim()

        async def judge(is_gone: bool) -> str | None:
            if not claim.claimed_by:
                return None
            return await self._foreign.reason_to_wait(claim, left, is_gone=is_gone, is_alone=True)

        await self._servers.select(claim, judge)
        self._selected_for = claim.epoch

    async def _reason_to_wait(self, turn: _Turn, *, is_late: bool) -> str | None:
        """Reason why the next epoch may not be claimed yet; None if it may."""
        claim = turn.claim
        if not claim.claimed_by:
            return None  # the first epoch, or a claim without a claimant
        if self._servers.has_mandate(claim.epoch):
            return None
        if not claim.is_for(turn.server):
            is_gone = self._servers.is_claimed_gone
            reason = await self._foreign.reason_to_wait(claim, turn.above, is_gone=is_gone)
            if reason is not None and await self._sequencer.identity() == turn.server:
                self._membership.note_left_behind(self._foreign.ahead)
            return reason
        is_own = claim.claimed_by == self._membership.incarnation
        if turn.lost_here or is_late or is_own or not self._membership.lives(claim.claimed_by):
            return None
        return f"epoch {claim.epoch} is claimed by another broker and not active yet"
