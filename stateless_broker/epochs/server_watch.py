"""Watches the sequencer's server in an epoch: lost state, outages, return of the configured Redis.

Invariant: the watch only ends the epoch, with a mandate; the next server is chosen when the next
epoch is joined. Within an epoch, a broker waits for a server that does not answer, unless `Outage`
says that the epoch does not work for any broker.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from bucketlog.log_format.errors import (
    BucketlogError,
    SequencerError,
    SequencerUnavailableError,
)
from bucketlog.log_format.model import WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSignReader
from bucketlog.stateless_broker.epochs.server_choice import (
    Mandate,
    Outage,
    OutageStep,
    Wish,
)
from bucketlog.stateless_broker.epochs.servers import Servers
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.membership.membership import Membership

OUTAGE_PAUSE_S = 0.1
"""The pause between two calls to a server that does not answer."""
RETURN_PAUSE_S = 1.0
LINE = "embedded sequencer"
"""The same name for all outages: the same brokers are first in line each time, and know how often
the log has moved."""


@dataclass(frozen=True, slots=True)
class WatchedEpoch:
    """`is_claimed` says whether the next epoch is claimed; `writer` is the broker's current one."""

    end: EpochEnd
    is_claimed: Callable[[], Awaitable[bool]]
    writer: Callable[[], WriterId]


class ServerWatch:
    """`signs` reads the bucket, `random` spreads the checks of several brokers."""

    def __init__(
        self,
        epoch: WatchedEpoch,
        *,
        sequencer: Sequencer,
        servers: Servers,
        signs: EpochSignReader,
        membership: Membership,
        health: Health,
        interval_ms: int,
        random: Random,
    ) -> None:
        self._epoch = epoch
        self._end = epoch.end
        self._sequencer = sequencer
        self._servers = servers
        self._signs = signs
        self._membership = membership
        self._health = health
        self._interval_s = interval_ms / 1000
        self._random = random
        self._returned_look_s = 0.0

    async def run(self) -> None:
        """Call the sequencer regularly, so that an idle broker notices outages and lost state."""
        outage = Outage(self._servers.limits, now_s=_now_s(), own=self._membership.incarnation)
        pause_s = self._interval_s
        while self._end.reason is None:
            await asyncio.sleep(pause_s)
            asked_s, pause_s = _now_s(), self._interval_s
            try:
                await self._check_state(outage)
            except SequencerUnavailableError as error:
                self._health.degrade(BrokerPart.SEQUENCER, str(error))
                if self._servers.may_switch:
                    outage.note_answer(self._membership.heard_at)
                    await self._note_silence(outage)
                    pause_s = min(OUTAGE_PAUSE_S, pause_s)
            except SequencerError as error:
                self._end.end(str(error))
            else:
                self._health.recover(BrokerPart.SEQUENCER)
                outage.note_answer(asked_s)
                self._servers.note_contact()
                await self._look_back()

    async def watch_for_seal(self, look_ms: int) -> None:
        """Check for a seal while no heartbeat of this broker is answered. If others have sealed its
        chain, they reach the sequencer, and clients have to go to them."""
        look_s = look_ms / 1000
        while self._end.reason is None:
            await asyncio.sleep(look_s)
            silent_s = _now_s() - self._membership.heard_at
            if silent_s < self._interval_s + look_s or self._membership.is_withdrawn:
                continue
            with suppress(BucketlogError):  # those who need the bucket report the error
                signs = await self._signs.look(self._end.epoch)
                if self._epoch.writer() not in signs.live:
                    self._membership.note_sealed_off(silent_since=_now_s() - silent_s)

    async def _check_state(self, outage: Outage) -> None:
        if not self._servers.may_switch:
            await self._sequencer.check_state(self._end.epoch)
            return
        try:
            async with asyncio.timeout(outage.call_timeout_s(_now_s())):
                await self._sequencer.check_state(self._end.epoch)
        except TimeoutError:
            raise SequencerUnavailableError(
                "Redis does not answer", remedy="check that it runs; the call is repeated"
            ) from None

    async def _note_silence(self, outage: Outage) -> None:
        """End the epoch if others have claimed the next one, or if it is this broker's turn."""
        epoch = self._end.epoch
        if await self._epoch.is_claimed():
            self._end.end(f"epoch {epoch + 1} is claimed")
            return
        place = self._membership.place_in_line(LINE)
        is_gone = await self._servers.is_server_gone()
        step = outage.step(_now_s(), is_gone=is_gone, place=0 if self._holds_dead() else place)
        if step is OutageStep.LOOK:
            try:
                signs = await self._signs.look(epoch)
            except BucketlogError:
                return  # those who need the bucket report the error
            outage.note_signs(
                signs,
                _now_s(),
                is_sealed=self._epoch.writer() not in signs.live,
                place=place,
                drawn=self._random.random(),
            )
            self._health.degrade(BrokerPart.SEQUENCER, outage.reason)
        elif step is OutageStep.LEAVE:
            self._servers.give_mandate(Mandate(epoch, Wish.ELECT))
            self._end.end(
                f"the sequencer's server has not answered for {outage.silent_s(_now_s()):.1f} s"
            )

    def _holds_dead(self) -> bool:
        return self._servers.holds_server and not self._servers.runs_server

    async def _look_back(self) -> None:
        """End the epoch if this broker runs the Valkey and the configured Redis is back."""
        if _now_s() - self._returned_look_s < RETURN_PAUSE_S:
            return
        self._returned_look_s = _now_s()
        if await self._servers.may_return():
            self._servers.give_mandate(Mandate(self._end.epoch, Wish.RETURN))
            self._end.end("the configured Redis answers again: the log moves back to it")


def _now_s() -> float:
    return asyncio.get_running_loop().time()
