"""A broker without sockets: its parts put together, from the bucket and Redis to the handlers.

Invariant: whatever a broker does not decide by itself comes in through `NodeEnvironment`, so that
the simulation runs these very parts. Requests may be handed to `dispatcher` once `begin` has
returned.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketlogError, SequencerError
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.live_brokers import ListenerAddress, broker_address
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.broker_parts import (
    BrokerParts,
    ClusterParts,
    ServedLog,
    Storage,
    WorkCounts,
)
from bucketlog.stateless_broker.assembly.epochs import Epochs
from bucketlog.stateless_broker.assembly.joining_parts import make_joiner, make_servers
from bucketlog.stateless_broker.assembly.logins import credential_seal, token_secrets
from bucketlog.stateless_broker.assembly.node_environment import NodeEnvironment
from bucketlog.stateless_broker.epochs.activation import EpochStarter
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSignReader
from bucketlog.stateless_broker.epochs.known_segments import KnownSegments
from bucketlog.stateless_broker.epochs.servers import Servers
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.stateless_broker.handlers.batch_validation import BatchValidation, ValidationLimits
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.membership.membership import Membership, MembershipTimeouts
from bucketlog.stateless_broker.network.dispatch import Dispatcher
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.listener_addresses import ListenerSpec
from bucketlog.stateless_broker.supervision import Supervision, Supervisor
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.hedging import HedgePolicy, HedgeSettings, HedgingBucket
from bucketlog.tiered_storage.identity import bucket_mark, ensure_cluster
from bucketlog.tiered_storage.probe import probe
from bucketlog.tiered_storage.retry import RetryBucket
from bucketlog.tiered_storage.retry_steps import bucket_backoff

T = TypeVar("T")

logger = logging.getLogger(__name__)

START_PAUSE_S = 0.5
READ_RETRY = bucket_backoff(10_000)
START_RETRY = bucket_backoff(500)
"""A short limit: an observer of a start soon sees what the start waits for."""


class Node:
    """`begin`, then `serve`, then `leave`, then `close`; what never began is closed all the
    same. It owns the surroundings' ways to the bucket."""

    def __init__(
        self,
        settings: BrokerSettings,
        surroundings: NodeEnvironment,
        *,
        health: Health,
        counts: WorkCounts | None = None,
        listeners: Sequence[ListenerSpec] | None = None,
        answers: MemoryBudget | None = None,
    ) -> None:
        """`listeners` are those of the clients, by default all of the settings. `answers` is a
        budget that other nodes use, too."""
        self._settings = settings
        self._listeners = settings.listener_specs if listeners is None else listeners
        self._surroundings = surroundings
        self._health = health
        self._counts = counts or WorkCounts()
        self.answers = answers or MemoryBudget(
            settings.response_memory_bytes_max,
            address_percent_max=settings.response_memory_address_percent_max,
        )
        """The memory of responses."""
        self._supervision = Supervision(Supervisor(), health, self._fatal)
        self.dispatcher = Dispatcher(
            supervisor=self._supervision.supervisor,
            request_items_max=settings.request_items_max,
            answers=self.answers,
        )
        self._bucket = self._retried(surroundings.bucket, READ_RETRY)
        history = surroundings.history
        self._history = self._retried(history, READ_RETRY) if history is not None else None
        connect = surroundings.connect_redis
        self._redis = connect() if connect is not None else None
        self._bucket_mark = ""
        self.servers: Servers | None = None
        """The servers that the sequencer may use; None before `begin`."""
        self._membership: Membership | None = None
        self._epochs: Epochs | None = None
        self._parts: BrokerParts | None = None
        self.heartbeat: asyncio.Task[None] | None = None
        """Tells the cluster that this broker lives; None before it has joined."""
        self.lifeline: asyncio.Task[None] | None = None
        """Ends with this broker, so that the others notice; None if lifelines are off."""

    @property
    def membership(self) -> Membership:
        assert self._membership is not None, "not begun yet"
        return self._membership

    @property
    def view(self) -> View | None:
        """View of the log; None before `begin`."""
        return None if self._parts is None else self._parts.log.view

    @property
    def parts(self) -> BrokerParts:
        assert self._parts is not None, "not begun yet"
        return self._parts

    @property
    def epochs(self) -> Epochs:
        assert self._epochs is not None, "not begun yet"
        return self._epochs

    async def begin(self, ports: Sequence[int]) -> int:
        """Join the cluster; `ports` are those of the listeners. Returns the epoch that was joined.
        Redis and the bucket are waited for, if need be. Raises `BucketlogError`."""
        settings = self._settings
        deadline = asyncio.get_running_loop().time() + settings.start_timeout_ms / 1000
        cluster_id = await self._reach(BrokerPart.BUCKET, deadline, self._cluster_id)
        sequencer = self._make_sequencer(cluster_id)
        self.servers = servers = make_servers(
            settings,
            sequencer,
            self._bucket_mark,
            configured=self._redis,
            embedded=self._surroundings.embedded,
        )
        self._membership = membership = self._make_membership(sequencer, cluster_id, ports)
        self._parts = self._make_parts(sequencer, servers, membership)
        self._health.runs_valkey = lambda: servers.runs_server
        joiner = make_joiner(self._parts)
        self._epochs = Epochs(self._parts, joiner, self.dispatcher)
        self._supervision.spawn(
            servers.follow_primary(settings.redis_lookup_interval_ms), "the way to the primary"
        )
        self._supervision.spawn(
            self._parts.storage.reader.recover(),
            "the check whether the bucket answers reads again",
        )
        await self._reach(BrokerPart.REDIS, deadline, joiner.select_server)
        await self._reach(BrokerPart.REDIS, deadline, sequencer.check_server)
        await self._reach(BrokerPart.REDIS, deadline, membership.join)
        self.heartbeat = self._supervision.spawn(
            membership.run(settings.heartbeat_interval_ms), "the heartbeat"
        )
        if settings.lifeline_grace_ms:
            self.lifeline = self._supervision.spawn(membership.lifeline.run(), "the lifeline")
        epoch = await self._reach(BrokerPart.JOINING, deadline, self._epochs.begin)
        sequencer.note_start_complete()
        return epoch

    def _retried(self, bucket: Bucket, backoff: Backoff) -> RetryBucket:
        surroundings = self._surroundings
        return RetryBucket(
            bucket,
            backoff,
            random=surroundings.random,
            monotonic=surroundings.monotonic,
        )

    async def _cluster_id(self) -> str:
        surroundings = self._surroundings
        bucket = self._retried(surroundings.bucket, START_RETRY)
        nonce = surroundings.new_uuid().hex
        await probe(bucket, nonce=nonce, name=self._settings.bucket_url)
        identity = await ensure_cluster(
            bucket, new_cluster_id=surroundings.new_uuid(), now_ms=surroundings.now_ms()
        )
        if surroundings.embedded is not None:
            self._bucket_mark = await bucket_mark(bucket, self._settings.bucket_url)
        return str(identity.cluster_id)

    async def _reach(
        self, part: BrokerPart, deadline: float, call: Callable[[], Awaitable[T]]
    ) -> T:
        """Repeat `call` after retriable errors until `deadline`; meanwhile `/readyz` says why."""
        while True:
            try:
                answer = await call()
            except BucketlogError as error:
                late = asyncio.get_running_loop().time() + START_PAUSE_S > deadline
                if late or not error.retriable:
                    raise
                self._health.degrade(part, str(error))
                await asyncio.sleep(START_PAUSE_S)
            else:
                self._health.recover(part)
                return answer

    async def serve(self) -> None:
        """Have clients sent to this broker from now on. Waits up to `start_timeout_ms` for Redis.
        Raises `BucketlogError`."""
        deadline = asyncio.get_running_loop().time() + self._settings.start_timeout_ms / 1000
        await self._reach(BrokerPart.REDIS, deadline, self.membership.serve)

    async def hand_over(self) -> None:
        """Send clients to the other brokers: those brokers do so first, then this one, too. So
        clients find them before their connections are closed. Without others, return at once."""
        await self._leave_cluster(Membership.stop_serving)
        settings, membership = self._settings, self._membership
        if self._epochs is None or membership is None or not settings.handover_ms:
            return
        if not membership.has_joined or membership.serving == (membership.me,):
            return
        left_s = settings.drain_timeout_ms / 2000  # half of it is for what was taken
        heard_s = min(settings.heartbeat_interval_ms / 1000, left_s)
        await asyncio.sleep(heard_s)  # until they have heard
        membership.note_left()
        self._epochs.leave()
        await asyncio.sleep(min(settings.handover_ms / 1000, left_s - heard_s))

    async def drain(self, deadline: float) -> None:
        """Give up groups, flush and answer what was taken, until `deadline` (of the event loop's
        clock). The rest is reported."""
        if self._epochs is None:
            return
        self._epochs.leave()
        try:
            async with asyncio.timeout_at(deadline):
                await self.parts.validation.drained()
                await self._epochs.drained()
        except TimeoutError:
            logger.error(
                "stopping after BUCKETLOG_DRAIN_TIMEOUT_MS (%d): %s; clients that were not answered"
                " will ask another broker. Why: %s",
                self._settings.drain_timeout_ms,
                self._epochs.unsettled(),
                self._health.report(),
            )

    async def close(self) -> None:
        """Stop all work, and leave the cluster."""
        if self._epochs is not None:
            await self._epochs.stop()
        await self._supervision.supervisor.cancel_all()
        if self._parts is not None:
            await self._parts.validation.close()
            await self._parts.log.keys.close()
        await self._leave_cluster(Membership.leave)
        if self.servers is not None:
            await self.servers.close()
        await self._bucket.close()
        if self._history is not None:
            await self._history.close()

    def _make_sequencer(self, cluster_id: str) -> Sequencer:
        return Sequencer(
            self._redis,
            cluster_id=cluster_id,
            shard=self._settings.shard,
            stream_segments_max=self._settings.stream_segments_max,
            stream_bytes_max=self._settings.stream_bytes_max,
            producers_max=self._settings.producers_max,
            transaction_limits=self._settings.transaction_limits,
            now_ms=self._surroundings.sequencer_now_ms,
        )

    def _make_membership(
        self, sequencer: Sequencer, cluster_id: str, ports: Sequence[int]
    ) -> Membership:
        settings = self._settings
        bound = zip(self._listeners, ports, strict=True)
        return Membership(
            sequencer=sequencer,
            cluster_id=cluster_id,
            incarnation=self._surroundings.new_uuid().hex,
            node_id=settings.node_id,
            address=broker_address(
                [ListenerAddress(spec.name, *spec.reached_at(port)) for spec, port in bound],
                settings.zone,
            ),
            timeouts=MembershipTimeouts(
                settings.session_timeout_ms,
                settings.role_timeout_effective_ms,
                settings.withdrawal_ms,
                settings.lifeline_grace_ms,
            ),
            health=self._health,
        )

    def _make_parts(
        self, sequencer: Sequencer, servers: Servers, membership: Membership
    ) -> BrokerParts:
        settings, surroundings, bucket = self._settings, self._surroundings, self._bucket
        committed = CommittedLog(
            bucket,
            footer_reads_in_flight=settings.footer_reads_in_flight,
            known=KnownSegments(batches_max=settings.known_batches_max),
            checkpoint_bytes_max=settings.checkpoint_bytes_max,
        )
        starter = EpochStarter(
            bucket=bucket,
            committed=committed,
            sequencer=sequencer,
            incarnation=membership.incarnation,
            now_ms=surroundings.now_ms,
            new_id=lambda: surroundings.new_uuid().hex,
            endpoint=lambda: servers.endpoint,
            bucket_mark=self._bucket_mark,
        )
        clocks = surroundings.now_ms, surroundings.monotonic
        log = ServedLog.empty(settings, self._health, clocks, surroundings.random, self._counts)
        return BrokerParts(
            settings=settings,
            storage=Storage(
                bucket=bucket,
                write_bucket=self._hedged(),
                committed=committed,
                reader=RangeReader.of(
                    bucket, self._health, settings, history=self._history, counts=self._counts.reads
                ),
            ),
            cluster=ClusterParts(
                sequencer=sequencer,
                servers=servers,
                membership=membership,
                signs=EpochSignReader(bucket, committed),
                starter=starter,
                random=surroundings.random,
            ),
            log=log,
            validation=BatchValidation(
                ValidationLimits(
                    threads=settings.validation_threads,
                    bytes_max=settings.validation_bytes_max,
                    inline_bytes_max=settings.validation_inline_bytes_max,
                    batch_records_max=settings.batch_records_max,
                    batch_decompressed_bytes_max=settings.batch_decompressed_bytes_max,
                ),
                self._supervision.supervisor,
                surroundings.turns,
                log.keys,
            ),
            supervision=self._supervision,
            now_ms=surroundings.now_ms,
            new_uuid=surroundings.new_uuid,
            seal=credential_seal(settings, membership.cluster_id),
            token_secrets=token_secrets(settings, membership.cluster_id),
            turns=surroundings.turns,
            counts=self._counts,
        )

    def _hedged(self) -> CountingBucket | HedgingBucket:
        """Return the bucket for segments, which sends slow PUTs twice if the settings ask for
        it."""
        counting, quantile = self._surroundings.bucket, self._settings.put_hedge_quantile_effective
        if not quantile:
            return counting
        share_max = self._settings.put_hedge_percent_max / 100
        policy = HedgePolicy(HedgeSettings(quantile=quantile, share_max=share_max))
        monotonic = self._surroundings.monotonic
        return HedgingBucket(counting, policy, monotonic=monotonic, on_hedge=counting.count_hedge)

    def _fatal(self, error: Exception) -> None:
        self._health.stop_writing(f"a part of the broker failed: {error!r}; restart it")

    async def _leave_cluster(self, what: Callable[[Membership], Awaitable[None]]) -> None:
        """Report to the cluster that this broker leaves. A Redis that has not answered lately is
        not asked."""
        if self._membership is None or not self._membership.has_joined:
            return
        if self._health.is_degraded(BrokerPart.HEARTBEAT):
            logger.warning(
                "left without saying so: %s", self._health.report()[BrokerPart.HEARTBEAT]
            )
            return
        try:
            await what(self._membership)
        except SequencerError as error:
            logger.warning("left without saying so: %s", error)
