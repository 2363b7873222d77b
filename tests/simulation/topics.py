"""Topics that come and go: created, written to, deleted, and created again under the same name.

Only the topic's user writes to its first partition. Copy jobs may write to the other partitions in
transactions.
"""

import asyncio
from random import Random
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import build_batch
from tests.simulation.clients import FOLLOWS_NOTHING, RETRIABLE, Client, Surface


class TopicChanger(Client):
    """Only this client creates or deletes topic `x-<name>`."""

    def __init__(self, name: str, surface: Surface, random: Random) -> None:
        super().__init__(name, surface, random)
        self.topic = f"x-{name}"
        self.created: TopicId | None = None
        """The topic that is there; None between a deletion and the next creation."""
        self.deleted: set[TopicId] = set()
        self.is_changing = False
        self.is_ending = False
        self.is_done = False
        self._producers = 0

    async def run(self) -> None:
        while not self.is_ending:
            self.is_changing = True
            created = await self.create_topic(self.topic, 2)
            if created in self.deleted:  # who said that it was gone had a view that lagged behind
                await self._delete(created)
                continue
            self.created, self.is_changing = created, False
            surface = self.surface
            surface.truth.compacted.add(TopicIdPartition(created, 1))  # aborted records may go
            surface.passing.add(self.topic)
            self.surface.trace.add(self.name, f"created {created.hex()[:8]}")
            for _ in range(self.random.randint(1, 2)):
                await self._produce(created)
                await self.pause(0.3)
            if self.random.random() < 0.3:
                continue
            self.is_changing = True
            self.deleted.add(created)
            self.surface.truth.deleted.update(TopicIdPartition(created, n) for n in range(2))
            await self._delete(created)
            surface.passing.discard(self.topic)
            self.created = None
            await self.pause(1.0)
        self.is_done = True

    async def _produce(self, topic_id: TopicId) -> None:
        """A few batches of a new producer, one after the other, once: each may be in the log or
        not, and none may that comes after one that is not."""
        producer_id = await self.new_producer_id()
        self._producers += 1
        broker, sent = self.any_broker(), []
        for number in range(3):
            value = f"i{self.name}-{self._producers}:{number}".encode()
            self.surface.truth.sent.add(value)
            records = build_batch(
                [(None, value)], producer_id=producer_id, producer_epoch=0, base_sequence=number
            )
            rows = [{"index": 0, "records": records}]
            data = [{"name": self.topic, "partition_data": rows}]
            values = {"transactional_id": None, "acks": -1, "timeout": 3_000, "topic_data": data}
            sent.append((value, self.send(broker, ApiKey.PRODUCE, 9, **values)))
        for value, answer in sent:
            self._take(topic_id, value, await self.decoded(answer, ApiKey.PRODUCE, 9, 4.0))

    def _take(self, topic_id: TopicId, value: bytes, answer: Any) -> None:
        if answer is None:
            return
        row = answer.responses[0].partition_responses[0]
        error = ErrorCode(row.error_code)
        if error is ErrorCode.none:
            partition = TopicIdPartition(topic_id, 0)
            self.surface.truth.acknowledge(self.name, partition, row.base_offset, [value])
        elif error not in (*RETRIABLE, *FOLLOWS_NOTHING):
            self.surface.trace.violate("retriable errors alone", f"{value!r}: {error.name}")

    async def _delete(self, topic_id: TopicId) -> None:
        """Until somebody says that it is gone. By its id: a request that comes late must not find
        the next one by its name."""
        wanted = {"name": None, "topic_id": UUID(bytes=topic_id)}
        while True:
            broker = self.any_broker()
            self.surface.provoke("kill", broker, 0.2)
            answer = await self.call(
                broker, ApiKey.DELETE_TOPICS, 6, topics=[wanted], timeout=3_000
            )
            error = ErrorCode(answer.responses[0].error_code) if answer is not None else None
            self.surface.trace.count(
                f"delete topic: {error.name if error is not None else 'no answer'}"
            )
            if error in (ErrorCode.none, ErrorCode.unknown_topic_id):
                return
            await self.pause(0.5)


class Namesakes(Client):
    """Two users who want one topic, at two brokers at the same time. One of them tries once; the
    other takes what it is told: that the topic is there. Nobody deletes it."""

    def __init__(self, name: str, surface: Surface, random: Random) -> None:
        super().__init__(name, surface, random)
        self.told: set[str] = set()
        """Names of topics that are there, as somebody was told."""
        self.is_ending = False
        self._tries = 0

    async def run(self) -> None:
        while not self.is_ending:
            self._tries += 1
            topic = f"y-{self.name}-{self._tries}"
            first, second = self.random.sample(list(self.surface.brokers), 2)
            self.surface.provoke("kill", first, 0.4)
            self.send(first, ApiKey.CREATE_TOPICS, 7, **_creation(topic))
            await asyncio.sleep(0.01 + self.random.random() * 0.1)
            answer = await self.call(second, ApiKey.CREATE_TOPICS, 7, **_creation(topic))
            error = ErrorCode(answer.topics[0].error_code) if answer is not None else None
            self.surface.trace.count(
                f"create namesake: {error.name if error is not None else 'no answer'}"
            )
            if error in (ErrorCode.none, ErrorCode.topic_already_exists):
                self.told.add(topic)
                self.surface.trace.add(self.name, f"{topic} is there, says {second.name}")
            await self.pause(5.0)


def _creation(topic: str) -> dict[str, Any]:
    wanted = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    wanted |= {"configs": (), "assignments": ()}
    return {"topics": [wanted], "timeout": 3_000, "validate_only": False}
