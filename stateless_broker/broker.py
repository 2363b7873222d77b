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
from dataclasses import dataclass
from random import Random
from uuid import uuid4

from bucketlog.errors import (
    ClusterInUseError,
    ConfigurationError,
    SequencerError,
    SequencerUnavailableError,
)
from bucketlog.model import WriterId
from metadata.sequencer.client import Sequencer, connect_redis
from metadata.sequencer.requests import BrokerAddress, NodeIdTaken
from metadata.view import View
from stateless_broker.activation import EpochStarter
from stateless_broker.cluster import Cluster, Node
from stateless_broker.commit import CommitSettings, Committer
from stateless_broker.feed import ViewFeed, Watchers
from stateless_broker.health import Health
from stateless_broker.http_endpoint import HttpEndpoint, application
from stateless_broker.listener import Listener
from stateless_broker.memory_budget import MemoryBudget
from stateless_broker.metrics import BrokerFigures
from stateless_broker.routes import Parts, make_dispatcher
from stateless_broker.settings import BrokerSettings
from stateless_broker.supervisor import Supervisor
from tiered_storage.bucket import Bucket
from tiered_storage.counting import CountingBucket
from tiered_storage.identity import ensure_cluster
from tiered_storage.location import open_bucket
from tiered_storage.probe import probe
from tiered_storage.retry import RetryBucket, RetryPolicy

logger = logging.getLogger(__name__)

