"""A committed offset, and its weight against the cluster's limit."""

from typing import NamedTuple, TypeAlias

from bucketlog.log_format.model import TopicIdPartition


class CommittedOffset(NamedTuple):
    """The offset from which a group continues in a partition. Times are milliseconds since 1970.
    `expires_ms` is None unless the client chose it, and `leader_epoch` -1 unless the client sent
    one."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int | None


Offsets: TypeAlias = dict[TopicIdPartition, CommittedOffset]

METADATA_BYTES_A_WEIGHT = 128


def offset_weight(metadata: str) -> int:
    """The weight of a committed offset with this metadata: 1, and 1 more for each 128 bytes."""
    return 1 + len(metadata) // METADATA_BYTES_A_WEIGHT
