"""The folded state as the sequencer's hashes: what an activation loads. Pure.

The records are those of `lua/settle.lua` and `lua/reserve.lua`: everything is visible (-1), nothing
is open.
"""

from typing import Any

import ormsgpack

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import LogState

VISIBLE = -1


def _pack(record: Any) -> bytes:
    return ormsgpack.packb(record, default=tuple)


def _field(partition: TopicIdPartition) -> str:
    return f"{partition.topic_id.hex()}:{partition.partition}"


def staged_records(
    state: LogState, now_ms: int
) -> tuple[dict[str, bytes], dict[str, bytes], dict[str, bytes]]:
    """Fields and packed records of `topics`, `partitions` and `producers`.

    `now_ms` (the server's time) becomes the last write of each producer, because the fold does not
    have this time."""
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
    producers = {
        f"{producer_id}:{_field(partition)}": _pack(
            [[VISIBLE, *batch, now_ms] for batch in batches]
        )
        for partition, entry in state.partitions.items()
        for producer_id, batches in entry.producers.items()
    }
    return topics, partitions, producers