DRAIN_TIMEOUT_S = 30.0
JOIN_PAUSE_S = 0.5
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
        self._incarnation = uuid4().hex
        self._health = Health()
        self._supervisor = Supervisor()
        self._budget = MemoryBudget(settings.produce_buffer_bytes)
        self._address: Node | None = None
        self._sequencer: Sequencer | None = None
        self._bucket: RetryBucket | None = None
        self._committer: Committer | None = None
        self._listening: socket.socket | None = None
        self._listener: Listener | None = None
        self._http: HttpEndpoint | None = None

    async def start(self) -> Ready:
        """Raises `BucketlogError`; nothing is left running then after `stop`."""
        settings = self._settings
        self._listening = listening = _bind(settings)
        port = int(listening.getsockname()[1])
        node = Node(
            settings.node_id,
            settings.advertised_host or settings.host,
            settings.advertised_port or port,
        )
        counting = CountingBucket(await open_bucket(settings.bucket_url, shard=settings.shard))
        self._bucket = bucket = RetryBucket(counting, READ_RETRY, random=Random())
        await probe(bucket, nonce=uuid4().hex, name=settings.bucket_url)
        identity = await ensure_cluster(bucket, new_cluster_id=uuid4(), now_ms=wall_clock_ms())
        cluster_id = str(identity.cluster_id)
        sequencer = await self._join_cluster(cluster_id, node)
        starter = EpochStarter(
            bucket=bucket,
            sequencer=sequencer,
            now_ms=wall_clock_ms,
            new_id=lambda: uuid4().hex,
            footer_reads_in_flight=settings.footer_reads_in_flight,
        )
        started = await starter.start()
        view = View()
        for index in started.segments:
            view.apply(index)
        watchers = Watchers()
        writer = await starter.register_writer(started.epoch)
        committer = self._start_commit_path(
            started.epoch, writer, counting, sequencer, view, watchers
        )
        figures = BrokerFigures(bucket=counting, budget=self._budget, health=self._health)
        dispatcher = make_dispatcher(
            Parts(
                settings=settings,
                view=view,
                bucket=bucket,
                sequencer=sequencer,
                committer=committer,
                cluster=Cluster(cluster_id, node),
                health=self._health,
                watchers=watchers,
                supervisor=self._supervisor,
                epoch=started.epoch,
                now_ms=wall_clock_ms,
            ),
            on_request=figures.count_request,
        )
        self._listener = Listener(
            settings=settings, dispatcher=dispatcher, budget=self._budget, figures=figures
        )
        self._http = HttpEndpoint(
            application(self._health, figures), host=settings.host, port=settings.http_port
        )
        self._http.start()
        await self._listener.start(listening)
        gc.collect()
        gc.freeze()
        self._health.started = True
        return Ready(
            settings.host, port, self._http.port, settings.node_id, cluster_id, started.epoch
        )

    async def _join_cluster(self, cluster_id: str, node: Node) -> Sequencer:
        settings = self._settings
        self._sequencer = sequencer = Sequencer(
            connect_redis(settings.redis_url, timeout_ms=settings.redis_timeout_ms),
            cluster_id=cluster_id,
            shard=settings.shard,
            stream_segments_max=settings.stream_segments_max,
        )
        await sequencer.check_server()
        self._address = node
        await self._join(sequencer, node)
        self._beat(sequencer, node)
        return sequencer

    def _start_commit_path(
        self,
        epoch: int,
        writer: WriterId,
        bucket: Bucket,
        sequencer: Sequencer,
        view: View,
        watchers: Watchers,
    ) -> Committer:
        """Its tasks end with the broker. `bucket` does not retry: the commit path does."""
        self._committer = committer = Committer(
            epoch=epoch,
            writer=writer,
            bucket=bucket,
            sequencer=sequencer,
            health=self._health,
            supervisor=self._supervisor,
            settings=_commit_settings(self._settings),
            now_ms=wall_clock_ms,
        )
        feed = ViewFeed(
            epoch=epoch,
            view=view,
            sequencer=sequencer,
            committer=committer,
            health=self._health,
            watchers=watchers,
        )
        for work, name in (
            (self._watch_state(sequencer, epoch), "the state's watch"),
            (feed.run(), "the view's feed"),
            (committer.run(), "the commit path"),
        ):
            self._supervisor.spawn(work, name, on_failure=self._fatal)
        return committer

    async def _join(self, sequencer: Sequencer, node: Node) -> None:
        """Refuse to start beside a live broker; one that has just died is waited for."""
        deadline = time.monotonic() + self._settings.session_timeout_ms / 1000 + JOIN_PAUSE_S
        waiting = False
        while (other := await self._heartbeat(sequencer, node)) is not None:
            if time.monotonic() > deadline:
                raise ClusterInUseError(
                    f"another broker ({other.incarnation}) is alive on this cluster",
                    remedy="stop it first: this version runs one broker on a cluster",
                )
            if not waiting:
                logger.warning("broker %s was alive %d ms ago: waiting", *other[1:])
                waiting = True
            await asyncio.sleep(JOIN_PAUSE_S)

    async def _heartbeat(self, sequencer: Sequencer, node: Node) -> NodeIdTaken | None:
        answer = await sequencer.heartbeat(
            self._incarnation,
            node_id=node.node_id,
            address=BrokerAddress(node.host, node.port, ""),
            writer=None,
            session_timeout_ms=self._settings.session_timeout_ms,
        )
        return answer if isinstance(answer, NodeIdTaken) else None

    def _beat(self, sequencer: Sequencer, node: Node) -> None:
        async def beat() -> None:
            while True:
                await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
                try:
                    other = await self._heartbeat(sequencer, node)
                except SequencerUnavailableError as error:
                    self._health.degrade("heartbeat", str(error))
                    continue
                self._health.recover("heartbeat")
                if other is not None:
                    self._health.stop_writing(
                        f"another broker ({other.incarnation}) took over the cluster"
                    )

        self._supervisor.spawn(beat(), "the heartbeat", on_failure=self._fatal)

    async def _watch_state(self, sequencer: Sequencer, epoch: int) -> None:
        """An idle broker, too, finds out that the sequencer lost its state, and says so."""
        while self._health.stopped is None:
            await asyncio.sleep(self._settings.heartbeat_interval_ms / 1000)
            try:
                await sequencer.check_state(epoch)
            except SequencerUnavailableError as error:
                self._health.degrade("sequencer", str(error))
            except SequencerError as error:
                self._health.stop_writing(str(error))
            else:
                self._health.recover("sequencer")

    def _fatal(self, error: Exception) -> None:
        self._health.stop_writing(f"a part of the broker failed: {error!r}; restart it")

    async def stop(self) -> None:
        """Stop accepting, flush, answer, leave."""
        self._health.started = False
        if self._listener is not None:
            self._listener.stop_accepting()
        if self._committer is not None and self._health.stopped is None:
            try:
                await asyncio.wait_for(self._committer.drained(), DRAIN_TIMEOUT_S)
            except TimeoutError:
                logger.error("some batches were not flushed in %.0f s", DRAIN_TIMEOUT_S)
        if self._listener is not None:
            await self._listener.stop()
        if self._http is not None:
            await self._http.stop()
        await self._supervisor.cancel_all()
        if self._sequencer is not None:
            try:
                if self._address is not None:
                    await self._sequencer.leave(self._address.node_id, self._incarnation)
            except SequencerError as error:
                logger.warning("left without saying so: %s", error)
            await self._sequencer.close()
        if self._bucket is not None:
            await self._bucket.close()
        if self._listening is not None:
            self._listening.close()


def _bind(settings: BrokerSettings) -> socket.socket:
    try:
        return socket.create_server((settings.host, settings.port), backlog=1024)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {settings.host}:{settings.port}: {os.strerror(error.errno or 0)}",
            remedy="choose another port: BUCKETLOG_PORT, or --port of bucketlog dev",
        ) from error


def _commit_settings(settings: BrokerSettings) -> CommitSettings:
    return CommitSettings(
        flush_interval_ms=settings.flush_interval_effective_ms,
        flush_bytes=settings.flush_bytes,
        puts_in_flight=settings.puts_in_flight,
        put_retry_ms=settings.put_retry_ms,
    )
