"""The facts of share groups (KIP-932): who leads a share-partition, and what became of its records.

Invariant: the log decides between two leaders. A broker becomes the leader by fact 25, whose leader
epoch must be the next one; fact 26 counts only under the epoch that is in force. All these facts
are in the order of their tickets.
"""

from typing import Annotated, Literal, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import FailFast, Field

from bucketlog.metadata.fact_model import (
    AttributedFact,
    FactKind,
    FactModel,
    Offset,
    PartitionNumber,
)

STATES = (0, 2, 4)
DELIVERIES_MAX = 2**15 - 1
_Deliveries = Annotated[int, Field(ge=0, le=DELIVERIES_MAX)]
StoredState = Literal[0, 2, 4]
"""The state of stored records: 0 available, 2 acknowledged, 4 archived, as in Kafka's persister.
Acquired records are stored in their state before."""


class ShareTakenRow(NamedTuple):
    """`start_offset` counts only for a share-partition without state."""

    topic_id: UUID
    partition: PartitionNumber
    leader_epoch: Annotated[int, Field(ge=1, lt=2**31)]
    start_offset: Offset


class SharePartitionsTaken(FactModel):
    """A broker incarnation becomes the leader of share-partitions. A row counts if its leader epoch
    is one more than the present one."""

    kind: Literal[FactKind.SHARE_PARTITIONS_TAKEN] = Field(
        FactKind.SHARE_PARTITIONS_TAKEN, exclude=True
    )
    group: str
    leader: str
    rows: Annotated[tuple[ShareTakenRow, ...], FailFast()]


class ShareBatchRow(NamedTuple):
    """Records from `first` to `last` (both included), in one state."""

    first: Offset
    last: Offset
    state: StoredState
    deliveries: _Deliveries


class ShareWrittenRow(NamedTuple):
    """The state of a share-partition after a write. `changes` are the changed parts, in ascending
    order. Below `start_offset`, all records are acknowledged or archived."""

    topic_id: UUID
    partition: PartitionNumber
    leader_epoch: Annotated[int, Field(ge=1, lt=2**31)]
    start_offset: Offset
    changes: Annotated[tuple[ShareBatchRow, ...], FailFast()]


class ShareStateWritten(FactModel):
    """Records of share-partitions that were acknowledged, released or rejected. A row counts if
    its leader and leader epoch are the present ones."""

    kind: Literal[FactKind.SHARE_STATE_WRITTEN] = Field(FactKind.SHARE_STATE_WRITTEN, exclude=True)
    group: str
    leader: str
    rows: Annotated[tuple[ShareWrittenRow, ...], FailFast()]


class ShareStartRow(NamedTuple):
    topic_id: UUID
    partition: PartitionNumber
    start_offset: Offset


class ShareOffsetsSet(AttributedFact):
    """AlterShareGroupOffsets: the share-partitions begin anew at these offsets. The leaders of
    before are fenced."""

    kind: Literal[FactKind.SHARE_OFFSETS_SET] = Field(FactKind.SHARE_OFFSETS_SET, exclude=True)
    group: str
    rows: Annotated[tuple[ShareStartRow, ...], FailFast()]


class ShareOffsetsForgotten(AttributedFact):
    """The group's state of these topics is deleted; without `topics` the group is."""

    kind: Literal[FactKind.SHARE_OFFSETS_FORGOTTEN] = Field(
        FactKind.SHARE_OFFSETS_FORGOTTEN, exclude=True
    )
    group: str
    topics: Annotated[tuple[UUID, ...] | None, FailFast()] = None


ShareFact: TypeAlias = (
    SharePartitionsTaken | ShareStateWritten | ShareOffsetsSet | ShareOffsetsForgotten
)
SHARE_KINDS = frozenset(
    {
        FactKind.SHARE_PARTITIONS_TAKEN,
        FactKind.SHARE_STATE_WRITTEN,
        FactKind.SHARE_OFFSETS_SET,
        FactKind.SHARE_OFFSETS_FORGOTTEN,
    }
)
