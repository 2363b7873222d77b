"""Kafka clients of the simulation: real frames to brokers that may be dead, slow or wrong."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import build_batch, decode_response, encode_request
from tests.simulation.brokers import ClientConnection, SimulatedBroker
from tests.simulation.loop import WORLD, VirtualLoop
from tests.simulation.trace import Trace
from tests.simulation.truth import Truth

REQUEST_TIMEOUT_S = 4.0
NEW_PRODUCER_SHARE = 0.15
"""So often a producer begins anew, with another producer id, where nothing is on its way."""
FIRST_BATCH_SHARE = 0.1
"""So often a broker dies of a producer's first batches."""
IN_PIECES_SHARE = 0.3
"""So often a producer's batches leave one some time after the other, and time out so, too."""
RETRIABLE = frozenset(
    {
        ErrorCode.request_timed_out,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.offset_not_available,
        ErrorCode.kafka_storage_error,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_coordinator,
        ErrorCode.rebalance_in_progress,
    }
)
FOLLOWS_NOTHING = (ErrorCode.out_of_order_sequence_number, ErrorCode.unknown_producer_id)
"""Of a batch behind one that has not arrived."""


@dataclass
class Surface:
    """The part of the world that clients see. `provoke` kills, pauses or stalls a broker during the
    client's request, in a share of cases."""

    loop: VirtualLoop
    trace: Trace
    truth: Truth
    brokers: Sequence[SimulatedBroker]
    topics: dict[str, TopicId]
    """Ids of the topics that were created for good."""
    provoke: Callable[[str, SimulatedBroker, float], None] = lambda what, broker, share: None
    aside: Callable[[], list[SimulatedBroker]] = list
    """The brokers that reach another Redis than the primary."""
    passing: set[str] = field(default_factory=set)
    """Names of existing topics that will be deleted."""

    def partition(self, topic: str, number: int) -> TopicIdPartition:
        return TopicIdPartition(self.topics[topic], number)


