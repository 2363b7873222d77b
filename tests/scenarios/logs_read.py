"""A judge's own reading of whole topics, with librdkafka."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.rigs.patience import PATIENCE_S

PARTITIONS = 3
"""Of each topic."""
KEPT = "keyed"
"""The kind of compacted topics."""


@dataclass(slots=True)
class PartitionContent:
    """`end` is the log's end; `keys`: the latest record of each key."""

    offsets: list[int] = field(default_factory=list)
    by_offset: dict[int, bytes] = field(default_factory=dict)
    keys: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    end: int = 0


def read_log(bootstrap: str, topics: Mapping[str, str]) -> dict[tuple[str, int], PartitionContent]:
    """Everything that `read_committed` consumers see."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"judge-{uuid4().hex}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found = {(name, number): PartitionContent() for name in topics for number in range(PARTITIONS)}
    consumer.assign([TopicPartition(name, number, 0) for name, number in found])
    left = set(found)
    while left:
        first = consumer.poll(PATIENCE_S)
        assert first is not None, f"nothing came of {sorted(left)}"
        for message in (first, *consumer.consume(5000, 0)):
            place = str(message.topic()), int(message.partition() or 0)
            error, offset = message.error(), int(message.offset() or 0)
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                found[place].end = offset
                left.discard(place)
                continue
            row = message.timestamp(), message.key(), message.value(), message.headers()
            digest = blake2b(repr(row).encode(), digest_size=12).digest()
            content = found[place]
            content.offsets.append(offset)
            content.by_offset[offset] = digest
            content.keys[message.key() or b""] = offset, digest
    consumer.close()
    return found
