"""A broker without sockets: a real `Node` on a real Valkey, with a bucket and a way to Valkey that
fail as they are told.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast
from uuid import uuid4

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer, SegmentId, WriterId
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.redis_url import connect_redis
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.consumer_groups import ConsumerGroups
from bucketlog.stateless_broker.assembly.duty_roster import Duties
from bucketlog.stateless_broker.assembly.epochs import Epochs
from bucketlog.stateless_broker.assembly.node import Node
from bucketlog.stateless_broker.assembly.node_environment import NodeEnvironment
from bucketlog.stateless_broker.duties.checkpointing import Checkpointer
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.connection import ANONYMOUS, Connection
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot, UnsettledChanges
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.process.embedded_redis import ValkeyProcesses
from bucketlog.stateless_broker.produce.commit import Committer
from bucketlog.stateless_broker.produce.intake import Intake
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.faulty import BucketVerb, Fault, FaultPlan, FaultyBucket
from bucketlog.tiered_storage.signed_bucket import SignedBucket
from bucketlog.tiered_storage.state_signature import NO_KEYS, StateKeys
from tests.rigs.patience import (
    PATIENCE_S,
    Deadline,
    cancel_task,
    end_task,
    eventually_async,
    let_pass_async,
)
from tests.rigs.unsure_sequencer import UnsureSequencer
from tests.rigs.wire_client import Keyed, build_batch, decode_response, encode_request, fetch_values

LATEST = -1
HELD_MS = 1_000_000
"""A fault of this delay waits for `Rig.let_go`, not for time."""
USUAL = {
    "puts_in_flight": 2,
    "flush_bytes": 1 << 20,
    "flush_interval_ms": 0,
    "put_retry_ms": 20,
    "log_message_timestamp_after_max_ms": 2**63 - 1,
    "log_retention_check_interval_ms": 0,
    "start_timeout_ms": 60_000,
}
"""Retention is off: tests write records of 2023."""
STAYS = {
    "put_stalled_ms": HELD_MS,
    "withdrawal_ms": HELD_MS,
    "claim_look_ms": 0,
    "seal_look_ms": 0,
    "claim_stalled_ms": 0,
    "takeover_quiet_ms": 0,
}
"""Only silent heartbeats cost a broker its roles, and it takes the epochs of others at once."""
HELD = Fault(error=None, delay_ms=HELD_MS)


def nothing_fails(verb: BucketVerb, key: str) -> Fault | None:
    return None


async def until(condition: Callable[[], bool], what: Callable[[], object] | str = "") -> None:
    """Give others their turn until the condition holds; fails where it does not for long."""
    await eventually_async(condition, what)


class Reply(ResponseSlot):
    """Gives the answer to whoever awaits `got`; None where the connection was closed."""

    __slots__ = ("got",)
    throttle_ms = 0

    def __init__(self) -> None:
        self.got: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.lease = None

    def hold_back_later_requests(self) -> None:
        pass

    let_later_requests_in = begin_change = hold_back_later_requests

    def send(self, parts: Sequence[Buffer], *, is_settled: bool = True) -> None:
        self.give_back()
        if not self.got.done():
            self.got.set_result(b"".join(parts))

    def close(self, reason: str) -> None:
        if not self.got.done():
            self.got.set_result(None)


class Client:
    """In a connection's place: where requests come from, and what ends when it goes."""

    host, listener = "127.0.0.1", "PLAINTEXT"
    payer = host
    login, principal, muted_ms, is_gone = None, ANONYMOUS, 0, False
    shook_hands = staticmethod(lambda name, version: None)

    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[None]] = set()
        self.changes = UnsettledChanges()

    def give_up_with_client(self, task: asyncio.Task[None]) -> None:
        self._waiting.add(task)

    def go(self) -> None:
        """It does not wait for its answers any more."""
        for task in self._waiting:
            task.cancel()


class RiggedNode(Node):
    """A node that reaches Redis by the sequencer that it is given."""

    def __init__(
        self,
        settings: BrokerSettings,
        surroundings: NodeEnvironment,
        sequencer: Sequencer,
        *,
        health: Health,
    ) -> None:
        super().__init__(settings, surroundings, health=health)
        self._given = sequencer

    def _make_sequencer(self, cluster_id: str) -> Sequencer:
        return self._given


