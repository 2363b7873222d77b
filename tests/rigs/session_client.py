"""The client's side of an incremental fetch session (KIP-227), as Kafka's consumer keeps it.

It names only what has changed since its last request, and remembers what it was told of each
partition. Source: Kafka's FetchSessionHandler.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire import fetch
from bucketlog.stateless_broker.authorization.authorizer import Access
from tests.rigs.access import EVERYTHING
from tests.rigs.broker_rig import Client
from tests.rigs.tiered_log import TieredLog

MIB = 1 << 20


class PartitionAnswer(NamedTuple):
    """What a response says of a partition."""

    error: ErrorCode
    high_watermark: int
    log_start: int
    records: bytes = b""


Place = tuple[str, int]
"""A topic and the number of a partition."""


@dataclass
class SessionClient:
    """`offsets` are the partitions that it wants, with their fetch offsets."""

    log: TieredLog
    isolation: int = 0
    version: int = 12
    access: Access = EVERYTHING
    connection: Client = field(default_factory=Client)
    ids: dict[str, TopicId] = field(default_factory=dict)
    """By topic, for versions that name topics by their ids."""
    offsets: dict[Place, int] = field(default_factory=dict)
    known: dict[Place, PartitionAnswer] = field(default_factory=dict)
    session_id: int = 0
    epoch: int = 0
    sent: dict[Place, int] = field(default_factory=dict)
    errors: list[ErrorCode] = field(default_factory=list)
    """The errors of whole responses."""

    def _partitions(self, offsets: dict[Place, int], max_bytes: int) -> fetch.FetchPartitions:
        return fetch.FetchPartitions(
            fetch.FetchedPartition(*self._key(topic), number, -1, offset, max_bytes)
            for (topic, number), offset in offsets.items()
        )

    def _key(self, topic: str) -> fetch.TopicKey:
        if self.version >= fetch.TOPIC_IDS_FROM:
            return "", self.ids[topic]
        return topic, None

    def message(self, *, wait_ms: int = 0, max_bytes: int = 64 * MIB) -> fetch.FetchRequest:
        changed = {
            place: offset
            for place, offset in self.offsets.items()
            if self.sent.get(place) != offset
        }
        gone = [place for place in self.sent if place not in self.offsets]
        return fetch.FetchRequest(
            wait_ms,
            1,
            max_bytes,
            self.isolation,
            self.session_id,
            self.epoch,
            self._partitions(changed if self.epoch else self.offsets, MIB),
            [(self._key(topic), number) for topic, number in gone] if self.epoch else [],
        )

    async def poll(
        self, *, wait_ms: int = 0, max_bytes: int = 64 * MIB
    ) -> dict[Place, PartitionAnswer] | None:
        """What the response names; None if it is an error. The next request is then a full one."""
        message = self.message(wait_ms=wait_ms, max_bytes=max_bytes)
        answer = await self.log.exchange(
            message, version=self.version, access=self.access, client=self.connection
        )
        if answer.error_code is not ErrorCode.none:
            self.errors.append(answer.error_code)
            if answer.error_code is ErrorCode.fetch_session_id_not_found:
                self.session_id = 0
            self.epoch = 0
            return None
        if message.is_full:
            self.known.clear()
        self.sent = dict(self.offsets)
        self.session_id = answer.session_id
        self.epoch = self.epoch + 1 if self.session_id else 0
        found = self._told(answer)
        self.known |= found
        return found

    async def poll_all(self) -> dict[Place, PartitionAnswer]:
        """What a client without a session gets for the same partitions."""
        message = fetch.FetchRequest(
            0, 1, 64 * MIB, self.isolation, 0, -1, self._partitions(self.offsets, MIB)
        )
        return self._told(
            await self.log.exchange(message, version=self.version, access=self.access)
        )

    def _told(self, answer: Any) -> dict[Place, PartitionAnswer]:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        found: dict[Place, PartitionAnswer] = {}
        for topic in answer.responses:
            name = (
                names[TopicId(topic.topic_id.bytes)]
                if self.version >= fetch.TOPIC_IDS_FROM
                else topic.topic
            )
            for row in topic.partitions:
                assert (name, row.partition_index) not in found
                found[name, row.partition_index] = PartitionAnswer(
                    row.error_code, row.high_watermark, row.log_start_offset, row.records or b""
                )
        return found
