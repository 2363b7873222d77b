"""What a broker does within one epoch: its view, its commit path, and the watches over both.

Invariant: all of it belongs to the one epoch that was joined; nothing of it outlives the epoch's
end, which `Health` tells.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from bucketlog.errors import SequencerError, SequencerUnavailableError
from bucketlog.model import WallClock, WriterId
from metadata.sequencer.client import Sequencer
from metadata.view import View
from stateless_broker.activation import EpochStarter
from stateless_broker.checkpointing import DUTY, Checkpointer, CheckpointSettings
from stateless_broker.commit import CommitSettings, Committer
from stateless_broker.committed import CommittedLog
from stateless_broker.consumer_groups import ConsumerGroups
from stateless_broker.feed import ViewFeed, Watchers
from stateless_broker.health import Health
from stateless_broker.joining import Joined, read_visible_log
from stateless_broker.membership import Membership
from stateless_broker.routes import Parts
from stateless_broker.sealing import OverdueWatch, Sealer
from stateless_broker.segment_writing import SegmentWriter
from stateless_broker.settings import BrokerSettings
from stateless_broker.supervisor import Supervisor
from stateless_broker.until_answered import UntilAnswered
from tiered_storage.bucket import Bucket
from tiered_storage.log_cut import stalled_partitions


class EpochWork:
    """`bucket` retries reads and small writes; `write_bucket` does not: the commit path does."""

    def __init__(
        self,
        *,
        joined: Joined,
        settings: BrokerSettings,
        write_bucket: Bucket,
        bucket: Bucket,
        committed: CommittedLog,
        starter: EpochStarter,
        sequencer: Sequencer,
        membership: Membership,
        health: Health,
        supervisor: Supervisor,
        now_ms: WallClock,
    ) -> None:
        self._joined = joined
        self._epoch = joined.epoch
        self._settings = settings
        self._bucket = bucket
        self._committed = committed
        self._starter = starter
        self._sequencer = sequencer
        self._membership = membership
        self._health = health
        self._supervisor = supervisor
        self._now_ms = now_ms
        self.view = View()
        self.view.rebuild(joined.log.segments, joined.log.checkpoint)
        self.watchers = Watchers()
        self._sealer = Sealer(
            epoch=self._epoch,
            bucket=bucket,
            committed=committed,
            sequencer=sequencer,
            health=health,
            now_ms=now_ms,
        )
        self.committer = self._make_committer(write_bucket)
        self.feed = ViewFeed(
            epoch=self._epoch,
            view=self.view,
            sequencer=sequencer,
            committer=self.committer,
            health=health,
            watchers=self.watchers,
            last=joined.log.number,
            read_anew=lambda: read_visible_log(
                self._epoch, sequencer=sequencer, committed=committed
            ),
        )
        self.groups = ConsumerGroups(
            epoch=self._epoch,
            settings=settings,
            view=self.view,
            feed=self.feed,
            committer=self.committer,
            sequencer=sequencer,
            membership=membership,
            health=health,
            supervisor=supervisor,
            wall_ms=membership.now_ms,
        )

        self.checkpointer = self._make_checkpointer()

    def _make_checkpointer(self) -> Checkpointer:
        settings = self._settings
        return Checkpointer(
            epoch=self._epoch,
            bucket=self._bucket,
            committed=self._committed,
            view=self.view,
            catch_up=self.feed.catch_up,
            visible=lambda: self.feed.visible,
            place_in_line=self._membership.place_in_line,
            health=self._health,
            settings=CheckpointSettings(
                interval_ms=settings.checkpoint_interval_ms, segments=settings.checkpoint_segments
            ),
            now_ms=self._now_ms,
        )

    def _make_committer(self, write_bucket: Bucket) -> Committer:
        settings = self._settings
        until_answered = UntilAnswered(self._health, longest_pause_ms=settings.put_retry_ms)
        return Committer(
            epoch=self._epoch,
            writer=self._joined.writer,
            register_writer=self._register_writer,
            topic_name=self.view.topic_name,
            sequencer=self._sequencer,
            segment_writer=SegmentWriter(
                epoch=self._epoch,
                bucket=write_bucket,
                sequencer=self._sequencer,
                until_answered=until_answered,
                put_give_up_ms=settings.put_give_up_ms,
            ),
            sealer=self._sealer,
            until_answered=until_answered,
            health=self._health,
            supervisor=self._supervisor,
            settings=CommitSettings(
                flush_interval_ms=settings.flush_interval_effective_ms,
                flush_bytes=settings.flush_bytes,
                puts_in_flight=settings.puts_in_flight,
            ),
            now_ms=self._now_ms,
        )

    async def _register_writer(self) -> WriterId:
        self._membership.writer = writer = await self._starter.register_writer(self._epoch)
        return writer

    def start(self, *, on_failure: Callable[[Exception], None]) -> asyncio.Task[None]:
        """Its tasks are the supervisor's; returns the commit path's."""
        settings, committer = self._settings, self.committer

        def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return self._supervisor.spawn(work, name, on_failure=on_failure)

        overdue = OverdueWatch(
            epoch=self._epoch,
            sequencer=self._sequencer,
            sealer=self._sealer,
            place_in_line=self._membership.place_in_line,
            is_own=lambda writer: writer == committer.writer,
            request_stamps=committer.request_stamps,
            health=self._health,
            silent_ms=settings.session_timeout_ms,
            pending_ms=settings.reservation_limit_ms,
            round_ms=max(1, settings.heartbeat_interval_ms // 2),
        )
        spawn(self._watch_state(), "the state's watch")
        spawn(self.feed.run(), "the view's feed")
        commit_path = spawn(committer.run(), "the commit path")
        spawn(overdue.run(spawn), "the watch over other writers")
        if settings.checkpoint_interval_ms:
            self._supervisor.spawn(
                self.checkpointer.run(),
                DUTY,
                on_failure=lambda e: self._health.degrade(DUTY, repr(e)),
            )
        self.groups.start(on_failure=on_failure, supervisor=self._supervisor)
        if self._joined.claimed_here:
            log = self._joined.log
            committer.request_stamps(stalled_partitions(log.segments, log.checkpoint))
        return commit_path

    async def _watch_state(self) -> None:
        """An idle broker, too, finds out that the sequencer lost its state, and says so."""
        while self._health.stopped is None:
            await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
            try:
                await self._sequencer.check_state(self._epoch)
            except SequencerUnavailableError as error:
                self._health.degrade("sequencer", str(error))
            except SequencerError as error:
                self._health.stop_writing(str(error))
            else:
                self._health.recover("sequencer")

    def parts(self) -> Parts:
        """What handlers are made of."""
        return Parts(
            settings=self._settings,
            view=self.view,
            bucket=self._bucket,
            sequencer=self._sequencer,
            committer=self.committer,
            feed=self.feed,
            groups=self.groups,
            membership=self._membership,
            health=self._health,
            watchers=self.watchers,
            supervisor=self._supervisor,
            epoch=self._epoch,
            now_ms=self._now_ms,
        )
