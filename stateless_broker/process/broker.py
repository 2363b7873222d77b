"""The composition root: a broker's node, its sockets and its HTTP endpoint, started and stopped in
order.

Invariant: it listens only when its epoch is active and its view is whole; it goes by flushing what
it took. Clock, randomness, bucket and Redis enter here and nowhere else.
"""

import asyncio
import gc
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from uuid import uuid4

from redis.asyncio import Redis

from bucketlog.log_format import record_check
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.sequencer.producer_rows import ProducerRows
from bucketlog.metadata.sequencer.redis_url import connect_redis
from bucketlog.stateless_broker.assembly.broker_parts import WorkCounts
from bucketlog.stateless_broker.assembly.node import Node, NodeEnvironment
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.network.listener import Listener, bound_socket
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.process.allocator import (
    Peaks,
    Unused,
    free_bytes,
    give_back_unused,
)
from bucketlog.stateless_broker.process.embedded_redis import ValkeyProcesses
from bucketlog.stateless_broker.process.http_connections import HttpLimits
from bucketlog.stateless_broker.process.http_endpoint import HttpEndpoint, application
from bucketlog.stateless_broker.process.metrics import (
    BoundedState,
    BrokerFigures,
    FigureSources,
    MemoryBudgets,
)
from bucketlog.stateless_broker.process.open_files import OpenFilesWatch
from bucketlog.stateless_broker.settings import BrokerSettings
from bucketlog.tiered_storage.backends.location import open_bucket, open_sync_bucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.state_signature import NO_KEYS, StateKeys, read_key_file

PEAK_LOOK_S = 5.0
"""The interval of checks whether a memory peak is over."""
EXPORTED_LIMITS = (
    "cluster_partitions_max",
    "connections_max",
    "coordinated_groups_bytes_max",
    "groups_max",
    "http_connections_max",
    "offsets_max",
    "produce_buffer_bytes",
    "producers_max",
    "response_memory_bytes_max",
    "transactional_ids_max",
)
"""Settings that /metrics shows, so that alerts can compare metrics with limits."""
OPEN_FILES_LOOK_S = 1.0
"""The interval of checks whether a file can be opened."""


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class ReadyReport:
    """What a started broker tells."""

    host: str
    port: int
    http_host: str
    http_port: int
    node_id: int
    cluster_id: str
    epoch: int