class Rig:
    """`plan` decides the bucket's faults once the epoch is active; assign it at any time."""

    def __init__(
        self,
        redis: Path | str | None,
        *,
        memory: MemoryBucket | None = None,
        cluster_id: str | None = None,
        state_keys: StateKeys = NO_KEYS,
        runs_valkey: bool = False,
        **settings: int,
    ) -> None:
        """`redis` is a socket or a URL. With `runs_valkey`, the broker may start a Valkey; without
        `redis`, it has to. `cluster_id` and `memory` of another rig make this one a second broker
        beside it. `memory` alone makes it the first broker after Redis lost everything."""
        self.plan: FaultPlan = nothing_fails
        self.memory = memory or MemoryBucket()
        self.counts = CountingBucket(
            FaultyBucket(
                SignedBucket(ThreadedBucket(self.memory), state_keys),
                self._planned,
                sleep=self._sleep,
            )
        )
        self.budget = MemoryBudget(1 << 30)
        self.health = Health()
        self.settings = BrokerSettings(
            bucket_url="memory://rig",
            redis_url="unix://rig" if redis is not None else None,
            **cast(Any, USUAL | STAYS | settings),
        )
        self.cluster_id = cluster_id or uuid4().hex
        url = f"unix://{redis}" if isinstance(redis, Path) else redis
        timeout_ms = self.settings.redis_timeout_ms
        redis_client = connect_redis(url, timeout_ms=timeout_ms) if url is not None else None
        self.sequencer = UnsureSequencer(
            redis_client,
            cluster_id=self.cluster_id,
            stream_segments_max=self.settings.stream_segments_max,
            stream_bytes_max=self.settings.stream_bytes_max,
        )
        self.client = Client()
        self.clock_ms = 1
        """What it takes for the time of day."""
        self.node = RiggedNode(
            self.settings,
            NodeEnvironment(
                bucket=self.counts,
                connect_redis=(lambda: redis_client) if redis_client is not None else None,
                now_ms=lambda: self.clock_ms,
                monotonic=time.monotonic,
                new_uuid=uuid4,
                random=Random(1),
                embedded=ValkeyProcesses(self.settings) if runs_valkey else None,
            ),
            self.sequencer,
            health=self.health,
        )
        self._held: list[asyncio.Event] = []
        self._correlation_id = 0

    async def start(self) -> None:
        await self.node.begin([1])
        self.writer = self.committer.writer
        await self.node.serve()
        self.health.started = True

    @property
    def epochs(self) -> Epochs:
        return self.node.epochs

    @property
    def membership(self) -> Membership:
        return self.node.membership

    @property
    def view(self) -> View:
        return self.node.parts.log.view

    @property
    def intake(self) -> Intake:
        return self.node.parts.log.intake

    @property
    def epoch(self) -> int:
        return self.epochs.work.epoch

    @property
    def committer(self) -> Committer:
        return self.epochs.work.committer

    @property
    def groups(self) -> ConsumerGroups:
        return self.epochs.work.groups

    @property
    def checkpointer(self) -> Checkpointer:
        return self.duties.checkpointer

    @property
    def duties(self) -> Duties:
        return self.epochs.work.duties

    def fall_silent(self) -> None:
        """No heartbeat any more."""
        assert self.node.heartbeat is not None
        cancel_task(self.node.heartbeat)

    async def lose_connections(self) -> None:
        """Stop as if the process were killed: heartbeats end, and the server notices.

        A heartbeat that arrives after the end of the lifeline would be a sign of life. So the
        lifeline ends after the server has answered one more heartbeat."""
        assert self.node.heartbeat is not None
        assert self.node.lifeline is not None
        await end_task(self.node.heartbeat)
        await self.membership.heartbeat()
        await end_task(self.node.lifeline)

    def come_back(self) -> None:
        """After `fall_silent`: heartbeats again."""
        self.node.heartbeat = self.node.parts.supervision.spawn(
            self.membership.run(self.settings.heartbeat_interval_ms), "the heartbeat"
        )

    def _planned(self, verb: BucketVerb, key: str) -> Fault | None:
        return self.plan(verb, key)

    async def _sleep(self, delay_s: float) -> None:
        if delay_s * 1000 < HELD_MS:
            await let_pass_async(delay_s)
            return
        gate = asyncio.Event()
        self._held.append(gate)
        await gate.wait()

    @property
    def held(self) -> int:
        """Bucket requests that were held so far and not let go."""
        return sum(not gate.is_set() for gate in self._held)

    def let_go(self, number: int | None = None) -> None:
        """Go on with the held request of that number, in the order of their coming, or with all."""
        for gate in self._held if number is None else [self._held[number]]:
            gate.set()

    def send(self, key: ApiKey, version: int, /, **values: Any) -> "asyncio.Task[Any]":
        """A request; the task gives kio's response."""
        self._correlation_id += 1
        payload = encode_request(key, version, self._correlation_id, values)
        return asyncio.create_task(_decoded(key, version, self.send_bytes(payload)))

    def send_bytes(self, payload: bytes) -> "asyncio.Future[bytes | None]":
        """Send an encoded request. The result is the response, or None if the connection was
        closed."""
        assert self.budget.acquire(len(payload), self, lambda: None)
        reply = Reply()
        frame = Frame(bytearray(payload), self.budget)
        self.node.dispatcher.handle(cast(Connection, self.client), frame, reply)
        return reply.got

    async def call(self, key: ApiKey, version: int, /, **values: Any) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await self.send(key, version, **values)

    def segment_keys(self) -> list[str]:
        return sorted(info.key for info in self.memory.list(keys.chain(self.writer)))

    def next_key(self) -> str:
        return keys.segment(SegmentId(WriterId(self.writer), len(self.segment_keys())))

    async def stop(self) -> None:
        """As a broker that dies: the others find out by its silence."""
        self.let_go()
        self.health.degrade(BrokerPart.HEARTBEAT, "the rig stops")
        await self.node.close()
        await self.sequencer.close()


