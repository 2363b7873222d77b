"""The folded state as the sequencer's hashes: what an activation loads. Pure.

The records are those of `lua/settle.lua` and `lua/reserve.lua`: everything is visible (-1), nothing
is open.
"""

from typing import Any

import ormsgpack

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.producers import ProducedBatch

VISIBLE = -1


def _pack(record: Any) -> bytes:
    return ormsgpack.packb(record, default=tuple)


def _field(partition: TopicIdPartition) -> str:
    return f"{partition.topic_id.hex()}:{partition.partition}"


def _age_ms(batch: ProducedBatch, now_ms: int) -> int:
    return max(0, now_ms - batch.appended_ms)


def staged_records(
    state: LogState, now_ms: int
) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, bytes]]:
    """Fields and packed records of `topics`, `partitions` and `producers`.

    `now_ms` is the server's time. A producer's batch keeps its age, measured by the earlier of the
    log's clock and the server's. Neither a wrong clock nor an outage expires producers early."""
    topics = {
        topic.name: _pack([[VISIBLE, topic.topic_id.hex(), topic.partitions, False]])
        for topic in state.topics.values()
    }
    partitions = {
        _field(partition): _pack(
            {
                "next": entry.next_offset,
                "visible_end": entry.next_offset,
                "log_start": entry.log_start,
                "open": "",
            }
        )
        for partition, entry in state.partitions.items()
    }
    log_ms = min(now_ms, state.clock.now_ms)
    producers = {
        f"{producer_id}:{_field(partition)}": _pack(
            [[VISIBLE, *batch[:-1], now_ms - _age_ms(batch, log_ms)] for batch in batches]
        )
        for partition, entry in state.partitions.items()
        for producer_id, batches in entry.producers.items()
    }
    return topics, partitions, producers
