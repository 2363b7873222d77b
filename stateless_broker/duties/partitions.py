"""Going through all partitions without holding up others."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.view import View

PARTITIONS_A_STEP = 100
"""Number of partitions that are looked at before others have their turn."""


async def each_partition(
    view: View, topics: Iterable[TopicState]
) -> AsyncIterator[tuple[TopicIdPartition, PartitionLog, TopicState]]:
    """Iterate over the partitions of `topics` that still exist in their turn."""
    looked = 0
    for topic in topics:
        for number in range(topic.partitions):
            partition = TopicIdPartition(topic.topic_id, number)
            log = view.log(partition)
            if log is not None:
                yield partition, log, topic
            looked += 1
            if looked % PARTITIONS_A_STEP == 0:
                await asyncio.sleep(0)