async def _decoded(key: ApiKey, version: int, got: Awaitable[bytes | None]) -> Any:
    raw = await got
    if raw is None:
        raise ConnectionError("the connection was closed")
    return decode_response(key, version, raw)[1]


async def create_topic(
    rig: Rig,
    name: str,
    partitions: int = 1,
    *,
    timeout_ms: int = 20_000,
    configs: Mapping[str, str] | None = None,
) -> ErrorCode:
    topic: dict[str, Any] = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    given = tuple({"name": key, "value": text} for key, text in (configs or {}).items())
    topic |= {"configs": given, "assignments": ()}
    answer = await rig.call(
        ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout=timeout_ms, validate_only=False
    )
    return ErrorCode(answer.topics[0].error_code)


def send(
    rig: Rig,
    value: bytes | Keyed = b"value",
    *,
    partition: int = 0,
    timeout: int = 20_000,
    **producer: int,
) -> asyncio.Task[Any]:
    record = value if isinstance(value, Keyed) else (None, value)
    batch = build_batch([record], **cast(Any, producer))
    rows = [{"index": partition, "records": batch}]
    data = [{"name": "t", "partition_data": rows}]
    return rig.send(ApiKey.PRODUCE, 9, acks=-1, timeout=timeout, topic_data=data)


async def outcome(sent: asyncio.Task[Any]) -> tuple[ErrorCode, int]:
    async with asyncio.timeout(PATIENCE_S):
        answer = await sent
    row = answer.responses[0].partition_responses[0]
    return ErrorCode(row.error_code), row.base_offset


async def produce(
    rig: Rig, value: bytes | Keyed = b"value", **values: int
) -> tuple[ErrorCode, int]:
    return await outcome(send(rig, value, **values))


async def end_of(rig: Rig, partition: int = 0) -> int:
    """The latest offset. Retries if the broker does not know the offset yet, as clients do."""
    topics = [{"name": "t", "partitions": [{"partition_index": partition, "timestamp": LATEST}]}]
    values = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    deadline = Deadline("the latest offset")
    while True:
        row = (await rig.call(ApiKey.LIST_OFFSETS, 7, **values)).topics[0].partitions[0]
        if row.error_code is not ErrorCode.leader_not_available:
            assert row.error_code is ErrorCode.none
            return int(row.offset)
        await deadline.pause_async()


async def fetched(rig: Rig, partition: int = 0) -> bytes:
    answer = await rig.call(ApiKey.FETCH, 11, **fetch_values("t", {partition: 0}))
    found = answer.responses[0].partitions[0]
    assert found.error_code is ErrorCode.none
    return bytes(found.records or b"")