class Broker:
    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._health = Health()
        self._budget = MemoryBudget(
            settings.produce_buffer_bytes,
            address_percent_max=settings.produce_buffer_address_percent_max,
        )
        self._node: Node | None = None
        self._listening: socket.socket | None = None
        self._listener: Listener | None = None
        self._http: HttpEndpoint | None = None

    async def start(self) -> ReadyReport:
        """Waits for Redis and the bucket. After a `BucketlogError`, `stop` ends all that runs."""
        settings = self._settings
        warm = asyncio.create_task(asyncio.to_thread(record_check.warm_up))
        self._listening = listening = _bind(settings)
        port = int(listening.getsockname()[1])
        state_keys = _state_keys(settings)
        bucket = CountingBucket(
            await open_bucket(settings.bucket_url, shard=settings.shard, state_keys=state_keys)
        )
        history = _open_history(settings, state_keys)
        counts = WorkCounts()
        requests = RequestFigures(slow_request_ms=settings.slow_request_ms)
        self._node = node = Node(
            settings,
            NodeEnvironment(
                bucket=bucket,
                history=bucket.beside(history),
                connect_redis=_redis_connector(settings),
                now_ms=wall_clock_ms,
                monotonic=time.monotonic,
                new_uuid=uuid4,
                random=Random(),
                embedded=ValkeyProcesses(settings),
            ),
            health=self._health,
            counts=counts,
        )
        figures = BrokerFigures(
            FigureSources(
                bucket=bucket,
                budgets=MemoryBudgets(frames=self._budget, answers=node.answers),
                health=self._health,
                work=counts,
                requests=requests,
                limits={name: getattr(settings, name) for name in EXPORTED_LIMITS},
                state=BoundedState(
                    view=lambda: node.view,
                    producers=lambda: _producer_rows(node),
                    group_bytes=lambda: node.epochs.group_bytes if self._health.started else None,
                ),
            )
        )
        self._http = self._make_http(figures, requests)
        self._http.start()
        epoch = await node.begin(port)
        await warm  # the first produce does not wait for a compiler
        self._listener = Listener(
            settings=settings,
            handler=node.dispatcher.handle,
            budget=self._budget,
            answers=node.answers,
            figures=requests,
        )
        try:
            await self._listener.start(listening)
        except OSError as error:  # somebody was quicker
            raise _cannot_listen(settings, error) from error
        await node.serve()
        self._spawn_looks(node)
        gc.collect()
        gc.freeze()
        self._health.started = True
        me, cluster_id = node.membership.me.node_id, node.membership.cluster_id
        http_port = self._http.port
        return ReadyReport(
            settings.host, port, settings.http_host, http_port, me, cluster_id, epoch
        )

    def _make_http(self, figures: BrokerFigures, requests: RequestFigures) -> HttpEndpoint:
        settings = self._settings
        return HttpEndpoint(
            application(self._health, figures),
            host=settings.http_host,
            port=settings.http_port,
            limits=HttpLimits(
                settings.http_connections_max,
                settings.http_request_ms_max,
                settings.http_idle_ms_max,
                settings.http_header_bytes_max,
            ),
            closed=requests.closed_by_limit,
        )

    def _spawn_looks(self, node: Node) -> None:
        spawn = node.parts.supervision.supervisor.spawn
        spawn(self._trim_after_peaks(node), "returning memory", on_failure=lambda _: None)
        spawn(_watch_open_files(), "checking open files", on_failure=lambda _: None)

    async def _trim_after_peaks(self, node: Node) -> None:
        peaks, unused = Peaks(), Unused()
        while True:
            await asyncio.sleep(PEAK_LOOK_S)
            if peaks.is_over(self._budget.held_bytes + node.answers.held_bytes):
                await asyncio.to_thread(give_back_unused)
            elif unused.is_worth_returning(free_bytes()):
                await asyncio.to_thread(give_back_unused, 0)

    async def stop(self) -> None:
        """Stop accepting, flush, answer, leave."""
        deadline = asyncio.get_running_loop().time() + self._settings.drain_timeout_ms / 1000
        self._health.started = False
        if self._node is not None:
            await self._node.hand_over()
        if self._listener is not None:
            self._listener.stop_accepting()
        if self._node is not None:
            await self._node.drain(deadline)
        if self._listener is not None:
            await self._listener.stop()
        if self._http is not None:
            await self._http.stop()
        if self._node is not None:
            await self._node.close()
        if self._listening is not None:
            self._listening.close()


def _redis_connector(settings: BrokerSettings) -> Callable[[], Redis] | None:
    """None without a configured Redis."""
    url, timeout_ms = settings.redis_url, settings.redis_timeout_ms
    return (lambda: connect_redis(url, timeout_ms=timeout_ms)) if url is not None else None


def _producer_rows(node: Node) -> ProducerRows | None:
    """None while the broker looks for Redis."""
    return None if node.view is None else node.parts.cluster.sequencer.producer_rows


async def _watch_open_files() -> None:
    watch = OpenFilesWatch(now_s=time.monotonic)
    while True:
        watch.look()
        await asyncio.sleep(OPEN_FILES_LOOK_S)


def _state_keys(settings: BrokerSettings) -> StateKeys:
    if settings.state_key_file is None:
        return NO_KEYS
    return read_key_file(
        settings.state_key_file, unsigned_accepted=settings.state_unsigned_accepted
    )


def _open_history(settings: BrokerSettings, state_keys: StateKeys) -> ThreadedBucket:
    """The same bucket, with requests of its own for old segments."""
    return ThreadedBucket(
        open_sync_bucket(settings.bucket_url, shard=settings.shard, state_keys=state_keys),
        threads=settings.history_ranges_in_flight,
    )


def _bind(settings: BrokerSettings) -> socket.socket:
    try:
        return bound_socket(
            settings.host, settings.port, keepalive_ms=settings.connections_keepalive_ms
        )
    except OSError as error:
        raise _cannot_listen(settings, error) from error


def _cannot_listen(settings: BrokerSettings, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"cannot listen on {settings.host}:{settings.port}: {os.strerror(error.errno or 0)}",
        remedy="choose another port: BUCKETLOG_PORT, or --port of bucketlog dev",
    )
