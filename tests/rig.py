"""A broker without sockets: the real dispatcher, commit path, feed and view on a real Valkey, a
bucket and a way to Valkey that fail as they are told.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast
from uuid import uuid4

from kio.schema.errors import ErrorCode

from bucketlog.model import Buffer, SegmentId, WriterId
from metadata.sequencer.redis_url import connect_redis
from metadata.sequencer.requests import BrokerAddress
from metadata.view import View
from stateless_broker.consumer_groups import ConsumerGroups
from stateless_broker.duties.checkpointing import Checkpointer
from stateless_broker.duties.roster import Duties
from stateless_broker.epochs.activation import EpochStarter
from stateless_broker.epochs.broker_parts import BrokerParts
from stateless_broker.epochs.committed import CommittedLog
from stateless_broker.epochs.epochs import Epochs
from stateless_broker.epochs.joining import Joiner
from stateless_broker.epochs.known_segments import KnownSegments
from stateless_broker.fetch.feed import Watchers
from stateless_broker.fetch.reading import RangeReader
from stateless_broker.health import Health
from stateless_broker.membership import Membership
from stateless_broker.network.connection import Answer, Connection, Frame
from stateless_broker.network.memory_budget import MemoryBudget
from stateless_broker.produce.commit import Committer
from stateless_broker.produce.intake import Intake
from stateless_broker.settings import BrokerSettings
from stateless_broker.supervisor import Supervisor
from tests.unsure_sequencer import UnsureSequencer
from tests.wire_client import build_batch, decode_response, encode_request, fetch_values
from tiered_storage import keys
from tiered_storage.backends.memory import MemoryBucket
from tiered_storage.backends.threaded import ThreadedBucket
from tiered_storage.counting import CountingBucket
from tiered_storage.faulty import Fault, FaultPlan, FaultyBucket, Verb
from tiered_storage.retry import RetryBucket, RetryPolicy

PATIENCE_S = 20.0
LATEST = -1
HELD_MS = 1_000_000
"""A fault of this delay waits for `Rig.let_go`, not for time."""
HELD = Fault(error=None, delay_ms=HELD_MS)


def nothing_fails(verb: Verb, key: str) -> Fault | None:
    return None


async def until(condition: Callable[[], bool]) -> None:
    """Give others their turn until the condition holds; fails where it does not for long."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            turn = asyncio.Event()
            asyncio.get_running_loop().call_later(0.002, turn.set)
            await turn.wait()


class Reply(Answer):
    """Gives the answer to whoever awaits `got`; None where the connection was closed."""

    __slots__ = ("got",)

    def __init__(self) -> None:
        self.got: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def hold_back_later_requests(self) -> None:
        pass

    def send(self, parts: Sequence[Buffer]) -> None:
        if not self.got.done():
            self.got.set_result(b"".join(parts))

    def close(self, reason: str) -> None:
        if not self.got.done():
            self.got.set_result(None)


