"""The composition root: a broker's parts, put together, started and stopped in order.

Invariant: it listens only when its epoch is active and its view is whole; it goes by flushing what
it took. Clock, randomness, bucket and Redis enter here and nowhere else.
"""

import asyncio
import gc
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import uuid4

from bucketlog.errors import ConfigurationError, SequencerError
from metadata.sequencer.client import Sequencer, connect_redis
from metadata.sequencer.requests import BrokerAddress
from metadata.view import View
from stateless_broker.activation import EpochStarter
from stateless_broker.committed import CommittedLog
from stateless_broker.epoch_work import BrokerParts
from stateless_broker.epochs import Epochs
from stateless_broker.feed import Watchers
from stateless_broker.health import Health
from stateless_broker.http_endpoint import HttpEndpoint, application
from stateless_broker.intake import Intake
from stateless_broker.joining import Joiner
from stateless_broker.listener import Listener
from stateless_broker.membership import Membership
from stateless_broker.memory_budget import MemoryBudget
from stateless_broker.metrics import BrokerFigures
from stateless_broker.settings import BrokerSettings
from stateless_broker.supervisor import Supervisor
from tiered_storage.bucket import Bucket
from tiered_storage.counting import CountingBucket
from tiered_storage.hedging import HedgePolicy, HedgeSettings, HedgingBucket
from tiered_storage.identity import ensure_cluster
from tiered_storage.location import open_bucket
from tiered_storage.probe import probe
from tiered_storage.retry import RetryBucket, RetryPolicy

logger = logging.getLogger(__name__)

DRAIN_TIMEOUT_S = 30.0
READ_RETRY = RetryPolicy(give_up_after_ms=10_000)


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Ready:
    """What a started broker tells."""

    host: str
    port: int
    http_port: int
    node_id: int
    cluster_id: str
    epoch: int


