"""Since when the first unread record of a partition waits: its timestamp, read from the partition.

One fetch for each partition, and no more than one batch of it. No offset is committed.
"""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition as KafkaPartition

READ_BYTES = 1
"""A broker returns at least one batch."""
POLL_S = 0.25
_CONFIG = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "group.id": "bucketlog-unread",  # librdkafka needs one; nothing joins or commits
    "queued.min.messages": 1,
    "max.partition.fetch.bytes": READ_BYTES,
    "fetch.wait.max.ms": 10,
}


def first_unread_ms(
    config: Mapping[str, Any], offsets: Mapping[tuple[str, int], int], timeout_s: float
) -> dict[tuple[str, int], int]:
    """The timestamp of the first record at or after each offset, in ms since the Unix epoch.

    A partition is missing if this client may not read it, if the record has no timestamp, or if
    none arrives within `timeout_s`.
    """
    waiting = dict(offsets)
    found: dict[tuple[str, int], int] = {}
    if not waiting:
        return found
    consumer = KafkaConsumer({**config, **_CONFIG})
    try:
        consumer.assign(
            [KafkaPartition(topic, part, offset) for (topic, part), offset in waiting.items()]
        )
        until = time.monotonic() + timeout_s
        while waiting and time.monotonic() < until:
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            spot = (str(message.topic()), int(message.partition() or 0))
            if waiting.pop(spot, None) is None:
                continue
            consumer.incremental_unassign([KafkaPartition(*spot)])
            if message.error() is None and (timestamp_ms := message.timestamp()[1]) >= 0:
                found[spot] = timestamp_ms
    finally:
        consumer.close()
    return found