class Client:
    """In a connection's place: where requests come from, and what ends when it goes."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[None]] = set()

    def give_up_with_client(self, task: asyncio.Task[None]) -> None:
        self._waiting.add(task)

    def go(self) -> None:
        """It does not wait for its answers any more."""
        for task in self._waiting:
            task.cancel()


class Rig:
    """`plan` decides the bucket's faults once the epoch is active; assign it at any time."""

    def __init__(
        self,
        redis: Path | str,
        *,
        memory: MemoryBucket | None = None,
        puts_in_flight: int = 2,
        flush_bytes: int = 1 << 20,
        flush_interval_ms: int = 0,
        cluster_id: str | None = None,
        **settings: int,
    ) -> None:
        """`redis` is a socket or a URL. `cluster_id` and `memory` of another rig make this one a
        second broker beside it."""
        self.plan: FaultPlan = nothing_fails
        self.memory = memory or MemoryBucket()
        self.counts = CountingBucket(
            FaultyBucket(
                ThreadedBucket(self.memory),
                self._planned,
                sleep=self._sleep,
            )
        )
        self.budget = MemoryBudget(1 << 30)
        self.health = Health()
        self.supervisor = Supervisor()
        self.view = View()
        self.intake = Intake(self.health, flush_bytes=flush_bytes)
        self.settings = BrokerSettings(
            bucket_url="memory://rig",
            redis_url="unix://rig",
            flush_interval_ms=flush_interval_ms,
            flush_bytes=flush_bytes,
            puts_in_flight=puts_in_flight,
            put_retry_ms=20,
            **cast(Any, settings),
        )
        self.cluster_id = cluster_id or uuid4().hex
        redis_url = redis if isinstance(redis, str) else f"unix://{redis}"
        self.sequencer = UnsureSequencer(
            connect_redis(redis_url, timeout_ms=self.settings.redis_timeout_ms),
            cluster_id=self.cluster_id,
            stream_segments_max=self.settings.stream_segments_max,
        )
        self.client = Client()
        self.clock_ms = 1
        """What it takes for the time of day."""
        self._epochs: Epochs | None = None
        self._held: list[asyncio.Event] = []
        self._correlation_id = 0

    async def start(self) -> None:
        bucket = RetryBucket(self.counts, RetryPolicy(), random=Random(1))
        self.membership = Membership(
            sequencer=self.sequencer,
            cluster_id="rig",
            incarnation=uuid4().hex,
            node_id=None,
            address=BrokerAddress("127.0.0.1", 1, ""),
            session_timeout_ms=self.settings.session_timeout_ms,
            role_timeout_ms=self.settings.role_timeout_effective_ms,
            health=self.health,
        )
        self.supervisor.spawn(
            self.sequencer.follow_primary(self.settings.redis_lookup_interval_ms),
            "the way to the primary",
            on_failure=self._failed,
        )
        await self.membership.join()
        self.heartbeat = self.supervisor.spawn(
            self.membership.run(self.settings.heartbeat_interval_ms),
            "heartbeat",
            on_failure=self._failed,
        )
        committed = CommittedLog(
            bucket,
            footer_reads_in_flight=4,
            known=KnownSegments(batches_max=self.settings.known_batches_max),
        )
        self.starter = starter = EpochStarter(
            bucket=bucket,
            committed=committed,
            sequencer=self.sequencer,
            incarnation=self.membership.incarnation,
            now_ms=self._now_ms,
            new_id=lambda: uuid4().hex,
        )
        joiner = Joiner(
            sequencer=self.sequencer,
            committed=committed,
            starter=starter,
            membership=self.membership,
            claim_wait_ms=self.settings.claim_wait_ms,
            now_ms=self._now_ms,
        )
        parts = BrokerParts(
            settings=self.settings,
            write_bucket=self.counts,
            bucket=bucket,
            committed=committed,
            starter=starter,
            sequencer=self.sequencer,
            membership=self.membership,
            health=self.health,
            supervisor=self.supervisor,
            view=self.view,
            watchers=Watchers(),
            intake=self.intake,
            reader=RangeReader.of(bucket, self.health, self.settings),
            on_failure=self._failed,
            now_ms=self._now_ms,
            new_uuid=uuid4,
        )
        self._epochs = epochs = Epochs(parts, joiner)
        await epochs.begin()
        self.writer = self.committer.writer
        await self.membership.serve()
        self.health.started = True

    @property
    def epochs(self) -> Epochs:
        assert self._epochs is not None, "not started"
        return self._epochs

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

    def _now_ms(self) -> int:
        return self.clock_ms

    def _failed(self, error: Exception) -> None:
        self.health.stop_writing(f"failed: {error!r}")

    def _planned(self, verb: Verb, key: str) -> Fault | None:
        return self.plan(verb, key)

    async def _sleep(self, delay_s: float) -> None:
        if delay_s * 1000 < HELD_MS:
            await asyncio.sleep(delay_s)
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

    def send(self, name: str, version: int, **values: Any) -> "asyncio.Task[Any]":
        """A request; the task gives kio's response."""
        self._correlation_id += 1
        payload = encode_request(name, version, self._correlation_id, values)
        assert self.budget.acquire(len(payload), self, lambda: None)
        reply = Reply()
        frame = Frame(bytearray(payload), self.budget)
        self.epochs.handle(cast(Connection, self.client), frame, reply)
        return asyncio.create_task(_decoded(name, version, reply.got))

    async def call(self, name: str, version: int, **values: Any) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await self.send(name, version, **values)

    def segment_keys(self) -> list[str]:
        return sorted(info.key for info in self.memory.list(keys.chain(self.writer)))

    def next_key(self) -> str:
        return keys.segment(SegmentId(WriterId(self.writer), len(self.segment_keys())))

    async def stop(self) -> None:
        self.let_go()
        if self._epochs is not None:
            await self._epochs.stop()
        await self.supervisor.cancel_all()
        await self.sequencer.close()
        await self.counts.close()


async def _decoded(name: str, version: int, got: Awaitable[bytes | None]) -> Any:
    raw = await got
    if raw is None:
        raise ConnectionError("the connection was closed")
    return decode_response(name, version, raw)[1]


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
        "create_topics", 5, topics=[topic], timeout=timeout_ms, validate_only=False
    )
    return ErrorCode(answer.topics[0].error_code)


class Keyed(NamedTuple):
    """A record with a key; None for a tombstone."""

    key: bytes
    value: bytes | None


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
    return rig.send("produce", 9, acks=-1, timeout=timeout, topic_data=data)


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
    rows = [{"partition_index": partition, "timestamp": LATEST}]
    topics = [{"name": "t", "partitions": rows}]
    answer = await rig.call("list_offsets", 7, replica_id=-1, isolation_level=0, topics=topics)
    row = answer.topics[0].partitions[0]
    assert row.error_code is ErrorCode.none
    return int(row.offset)


async def fetched(rig: Rig, partition: int = 0) -> bytes:
    answer = await rig.call("fetch", 11, **fetch_values("t", {partition: 0}))
    found = answer.responses[0].partitions[0]
    assert found.error_code is ErrorCode.none
    return bytes(found.records or b"")
