"""Feeding the view: what became visible, in the sequencer's order, and who waits for it.

Invariant: the view advances in the stream's order, without a gap; acknowledgements and long polls
wait on the view, so that a client that was notified of a record can read it here. If the answer to
this broker's own publication is the next in order, the view does not wait for the stream's entry.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bucketlog.log_format.errors import (
    BucketError,
    CorruptObjectError,
    InvalidDataError,
    SequencerError,
    SequencerUnavailableError,
)
from bucketlog.log_format.model import Ticket
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import VisibleSegment
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.epochs.committed_log import decode_published_index
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.epochs.joining import VisibleLog
from bucketlog.stateless_broker.epochs.known_segments import KnownSegments
from bucketlog.stateless_broker.fetch.segment_cache import SegmentCache
from bucketlog.stateless_broker.fetch.watching import Watchers
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.produce.commit import Committer
from bucketlog.stateless_broker.produce.commit_steps import AssembledSegment

logger = logging.getLogger(__name__)

PAUSE_S = 0.2
OWN_ENTRIES_PAUSE_S = 0.02
"""The longest pause after a read of the stream that returned only this broker's own segments."""


class ViewAge:
    """The time since the sequencer last said what is visible. It outlives epochs."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._heard_s = now_s()

    def note_current(self) -> None:
        self._heard_s = self._now_s()

    def is_over(self, limit_s: float) -> bool:
        return self._now_s() - self._heard_s > limit_s


@dataclass(frozen=True, slots=True)
class FedParts:
    """The parts that learn of each segment that becomes visible. `age` learns that the sequencer
    answers."""

    view: View
    age: ViewAge
    watchers: Watchers
    known: KnownSegments
    cache: SegmentCache


class ViewFeed:
    def __init__(
        self,
        *,
        end: EpochEnd,
        sequencer: Sequencer,
        committer: Committer,
        health: Health,
        fed: FedParts,
        last: int,
        block_ms: int,
        read_anew: Callable[[], Awaitable[VisibleLog]],
    ) -> None:
        """The view shows the stream up to number `last`. Redis has `block_ms` to answer what comes
        next."""
        self._end = end
        self._epoch = end.epoch
        self._view = fed.view
        self._age = fed.age
        self._sequencer = sequencer
        self._committer = committer
        self._health = health
        self._watchers = fed.watchers
        self._known = fed.known
        self._cache = fed.cache
        self._last = last
        self._block_ms = block_ms
        self._read_anew = read_anew
        self.newest_ticket = Ticket(end.epoch, 0)
        """The highest number that the view knows in this epoch."""
        self._advanced = asyncio.Event()
        self._is_awaited = asyncio.Event()
        """Set if the view needs an entry of the stream. The pause then ends."""
        self._is_silent = False
        """The sequencer was asked last without an answer."""

    @property
    def visible(self) -> int:
        """The number of the last segment that the view shows."""
        return self._last

    async def catch_up(self, timeout_ms: int) -> bool:
        """Wait until the view shows everything that was visible when this was called. Returns False
        if this cannot be known in time: the sequencer does not answer, or the epoch is over. A
        sequencer that is known to be silent is not asked."""
        if self._is_silent:
            return False
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                number = await self._sequencer.visible_number(self._epoch)
                while self._last < number:
                    self._is_awaited.set()
                    self._advanced.clear()
                    await self._advanced.wait()
        except (TimeoutError, SequencerUnavailableError):
            return False
        except SequencerError as error:
            self._end.end(str(error))
        return self._end.reason is None

    async def run(self) -> None:
        self._age.note_current()
        while True:
            try:
                entries = await self._sequencer.read_visible(
                    self._epoch, self._last, block_ms=self._block_ms
                )
                self._is_silent = False
                are_own = bool(entries) and all(map(self._is_own, entries))
                entries = [entry for entry in entries if not self._shows(entry)]
                if entries and self._lags_behind(entries[0]):
                    await self._catch_up_from_bucket()
                    entries = [entry for entry in entries if entry.number > self._last]
                else:
                    self._age.note_current()
            except (SequencerUnavailableError, BucketError) as error:
                self._is_silent = isinstance(error, SequencerUnavailableError)
                self._health.degrade(BrokerPart.STREAM, str(error))
                await asyncio.sleep(PAUSE_S)
                continue
            except (SequencerError, CorruptObjectError, InvalidDataError) as error:
                self._end.end(str(error))
                return
            self._health.recover(BrokerPart.STREAM)
            for entry in entries:
                if self._end.reason is not None or not self._applied(entry):
                    return
            self._advanced.set()
            if are_own:
                await self._pause_until_awaited()

    async def _pause_until_awaited(self) -> None:
        """Let this broker's own segments gather in the stream. The broker reads all of these
        segments, but needs none."""
        self._is_awaited.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(OWN_ENTRIES_PAUSE_S):
                await self._is_awaited.wait()

    def note_published(self, segment: AssembledSegment, number: int) -> None:
        """Advance the view by this broker's own segment: the sequencer's answer to its publication
        says that the segment is visible, with this number in the stream. If the number is not the
        next one, the stream's entry advances the view later."""
        if self._end.reason is not None or 0 <= number <= self._last:
            return
        if number != self._last + 1:
            self._is_awaited.set()
            return
        index = segment.index
        size_bytes = sum(len(part) for part in segment.parts)
        entry = VisibleSegment(
            self._epoch, number, index.segment, index.ticket, segment.footer, size_bytes
        )
        if self._applied(entry):
            self._advanced.set()

    def _shows(self, entry: VisibleSegment) -> bool:
        """Return whether an answer of `publish` moved the view to this entry while the stream was
        read."""
        return entry.epoch == self._epoch and entry.number <= self._last

    def _is_own(self, entry: VisibleSegment) -> bool:
        """Return whether the answer of `publish` advances the view by this entry, or has already
        done so."""
        return self._shows(entry) or self._committer.shown(entry.segment) is not None

    def _lags_behind(self, entry: VisibleSegment) -> bool:
        return entry.epoch == self._epoch and entry.number > self._last + 1

    async def _catch_up_from_bucket(self) -> None:
        """Build a new view, because the stream has lost the segments that this view needs next.
        Meanwhile, an answer may advance the old view by such a segment; the new view has it."""
        logger.warning("the view lags behind the stream: it is read from the bucket anew")
        log = await self._read_anew()
        self._view.become(await asyncio.to_thread(View.of, log.segments, log.checkpoint))
        self._last = log.number
        tickets = (index.ticket for index in log.segments)
        self.newest_ticket = max(self.newest_ticket, *tickets)
        for segment in self._committer.awaited():
            if log.shows(segment):
                self._committer.became_visible(segment)
        self._watchers.notify_all()

    def _applied(self, entry: VisibleSegment) -> bool:
        """Apply an entry to the view. Returns False if the entry is not this epoch's next one, or
        is damaged. The epoch is then over, and the next one's view comes from the bucket."""
        if entry.epoch != self._epoch or entry.number != self._last + 1:
            self._end.end(
                f"the stream of visible segments jumps from {self._epoch}-{self._last} to "
                f"{entry.epoch}-{entry.number}"
            )
            return False
        own = self._committer.shown(entry.segment)
        try:
            index = own.index if own is not None else decode_published_index(entry)
            change = self._view.apply(index)
        except (CorruptObjectError, InvalidDataError) as error:
            self._end.end(f"the stream of visible segments is damaged: {error}")
            return False
        self._last = entry.number
        self.newest_ticket = max(self.newest_ticket, entry.ticket)
        self._known.learn(index)
        self._cache.became_visible(
            entry.segment, entry.object_size_bytes, own.parts if own is not None else ()
        )
        self._committer.became_visible(entry.segment)
        self._watchers.notify(change.partitions)
        self._watchers.notify(change.moved)
        return True
