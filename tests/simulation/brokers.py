"""Brokers of the simulation: the real node, in a process that is killed, paused, started again."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast
from uuid import UUID

from redis.asyncio import Redis

from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import Buffer
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.node import Node
from bucketlog.stateless_broker.assembly.node_environment import NodeEnvironment
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot, UnsettledChanges
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage.counting import CountingBucket
from tests.simulation.bucket import BucketClient
from tests.simulation.embedded_redis import SimulatedEmbedded
from tests.simulation.loop import WORLD, Process, VirtualLoop
from tests.simulation.redis_client import RedisClient
from tests.simulation.trace import Trace

RESTART_S = 1.0
CLOSED_AFTER_S = 0.001
"""Whatever was connected to a process learns of its death."""


class Reply(ResponseSlot):
    __slots__ = ("_tell",)
    throttle_ms = 0

    def __init__(self, tell: Callable[[bytes | None], None]) -> None:
        self._tell = tell
        self.lease = None

    def hold_back_later_requests(self) -> None:
        pass

    def let_later_requests_in(self) -> None:
        pass

    def begin_change(self) -> None:
        pass

    def send(self, parts: Sequence[Buffer], *, is_settled: bool = True) -> None:
        self.give_back()
        self._tell(b"".join(parts))

    def close(self, reason: str) -> None:
        self._tell(None)


class ClientConnection:
    """In a connection's place. Requests arrive in the order of their sending."""

    host = payer = "127.0.0.1"
    listener = "PLAINTEXT"
    login = None
    principal = "User:ANONYMOUS"
    muted_ms = 0

    def __init__(self) -> None:
        self.last_arrival = 0.0
        self.changes = UnsettledChanges()

    def give_up_with_client(self, task: asyncio.Task[None]) -> None:
        pass


@dataclass
class Place:
    """What a broker finds when it starts; it outlives the broker."""

    loop: VirtualLoop
    trace: Trace
    settings: BrokerSettings
    bucket: Callable[[str], BucketClient]
    redis: Callable[[str], RedisClient]
    embedded: Callable[[str], SimulatedEmbedded]
    clock_error_ms: int


class SimulatedBroker:
    """One after another incarnation of a broker; `port` is its address."""

    def __init__(self, number: int, place: Place, random: Random) -> None:
        self.number = number
        self.port = number + 1
        self.incarnations = 0
        self._place = place
        self._random = random
        self._pending: set[int] = set()
        self._failures: dict[int, Callable[[bytes | None], None]] = {}
        self._requests = 0
        self._past: list[Any] = []
        """Dead incarnations: nothing of theirs is cleaned up, which would run their code."""
        self.process: Process | None = None
        self.node: Node | None = None
        self._redis: RedisClient | None = None
        self.health = Health()
        self.runs_valkeys = False
        """Whether it may run a Valkey, from its next start on."""
        self._embedded: SimulatedEmbedded | None = None
        self._pause_end: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        return f"broker{self.number}.{self.incarnations}"

    @property
    def view(self) -> View | None:
        return self.node.epochs.view if self.node is not None and self.health.started else None

    @property
    def listens(self) -> bool:
        return self.process is not None and self.health.started

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    def make_embedded(self) -> SimulatedEmbedded:
        """The way of the running process to Valkeys of brokers."""
        self._embedded = self._place.embedded(self.name)
        return self._embedded

    def start(self) -> None:
        self.incarnations += 1
        name, place = self.name, self._place
        place.trace.add(name, "starts")
        self.health = health = Health()
        self.process = process = Process(name)
        self._redis = redis = place.redis(name)
        self.node = node = Node(
            place.settings,
            NodeEnvironment(
                bucket=CountingBucket(place.bucket(name)),
                connect_redis=lambda: cast(Redis, redis),
                now_ms=lambda: place.loop.now_ms() + place.clock_error_ms,
                monotonic=place.loop.time,
                new_uuid=lambda: UUID(int=self._random.getrandbits(128), version=4),
                random=self._random,
                sequencer_now_ms=place.loop.now_ms,
                embedded=self.make_embedded() if self.runs_valkeys else None,
            ),
            health=health,
        )
        health.on_stop(lambda: place.trace.violate("writing is stopped", health.stopped or ""))
        self._budget = MemoryBudget(1 << 40)
        task = place.loop.create_task(self._begin(node, health), context=process.context)
        self._past.append((process, node, task))

    async def _begin(self, node: Node, health: Health) -> None:
        try:
            epoch = await node.begin([self.port])
            await node.serve()
        except BucketlogError as error:
            self._place.trace.add(self.name, f"cannot start: {error}")
            self._place.loop.call_soon(self._start_again, self.incarnations, context=WORLD)
            return
        health.started = True
        self._place.trace.add(self.name, f"serves in epoch {epoch}")

    def _start_again(self, incarnation: int) -> None:
        if self.incarnations == incarnation and self.process is not None:
            self.kill()
            self._place.loop.call_later(RESTART_S, self.start_if_dead, context=WORLD)

    def start_if_dead(self) -> None:
        if self.process is None:
            self.start()

    def kill(self) -> None:
        """Its tasks stop where they are, and nothing of them runs any more."""
        if self.process is None:
            return
        self._place.trace.add(self.name, "is killed")
        self.process.is_alive = False
        self.process = None
        self.node = None
        if self._embedded is not None:
            self._embedded.end_with_process()
            embedded, self._embedded = self._embedded, None
            self._place.loop.call_later(CLOSED_AFTER_S, embedded.lose_lifelines, context=WORLD)
        if self._redis is not None:
            self._place.loop.call_later(CLOSED_AFTER_S, self._redis.lose_lifeline, context=WORLD)
        failures, self._failures = self._failures, {}
        for tell in failures.values():
            tell(None)

    def lose_lifeline(self) -> None:
        """The connection ends, but the broker lives."""
        if self._redis is not None:
            self._place.trace.add(self.name, "loses its lifeline")
            self._redis.lose_lifeline()

    def pause(self, seconds: float) -> None:
        process = self.process
        if process is None or process.is_paused:
            return
        process.is_paused = True
        self._place.trace.add(self.name, f"is paused for {seconds:.1f} s")
        self._pause_end = self._place.loop.call_later(seconds, self._resume, process, context=WORLD)

    def _resume(self, process: Process) -> None:
        if process.is_paused and process.is_alive:
            self._place.trace.add(process.name, "goes on")
            self._place.loop.resume(process)

    def go_on(self) -> None:
        """End a pause before its time."""
        if self._pause_end is not None:
            self._pause_end.cancel()
        if self.process is not None:
            self._resume(self.process)

    def take(
        self,
        connection: ClientConnection,
        payload: bytes,
        tell: Callable[[bytes | None], None],
    ) -> None:
        """A request arrives. `tell` gets its answer, or None where there is no connection."""
        process, node = self.process, self.node
        if process is None or node is None or not self.health.started:
            tell(None)
            return
        self._requests += 1
        number = self._requests
        self._failures[number] = tell

        def answered(answer: bytes | None) -> None:
            if self._failures.pop(number, None) is not None:
                tell(answer)

        self._budget.acquire(len(payload), answered, lambda: None)
        frame = Frame(bytearray(payload), self._budget)
        self._place.loop.call_soon(
            lambda: node.dispatcher.handle(cast(Connection, connection), frame, Reply(answered)),
            context=process.context,
        )
