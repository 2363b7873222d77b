"""What the fold says to those who read the bucket: where each partition's batches are. Pure."""

from collections.abc import Iterable

from bucketlog.log_format.model import PartitionTier, TopicIdPartition
from bucketlog.metadata.fold import LogState


def partition_tiers(
    state: LogState, wanted: Iterable[TopicIdPartition] | None = None
) -> dict[TopicIdPartition, PartitionTier]:
    """Of the `wanted` partitions, which exist, or of every partition; later changes of `state` do
    not show."""
    return {
        partition: PartitionTier(entry.log_start, entry.tier.end, tuple(entry.tier.rows))
        for partition in (state.partitions if wanted is None else wanted)
        for entry in (state.partitions[partition],)
    }
