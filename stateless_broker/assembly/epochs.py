"""Epochs, one after another: the work of the current one, and the way into the next.

Invariants: an epoch's work has ended before the next one is joined, which is always a higher one.
The view never shows less: it is as whole as before when a held batch is acknowledged. Only the new
epoch's chains settle what the old epoch left undecided (`UnsettledWork`). Connections, and requests
that wait, outlive epochs: they are given to the handlers of the current epoch.
"""

import asyncio
import logging

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketlogError, CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import WriterId
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.assembly.epoch_work import EpochWork
from bucketlog.stateless_broker.assembly.routes import make_routes
from bucketlog.stateless_broker.epochs.joining import JoinedEpoch, Joiner, VisibleLog
from bucketlog.stateless_broker.handlers.produce_outcomes import LED_BY_OTHERS
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.stateless_broker.network.dispatch import Dispatcher
from bucketlog.stateless_broker.produce.unsettled import UnsettledWork, final_positions

logger = logging.getLogger(__name__)

BACKOFF = Backoff(first_pause_ms=100, longest_pause_ms=5000)


class Epochs:
    """Call `begin` first. `work` is that of the current epoch, or of the last one between
    epochs."""

    def __init__(self, broker: BrokerParts, joiner: Joiner, dispatcher: Dispatcher) -> None:
        self._broker = broker
        self._joiner = joiner
        self._work: EpochWork | None = None
        self._held: UnsettledWork | None = None
        self._dispatcher = dispatcher
        self._over = asyncio.Event()
        self._entered = asyncio.Event()
        self._supervision = broker.supervision.with_own_tasks()
        self._leaving = False
        self._health = broker.supervision.health
        self._health.on_stop(self._refuse)
        broker.cluster.membership.on_change(self._send_clients_away)

    @property
    def work(self) -> EpochWork:
        assert self._work is not None, "no epoch has begun yet"
        return self._work

    @property
    def view(self) -> View:
        return self._broker.log.view

    @property
    def group_bytes(self) -> int | None:
        """The memory of the groups that this broker coordinates; None before the first epoch."""
        return None if self._work is None else self._work.groups.memory.used_bytes

    async def begin(self) -> int:
        """Join the first epoch. Raises `BucketlogError`."""
        joined = await self._joiner.join()
        self._broker.log.view.become(await _view_of(joined.log))
        self._enter(joined)
        self._supervision.spawn(self._follow(), "the way from epoch to epoch")
        return joined.epoch

    def leave(self) -> None:
        """Give the groups to the other brokers, because the broker leaves."""
        self._leaving = True
        if self._work is not None:
            self._work.groups.leave()
            self._work.shares.leave()

    async def drained(self) -> None:
        """Wait until everything taken so far is settled, or writing is stopped."""
        health, buffer = self._health, self._broker.log.intake.buffer
        while self._work is not None and health.stopped is None:
            work = self._work
            if work.end.reason is None:
                await self._settled_or_over(work)
                if work.end.reason is None:
                    return
            elif self._held is None and work.committer.is_idle and not buffer:
                return
            else:
                await self._entered.wait()

    def unsettled(self) -> str:
        """Return a text that names the work that `drained` still waits for."""
        held = self._held or self.work.committer.unsettled()
        waiting = self._broker.log.intake.buffer.waiting
        if held.in_hand is not None:
            waiting += held.in_hand.size
        return (
            f"{len(held.segments)} segments are not known to be in the log, {waiting} batches and "
            "changes are not written"
        )

    async def _settled_or_over(self, work: EpochWork) -> None:
        waits = [
            asyncio.ensure_future(work.committer.drained()),
            asyncio.ensure_future(self._over.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def stop(self) -> None:
        """End the current epoch's work, settled or not."""
        await self._supervision.supervisor.cancel_all()
        if self._work is not None:
            await self._work.stop()

    # From epoch to epoch ---------------------------------------------------------------------

    def _enter(self, joined: JoinedEpoch) -> None:
        work = EpochWork(joined, self._broker)
        work.end.on_end(self._note_end)
        self._dispatcher.serve(
            make_routes(self._broker, work.groups, work.shares, work.end, work.transactions)
        )
        self._work = work
        if self._leaving:
            work.groups.leave()
            work.shares.leave()
        self._over.clear()
        self._entered.set()
        self._health.epoch_began(joined.epoch)
        work.start()

    def _note_end(self) -> None:
        self._health.epoch_ended(self.work.end.reason or "")
        self._entered.clear()
        self._over.set()

    async def _follow(self) -> None:
        while True:
            await self._over.wait()
            await self.work.stop()
            if self._health.stopped is not None:
                return
            self._held = self.work.committer.give_up()
            self._broker.log.intake.end_epoch(self.work.end.reason or "")
            joined = await self._join_next(self._held)
            if joined is None:
                return
            self._enter(joined)

    async def _join_next(self, held: UnsettledWork) -> JoinedEpoch | None:
        """Join the next epoch, and settle everything that was held. Returns None once writing is
        stopped. Waits while Redis or the bucket is out of reach, or other brokers' claims come
        first."""
        health, pauses_s = self._health, BACKOFF.pauses_s()
        while health.stopped is None:
            try:
                joined = await self._joiner.join(self.work.epoch)
                ends = await final_positions(
                    self._broker.storage.bucket, held.first_seqs, epoch=self.work.epoch
                )
                fresh = await _view_of(joined.log)
                if health.stopped is None:
                    self._broker.log.view.become(fresh)
            except (CorruptObjectError, InvalidDataError) as error:
                health.stop_writing(f"no epoch can begin from the bucket: {error}")
            except BucketlogError as error:
                health.degrade(BrokerPart.JOINING, str(error))
                await asyncio.sleep(next(pauses_s))
            else:
                if health.stopped is None:
                    health.recover(BrokerPart.JOINING)
                    self._settle(held, ends, joined)
                    return joined
        return None

    def _settle(
        self, held: UnsettledWork, ends: dict[WriterId, int | None], joined: JoinedEpoch
    ) -> None:
        self._held = None
        lost = held.settle(ends, self._broker.log.intake)
        for fact in lost:
            logger.error("offsets were acknowledged by Redis alone and are lost: %s", fact.wanted)
        self._broker.log.watchers.notify_all()
        logger.info(
            "epoch %d follows epoch %d; %d segments were held",
            joined.epoch,
            self.work.epoch,
            len(held.segments),
        )

    def _send_clients_away(self) -> None:
        """Once this broker has withdrawn, answer all open Produce requests with
        NOT_LEADER_OR_FOLLOWER, including requests that wait for the next epoch. Clients then retry
        at other brokers."""
        if self._broker.cluster.membership.is_withdrawn:
            self._broker.log.intake.deadlines.give_up_all(LED_BY_OTHERS)

    def _refuse(self) -> None:
        """Refuse all held work, because writing is stopped for good."""
        reason = self._health.stopped or ""
        held = [self._held] if self._held is not None else []
        self._held = None
        if self._work is not None:
            self._work.end.end(reason)
            held.append(self._work.committer.give_up())
        for one in held:
            one.refuse(reason)
        self._broker.log.intake.refuse_all(reason)
        self._entered.set()


async def _view_of(log: VisibleLog) -> View:
    """Others have their turn meanwhile: a heartbeat that is late costs the broker its writer."""
    return await asyncio.to_thread(View.of, log.segments, log.checkpoint)
