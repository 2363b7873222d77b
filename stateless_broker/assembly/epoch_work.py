"""The work of a broker within one epoch: its commit path, its view's feed, its consumer groups, and
the watches over them.

Invariant: all of this work belongs to the epoch that was joined, and ends with that epoch. Parts
that outlive epochs are in `BrokerParts`.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from bucketlog.log_format.errors import BucketError
from bucketlog.log_format.model import WriterId
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.assembly.consumer_groups import ConsumerGroups
from bucketlog.stateless_broker.assembly.duty_roster import Duties
from bucketlog.stateless_broker.assembly.share_groups import ShareGroupParts
from bucketlog.stateless_broker.assembly.transaction_parts import TransactionParts
from bucketlog.stateless_broker.epochs.claim_watch import FRESH_PARTS, ClaimWatch
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.epochs.joining import JoinedEpoch, read_visible_log
from bucketlog.stateless_broker.epochs.sealing import OverdueLimits, OverdueWatch, Sealer
from bucketlog.stateless_broker.epochs.server_choice import Mandate, Wish
from bucketlog.stateless_broker.epochs.server_watch import ServerWatch, WatchedEpoch
from bucketlog.stateless_broker.fetch.feed import FedParts, ViewFeed
from bucketlog.stateless_broker.health import BrokerPart, Lifetime
from bucketlog.stateless_broker.produce.commit import CommitSettings, Committer, Writers
from bucketlog.stateless_broker.produce.commit_steps import CommitSteps, PutPace, UntilAnswered
from bucketlog.stateless_broker.produce.fresh_stamps import FreshStamps
from bucketlog.tiered_storage import keys

BLOCK_MS = 1000
"""The longest time that a call to Redis waits for news; at most half of `redis_timeout_ms`."""
DAY_MS = 86_400_000
"""The default safety age: if this broker deletes nothing, another broker may delete after this
time."""


class EpochWork:
    """The work of one epoch. The broker's view shows what was joined already. `end` says when the
    epoch is over."""

    def __init__(self, joined: JoinedEpoch, broker: BrokerParts) -> None:
        self._joined = joined
        self._broker = broker
        self._health = broker.supervision.health
        self._supervision = broker.supervision.with_own_tasks()
        self.epoch = epoch = joined.epoch
        self.end = EpochEnd(epoch)
        storage, cluster = broker.storage, broker.cluster
        self._claims = ClaimWatch(
            epoch=epoch,
            highest_claim=cluster.starter.highest_epoch,
            fresh_ms=(broker.settings.deletion_safety_age_ms or DAY_MS) // FRESH_PARTS,
            now_ms=broker.now_ms,
        )
        self._sealer = Sealer(
            epoch=epoch,
            bucket=storage.bucket,
            committed=storage.committed,
            sequencer=cluster.sequencer,
            claims=self._claims,
            health=self._health,
            now_ms=broker.now_ms,
        )
        self.committer = self._make_committer()
        self._feed = ViewFeed(
            end=self.end,
            sequencer=cluster.sequencer,
            committer=self.committer,
            health=self._health,
            fed=FedParts(
                view=broker.log.view,
                age=broker.log.age,
                watchers=broker.log.watchers,
                known=storage.committed.known,
                cache=storage.reader.cache,
            ),
            last=joined.log.number,
            block_ms=max(1, min(BLOCK_MS, broker.settings.redis_timeout_ms // 2)),
            read_anew=lambda: read_visible_log(
                epoch, sequencer=cluster.sequencer, committed=storage.committed
            ),
        )
        self.committer.on_publish(self._feed.note_published)
        self.groups = ConsumerGroups(
            broker,
            end=self.end,
            feed=self._feed,
            is_newest=self._is_newest,
            committer=self.committer,
            epoch_began_ms=joined.began_ms,
        )
        self.shares = ShareGroupParts(broker, groups=self.groups, end=self.end)
        self.transactions = TransactionParts(
            broker, end=self.end, groups=self.groups, is_newest=self._is_newest
        )
        self.duties = Duties(broker, epoch=epoch, feed=self._feed, renew_epoch=self._renew)

    def _renew(self, reason: str) -> None:
        self._broker.cluster.servers.give_mandate(Mandate(self.epoch, Wish.RENEW))
        self.end.end(reason)

    def _make_committer(self) -> Committer:
        broker, settings = self._broker, self._broker.settings
        until_answered = UntilAnswered(
            self._health, self.end, longest_pause_ms=settings.put_retry_ms
        )
        return Committer(
            end=self.end,
            intake=broker.log.intake,
            writers=Writers(
                self._joined.writer, self._register_writer, self._is_newest, self._sealer
            ),
            steps=CommitSteps(
                epoch=self.epoch,
                bucket=broker.storage.write_bucket,
                sequencer=broker.cluster.sequencer,
                claims=self._claims,
                until_answered=until_answered,
                put_give_up_ms=settings.put_give_up_ms,
                pace=PutPace(settings.put_stalled_ms),
            ),
            topic_name=broker.log.view.topic_name,
            supervision=self._supervision,
            settings=CommitSettings(
                flush_interval_ms=settings.flush_interval_effective_ms,
                flush_bytes=settings.flush_bytes,
                flush_batches_max=settings.flush_batches_max,
                flush_stamps_max=settings.flush_stamps_max,
                puts_in_flight=settings.puts_in_flight,
            ),
            now_ms=broker.now_ms,
        )

    def _make_server_watch(self) -> ServerWatch:
        broker = self._broker
        cluster = broker.cluster
        return ServerWatch(
            WatchedEpoch(self.end, self._is_next_claimed, lambda: self.committer.writer),
            sequencer=cluster.sequencer,
            servers=cluster.servers,
            signs=cluster.signs,
            membership=cluster.membership,
            health=self._health,
            interval_ms=broker.settings.heartbeat_interval_ms,
            random=cluster.random,
        )

    def _make_fresh_stamps(self) -> FreshStamps:
        broker = self._broker
        return FreshStamps(
            end=self.end,
            gaps=lambda: broker.log.view.gaps.ends,
            in_flight=self.committer.stamps_in_flight,
            request=broker.log.intake.request_stamps,
            place_in_line=broker.cluster.membership.place_in_line,
            round_ms=broker.settings.stamp_interval_ms,
        )

    async def _register_writer(self) -> WriterId:
        cluster = self._broker.cluster
        cluster.membership.writer = writer = await cluster.starter.register_writer(self.epoch)
        return writer

    def start(self) -> None:
        cluster, settings, committer = self._broker.cluster, self._broker.settings, self.committer
        spawn = self._supervision.spawn
        overdue = OverdueWatch(
            end=self.end,
            sequencer=cluster.sequencer,
            sealer=self._sealer,
            place_in_line=cluster.membership.place_in_line,
            is_own=lambda writer: writer == committer.writer,
            limits=OverdueLimits(
                silent_ms=settings.session_timeout_ms,
                pending_ms=settings.reservation_limit_ms,
                round_ms=max(1, settings.heartbeat_interval_ms // 2),
            ),
        )
        servers = self._make_server_watch()
        spawn(servers.run(), "the watch over the sequencer's server")
        if settings.seal_look_ms:
            spawn(servers.watch_for_seal(settings.seal_look_ms), "the watch for a seal of others")
        if settings.claim_look_ms:
            spawn(self._watch_claims(settings.claim_look_ms), "the watch for later claims")
        spawn(self._feed.run(), "the view's feed")
        spawn(committer.run(), "the commit path")
        self.end.on_end(cluster.membership.on_change(overdue.look_now))
        spawn(overdue.run(spawn), "the watch over other writers")
        spawn(self._make_fresh_stamps().run(), "fresh stamps")
        self.groups.start(spawn)
        self.shares.start(spawn)
        self.transactions.start(spawn)
        for duty, work in self.duties.wanted():
            self._spawn_duty(work, duty)

    def _spawn_duty(self, work: Coroutine[Any, Any, None], duty: BrokerPart) -> None:
        """The broker works on without it."""
        self._supervision.supervisor.spawn(
            work, duty, on_failure=lambda error: self._health.degrade(duty, repr(error))
        )

    async def stop(self) -> None:
        """Stop all work of the epoch, and wait until it has ended."""
        await self._supervision.supervisor.cancel_all()
        self._health.recover_all(Lifetime.EPOCH)

    async def _watch_claims(self, interval_ms: int) -> None:
        """Lets an idle broker find out that others have begun a later epoch on another Redis."""
        while self.end.reason is None:
            await asyncio.sleep(interval_ms / 1000)
            if await self._is_next_claimed():
                self.end.end(f"epoch {self.epoch + 1} is claimed")

    async def _is_next_claimed(self) -> bool:
        """Return whether the next epoch is claimed. False if the bucket does not answer: the parts
        that need the bucket report the error."""
        try:
            return (
                await self._broker.storage.bucket.head(keys.epoch_claim(self.epoch + 1)) is not None
            )
        except BucketError:
            return False

    async def _is_newest(self) -> bool:
        """Return whether this epoch was the newest a moment ago. Claims have consecutive numbers,
        so one key shows this. False if the bucket does not answer."""
        try:
            return await self._broker.storage.bucket.head(keys.epoch_claim(self.epoch + 1)) is None
        except BucketError:
            return False
