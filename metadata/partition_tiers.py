"""The tiers of partitions in the fold, for readers of the bucket. Pure."""

from collections.abc import Iterable

from bucketlog.log_format.model import PartitionTier, TopicIdPartition
from bucketlog.metadata.fold import LogState


def partition_tiers(
    state: LogState, wanted: Iterable[TopicIdPartition] | None = None
) -> dict[TopicIdPartition, PartitionTier]:
    """Return the tiers of the `wanted` partitions, which must exist, or of every partition. The
    result does not show later changes of `state`."""
    return {
        partition: PartitionTier(entry.log_start, entry.tier.end, tuple(entry.tier.rows))
        for partition in (state.partitions if wanted is None else wanted)
        for entry in (state.partitions[partition],)
    }
