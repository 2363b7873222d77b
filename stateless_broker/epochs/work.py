"""What a broker does within one epoch: its commit path, its view's feed, its consumer groups, and
the watches over them.

Invariant: all of it belongs to the one epoch that was joined, and ends with it; what outlives
epochs (`BrokerParts`) is the broker's.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from bucketlog.errors import BucketError, SequencerError, SequencerUnavailableError
from bucketlog.model import WriterId
from stateless_broker.consumer_groups import ConsumerGroups
from stateless_broker.duties.roster import Duties
from stateless_broker.duties.sealing import OverdueWatch, Sealer
from stateless_broker.epochs.broker_parts import BrokerParts
from stateless_broker.epochs.claim_watch import FRESH_PARTS, ClaimWatch
from stateless_broker.epochs.end import EpochEnd
from stateless_broker.epochs.joining import Joined, read_visible_log
from stateless_broker.fetch.feed import ViewFeed
from stateless_broker.handlers.routes import Parts
from stateless_broker.produce.commit import CommitSettings, Committer
from stateless_broker.produce.segment_writing import SegmentWriter
from stateless_broker.produce.until_answered import UntilAnswered
from stateless_broker.supervisor import Supervisor
from tiered_storage import keys
from tiered_storage.log_cut import stalled_partitions

BLOCK_MS = 1000
"""How long a call to Redis may wait for news at most; less than it may take."""
OF_AN_EPOCH = ("bucket", "redis", "sealing", "sequencer", "stream", "writer")
"""What its work tells as degraded: nobody asks any more when it has ended."""
DAY_MS = 86_400_000
"""Where this broker deletes nothing, another one may, after the default safety age."""


class EpochWork:
    """The broker's view shows what was joined already. `end` says when the epoch is over."""

    def __init__(self, joined: Joined, broker: BrokerParts) -> None:
        self._joined = joined
        self._broker = broker
        self._tasks = Supervisor()
        self.epoch = epoch = joined.epoch
        self.end = EpochEnd(epoch)
        self._claims = ClaimWatch(
            epoch=epoch,
            highest_claim=broker.starter.highest_epoch,
            fresh_ms=(broker.settings.deletion_safety_age_ms or DAY_MS) // FRESH_PARTS,
            now_ms=broker.now_ms,
        )
        self._sealer = Sealer(
            epoch=epoch,
            bucket=broker.bucket,
            committed=broker.committed,
            sequencer=broker.sequencer,
            claims=self._claims,
            health=broker.health,
            now_ms=broker.now_ms,
        )
        self.committer = self._make_committer()
        self._feed = ViewFeed(
            end=self.end,
            view=broker.view,
            sequencer=broker.sequencer,
            committer=self.committer,
            health=broker.health,
            watchers=broker.watchers,
            known=broker.committed.known,
            cache=broker.reader.cache,
            last=joined.log.number,
            block_ms=max(1, min(BLOCK_MS, broker.settings.redis_timeout_ms // 2)),
            read_anew=lambda: read_visible_log(
                epoch, sequencer=broker.sequencer, committed=broker.committed
            ),
        )
        self.groups = ConsumerGroups(
            end=self.end,
            settings=broker.settings,
            view=broker.view,
            feed=self._feed,
            is_newest=self._is_newest,
            committer=self.committer,
            sequencer=broker.sequencer,
            membership=broker.membership,
            supervisor=broker.supervisor,
            epoch_began_ms=joined.began_ms,
            wall_ms=broker.membership.now_ms,
            own_ms=broker.now_ms,
            new_uuid=broker.new_uuid,
        )
        self.duties = Duties(broker, epoch=epoch, feed=self._feed)

    def _make_committer(self) -> Committer:
        broker, settings = self._broker, self._broker.settings
        until_answered = UntilAnswered(
            broker.health, self.end, longest_pause_ms=settings.put_retry_ms
        )
        return Committer(
            end=self.end,
            intake=broker.intake,
            writer=self._joined.writer,
            register_writer=self._register_writer,
            is_newest=self._is_newest,
            topic_name=broker.view.topic_name,
            sequencer=broker.sequencer,
            segment_writer=SegmentWriter(
                epoch=self.epoch,
                bucket=broker.write_bucket,
                sequencer=broker.sequencer,
                claims=self._claims,
                until_answered=until_answered,
                put_give_up_ms=settings.put_give_up_ms,
            ),
            sealer=self._sealer,
            until_answered=until_answered,
            supervisor=self._tasks,
            health=broker.health,
            on_failure=broker.on_failure,
            settings=CommitSettings(
                flush_interval_ms=settings.flush_interval_effective_ms,
                flush_bytes=settings.flush_bytes,
                puts_in_flight=settings.puts_in_flight,
            ),
            now_ms=broker.now_ms,
        )

    async def _register_writer(self) -> WriterId:
        broker = self._broker
        broker.membership.writer = writer = await broker.starter.register_writer(self.epoch)
        return writer

    def start(self) -> None:
        broker, settings, committer = self._broker, self._broker.settings, self.committer
        overdue = OverdueWatch(
            end=self.end,
            sequencer=broker.sequencer,
            sealer=self._sealer,
            place_in_line=broker.membership.place_in_line,
            is_own=lambda writer: writer == committer.writer,
            request_stamps=committer.request_stamps,
            silent_ms=settings.session_timeout_ms,
            pending_ms=settings.reservation_limit_ms,
            round_ms=max(1, settings.heartbeat_interval_ms // 2),
        )
        self._spawn(self._watch_state(), "the state's watch")
        self._spawn(self._feed.run(), "the view's feed")
        self._spawn(committer.run(), "the commit path")
        self._spawn(overdue.run(self._spawn), "the watch over other writers")
        self.groups.start(on_failure=broker.on_failure, supervisor=self._tasks)
        for name, work in self.duties.wanted():
            self._spawn_duty(work, name)
        if self._joined.claimed_here:
            log = self._joined.log
            committer.request_stamps(stalled_partitions(log.segments, log.checkpoint))

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.spawn(work, name, on_failure=self._broker.on_failure)

    def _spawn_duty(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """The broker works on without it."""
        health = self._broker.health
        self._tasks.spawn(work, name, on_failure=lambda error: health.degrade(name, repr(error)))

    async def stop(self) -> None:
        """Until nothing of it is at work."""
        await self._tasks.cancel_all()
        for part in OF_AN_EPOCH:
            self._broker.health.recover(part)

    async def _watch_state(self) -> None:
        """An idle broker, too, finds out that the sequencer lost its state."""
        broker = self._broker
        while self.end.reason is None:
            await asyncio.sleep(broker.settings.heartbeat_interval_ms / 1000)
            try:
                await broker.sequencer.check_state(self.epoch)
            except SequencerUnavailableError as error:
                broker.health.degrade("sequencer", str(error))
            except SequencerError as error:
                self.end.tell(str(error))
            else:
                broker.health.recover("sequencer")

    async def _is_newest(self) -> bool:
        """Whether this epoch was the newest a moment ago: claims follow one another."""
        try:
            return await self._broker.bucket.head(keys.epoch_claim(self.epoch + 1)) is None
        except BucketError:
            return False

    def parts(self) -> Parts:
        """What handlers are made of."""
        broker = self._broker
        return Parts(
            settings=broker.settings,
            view=broker.view,
            reader=broker.reader,
            sequencer=broker.sequencer,
            intake=broker.intake,
            groups=self.groups,
            membership=broker.membership,
            watchers=broker.watchers,
            supervisor=broker.supervisor,
            health=broker.health,
            end=self.end,
            now_ms=broker.now_ms,
            new_uuid=broker.new_uuid,
        )