class Broker:
    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._health = Health()
        self._supervisor = Supervisor()
        self._budget = MemoryBudget(settings.produce_buffer_bytes)
        self._membership: Membership | None = None
        self._sequencer: Sequencer | None = None
        self._bucket: RetryBucket | None = None
        self._epochs: Epochs | None = None
        self._listening: socket.socket | None = None
        self._listener: Listener | None = None
        self._http: HttpEndpoint | None = None

    async def start(self) -> Ready:
        """Raises `BucketlogError`; nothing is left running then after `stop`."""
        settings = self._settings
        self._listening = listening = _bind(settings)
        port = int(listening.getsockname()[1])
        counting = CountingBucket(await open_bucket(settings.bucket_url, shard=settings.shard))
        self._bucket = bucket = RetryBucket(counting, READ_RETRY, random=Random())
        figures = BrokerFigures(bucket=counting, budget=self._budget, health=self._health)
        self._http = HttpEndpoint(
            application(self._health, figures), host=settings.host, port=settings.http_port
        )
        self._http.start()
        await probe(bucket, nonce=uuid4().hex, name=settings.bucket_url)
        identity = await ensure_cluster(bucket, new_cluster_id=uuid4(), now_ms=wall_clock_ms())
        cluster_id = str(identity.cluster_id)
        sequencer = await self._connect_sequencer(cluster_id)
        membership = await self._become_member(sequencer, cluster_id, port)
        self._epochs = epochs = self._make_epochs(counting, bucket, sequencer, membership, figures)
        epoch = await epochs.begin()
        self._listener = Listener(
            settings=settings, handler=epochs.handle, budget=self._budget, figures=figures
        )
        await self._listener.start(listening)
        await membership.serve()
        gc.collect()
        gc.freeze()
        self._health.started = True
        return Ready(settings.host, port, self._http.port, membership.me.node_id, cluster_id, epoch)

    def _make_epochs(
        self,
        counting: CountingBucket,
        bucket: Bucket,
        sequencer: Sequencer,
        membership: Membership,
        figures: BrokerFigures,
    ) -> Epochs:
        settings = self._settings
        committed = CommittedLog(bucket, footer_reads_in_flight=settings.footer_reads_in_flight)
        starter = EpochStarter(
            bucket=bucket,
            committed=committed,
            sequencer=sequencer,
            incarnation=membership.incarnation,
            now_ms=wall_clock_ms,
            new_id=lambda: uuid4().hex,
        )
        joiner = Joiner(
            sequencer=sequencer,
            committed=committed,
            starter=starter,
            membership=membership,
            claim_wait_ms=settings.claim_wait_ms,
            now_ms=wall_clock_ms,
        )
        parts = BrokerParts(
            settings=settings,
            write_bucket=_hedged(counting, settings),
            bucket=bucket,
            committed=committed,
            starter=starter,
            sequencer=sequencer,
            membership=membership,
            health=self._health,
            supervisor=self._supervisor,
            view=View(),
            watchers=Watchers(),
            intake=Intake(self._health, flush_bytes=settings.flush_bytes),
            on_failure=self._fatal,
            now_ms=wall_clock_ms,
        )
        return Epochs(parts, joiner, on_request=figures.count_request)

    async def _connect_sequencer(self, cluster_id: str) -> Sequencer:
        settings = self._settings
        self._sequencer = sequencer = Sequencer(
            connect_redis(settings.redis_url, timeout_ms=settings.redis_timeout_ms),
            cluster_id=cluster_id,
            shard=settings.shard,
            stream_segments_max=settings.stream_segments_max,
        )
        await sequencer.check_server()
        return sequencer

    async def _become_member(self, sequencer: Sequencer, cluster_id: str, port: int) -> Membership:
        settings = self._settings
        self._membership = membership = Membership(
            sequencer=sequencer,
            cluster_id=cluster_id,
            incarnation=uuid4().hex,
            node_id=settings.node_id,
            address=BrokerAddress(
                settings.advertised_host or settings.host,
                settings.advertised_port or port,
                settings.zone,
            ),
            session_timeout_ms=settings.session_timeout_ms,
            role_timeout_ms=settings.role_timeout_effective_ms,
            health=self._health,
        )
        await membership.join()
        self._spawn(membership.run(settings.heartbeat_interval_ms), "the heartbeat")
        return membership

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._supervisor.spawn(work, name, on_failure=self._fatal)

    def _fatal(self, error: Exception) -> None:
        self._health.stop_writing(f"a part of the broker failed: {error!r}; restart it")

    async def stop(self) -> None:
        """Stop accepting, flush, answer, leave."""
        self._health.started = False
        await self._say(Membership.stop_serving)
        if self._listener is not None:
            self._listener.stop_accepting()
        if self._epochs is not None:
            self._epochs.leave()
            try:
                await asyncio.wait_for(self._epochs.drained(), DRAIN_TIMEOUT_S)
            except TimeoutError:
                logger.error("some batches were not flushed in %.0f s", DRAIN_TIMEOUT_S)
        if self._listener is not None:
            await self._listener.stop()
        if self._http is not None:
            await self._http.stop()
        if self._epochs is not None:
            await self._epochs.stop()
        await self._supervisor.cancel_all()
        if self._sequencer is not None:
            await self._say(Membership.leave)
            await self._sequencer.close()
        if self._bucket is not None:
            await self._bucket.close()
        if self._listening is not None:
            self._listening.close()

    async def _say(self, what: Callable[[Membership], Awaitable[None]]) -> None:
        """Tell the cluster that this broker goes, if Redis takes it."""
        if self._membership is None or not self._membership.has_joined:
            return
        try:
            await what(self._membership)
        except SequencerError as error:
            logger.warning("left without saying so: %s", error)


def _bind(settings: BrokerSettings) -> socket.socket:
    try:
        return socket.create_server((settings.host, settings.port), backlog=1024)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {settings.host}:{settings.port}: {os.strerror(error.errno or 0)}",
            remedy="choose another port: BUCKETLOG_PORT, or --port of bucketlog dev",
        ) from error


def _hedged(counting: CountingBucket, settings: BrokerSettings) -> Bucket:
    """What segments are written to: slow PUTs are sent twice, where the settings want it."""
    quantile = settings.put_hedge_quantile_effective
    if not quantile:
        return counting
    share_max = settings.put_hedge_percent_max / 100
    policy = HedgePolicy(HedgeSettings(quantile=quantile, share_max=share_max))
    return HedgingBucket(counting, policy, on_hedge=counting.count_hedge)