class Client:
    def __init__(self, name: str, surface: Surface, random: Random) -> None:
        self.name = name
        self.surface = surface
        self.random = random
        self._connections: dict[str, ClientConnection] = {}
        self._correlation_id = 0

    def any_broker(self) -> SimulatedBroker:
        return self.random.choice(self.surface.brokers)

    async def pause(self, longest_s: float = 0.2) -> None:
        await asyncio.sleep(self.random.random() * longest_s)

    def send(
        self, broker: SimulatedBroker, key: ApiKey, version: int, /, **values: Any
    ) -> "asyncio.Future[bytes | None]":
        """Its answer's bytes, or None where the connection broke."""
        loop = self.surface.loop
        connection = self._connections.setdefault(broker.name, ClientConnection())
        self._correlation_id += 1
        payload = encode_request(key, version, self._correlation_id, values, self.name)
        answer: asyncio.Future[bytes | None] = loop.create_future()
        delay_s = 0.0002 + self.random.random() * 0.002
        arrival = connection.last_arrival = max(
            connection.last_arrival + 1e-6, loop.time() + delay_s
        )

        def tell(data: bytes | None) -> None:
            loop.call_later(delay_s, settle, data, context=WORLD)

        def settle(data: bytes | None) -> None:
            if not answer.done():
                answer.set_result(data)

        loop.call_at(arrival, lambda: broker.take(connection, payload, tell), context=WORLD)
        return answer

    async def call(
        self,
        broker: SimulatedBroker,
        key: ApiKey,
        version: int,
        /,
        timeout_s: float = REQUEST_TIMEOUT_S,
        **values: Any,
    ) -> Any:
        """kio's response; None where there was none in time."""
        answer = self.send(broker, key, version, **values)
        return await self.decoded(answer, key, version, timeout_s)

    async def decoded(
        self, answer: "asyncio.Future[bytes | None]", key: ApiKey, version: int, timeout_s: float
    ) -> Any:
        await asyncio.wait([answer], timeout=timeout_s)
        if not answer.done():
            return None
        data = answer.result()
        return None if data is None else decode_response(key, version, data)[1]

    async def run(self) -> None:
        """What it does for all of the run."""

    async def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> TopicId:
        """Until it is there; its id: maybe of one that this client has deleted before."""
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        rows = [{"name": key, "value": value} for key, value in (configs or {}).items()]
        topic |= {"configs": rows, "assignments": ()}
        while True:
            answer = await self.call(
                self.any_broker(),
                ApiKey.CREATE_TOPICS,
                7,
                topics=[topic],
                timeout=3_000,
                validate_only=False,
            )
            error = ErrorCode(answer.topics[0].error_code) if answer is not None else None
            self.surface.trace.count(
                f"create topic: {error.name if error is not None else 'no answer'}"
            )
            if error is ErrorCode.none:
                return TopicId(answer.topics[0].topic_id.bytes)
            if error is ErrorCode.topic_already_exists:
                found = await self.topic_id(name)
                if found is not None:
                    return found
            await self.pause()

    async def new_producer_id(self, broker: SimulatedBroker | None = None) -> int:
        """Of this broker, or of any."""
        while True:
            answer = await self.call(
                broker or self.any_broker(),
                ApiKey.INIT_PRODUCER_ID,
                4,
                transactional_id=None,
                transaction_timeout=60_000,
                producer_id=-1,
                producer_epoch=-1,
            )
            if answer is not None and ErrorCode(answer.error_code) is ErrorCode.none:
                self.surface.truth.give_producer_id(self.name, answer.producer_id)
                return int(answer.producer_id)
            await self.pause(0.2 if broker is None else 0.02)

    def lone_batch(self, topic: str, partition: int, value: bytes) -> dict[str, Any]:
        """A Produce request's fields: one record of no producer in particular, sent once."""
        self.surface.truth.sent.add(value)
        records = build_batch([(None, value)], producer_id=-1, producer_epoch=-1, base_sequence=-1)
        data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
        return {"transactional_id": None, "acks": -1, "timeout": 3_000, "topic_data": data}

    async def topic_id(self, name: str) -> TopicId | None:
        answer = await self.call(
            self.any_broker(),
            ApiKey.METADATA,
            12,
            topics=[{"name": name, "topic_id": None}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        if answer is None or ErrorCode(answer.topics[0].error_code) is not ErrorCode.none:
            return None
        return TopicId(answer.topics[0].topic_id.bytes)


@dataclass
class Batch:
    number: int
    sequence: int
    values: list[bytes]


class Producer(Client):
    """Writes `batches` batches to one partition, up to `window` of them on their way at once to one
    broker after another, and each again until it is acknowledged."""

    def __init__(
        self,
        name: str,
        surface: Surface,
        random: Random,
        *,
        topic: str,
        partition: int,
        batches: int,
        window: int,
        idempotent: bool,
    ) -> None:
        super().__init__(name, surface, random)
        self._topic = topic
        self._partition = partition
        self._batches = batches
        self._window = window
        self._idempotent = idempotent
        self._producer_id = -1
        self.acknowledged = 0

    @property
    def is_done(self) -> bool:
        return self.acknowledged >= self._batches

    @property
    def _begins_anew(self) -> bool:
        is_new = self._producer_id < 0 or self.random.random() < NEW_PRODUCER_SHARE
        return self._idempotent and is_new

    async def run(self) -> None:
        waiting: list[Batch] = []
        made = records = first = 0
        broker = self.any_broker()
        while not self.is_done:
            if self._begins_anew and not waiting:
                self._producer_id, first = await self.new_producer_id(), records
            while made < self._batches and (
                not waiting or made - waiting[0].number < self._window  # as Kafka's own clients do
            ):
                values = self._values(records, self.random.randint(1, 3))
                batch = Batch(made, records - first, values)
                made += 1
                records += len(batch.values)
                waiting.append(batch)
            went_well = await self._send_all(broker, waiting)
            if not went_well or self.random.random() < 0.1:
                broker = self.any_broker()
            await self.pause(1.0 if went_well else 0.5)

    def _values(self, first: int, count: int) -> list[bytes]:
        kind = "i" if self._idempotent else "n"
        values = [f"{kind}{self.name}:{first + n}".encode() for n in range(count)]
        self.surface.truth.sent.update(values)
        return values

    async def _send_all(self, broker: SimulatedBroker, waiting: list[Batch]) -> bool:
        """All at once; those that are acknowledged go. True if all are."""
        sent: list[tuple[Batch, asyncio.Future[bytes | None]]] = []
        if self._idempotent and self._window > 1 and waiting[0].sequence == 0:
            self.surface.provoke("kill", broker, FIRST_BATCH_SHARE)
        in_pieces = self.random.random() < IN_PIECES_SHARE
        process = broker.process
        for batch in waiting:
            if in_pieces and sent:
                await self.pause(1.0)
            sent.append((batch, self._send(broker, batch)))
        before_is_open = before_is_unanswered = False
        for batch, answer in sent:
            response = await self.decoded(answer, ApiKey.PRODUCE, 9, REQUEST_TIMEOUT_S)
            row = response.responses[0].partition_responses[0] if response is not None else None
            error = ErrorCode(row.error_code) if row is not None else None
            if row is not None and error is ErrorCode.none:
                self._acknowledge(batch, row.base_offset)
                waiting.remove(batch)
                continue
            before_is_unanswered |= broker.process is not process  # it has forgotten its answers
            self._check_error(batch, error, before_is_unanswered)
            before_is_open = True
            before_is_unanswered |= error is None
        return not before_is_open

    def _acknowledge(self, batch: Batch, base: int) -> None:
        surface = self.surface
        if base < 0:
            surface.trace.violate("acknowledged", f"{batch.values} without an offset")
        partition = surface.partition(self._topic, self._partition)
        surface.trace.add(self.name, f"{batch.values[0]!r} at {base}")
        surface.truth.acknowledge(self.name, partition, base, batch.values)
        self.acknowledged += 1

    def _check_error(
        self, batch: Batch, error: ErrorCode | None, before_is_unanswered: bool
    ) -> None:
        """A client whose earlier batch was refused sends both again, in order, and must not hear
        that there is a gap."""
        self.surface.trace.count(f"produce: {error.name if error is not None else 'no answer'}")
        if error is None or error in RETRIABLE:
            return
        if before_is_unanswered and error in FOLLOWS_NOTHING:
            return
        self.surface.trace.violate("retriable errors alone", f"{batch.values[0]!r}: {error.name}")

    def _send(self, broker: SimulatedBroker, batch: Batch) -> "asyncio.Future[bytes | None]":
        records = build_batch(
            [(None, value) for value in batch.values],
            producer_id=self._producer_id,
            producer_epoch=0 if self._idempotent else -1,
            base_sequence=batch.sequence if self._idempotent else -1,
        )
        rows = [{"index": self._partition, "records": records}]
        return self.send(
            broker,
            ApiKey.PRODUCE,
            9,
            transactional_id=None,
            acks=-1,
            timeout=3_000,
            topic_data=[{"name": self._topic, "partition_data": rows}],
        )
