"""What the fold says to those who read the bucket: where each partition's batches stand. Pure."""

from bucketlog.log_format.model import PartitionTier, TopicIdPartition
from bucketlog.metadata.fold import LogState


def partition_tiers(state: LogState) -> dict[TopicIdPartition, PartitionTier]:
    """Of every partition that exists; later changes of `state` do not show."""
    return {
        partition: PartitionTier(entry.log_start, entry.tier.end, tuple(entry.tier.rows))
        for partition, entry in state.partitions.items()
    }
