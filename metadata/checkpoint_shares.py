"""The share groups in a checkpoint's state, for version 9. Pure.

This part follows the state of version 8 (docs/format/checkpoint.md). A checkpoint has it only if
the log has share-partitions.
"""

import struct
from collections.abc import Callable, Mapping, Sequence

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.checkpoint_bytes import COUNT, StateReader, text_bytes
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.share_facts import STATES
from bucketlog.metadata.share_groups import ShareBatch, SharePartition

_PARTITION = struct.Struct(">IIIIqI")
_BATCH = struct.Struct(">qqBH")


def has_shares(state: LogState) -> bool:
    return bool(state.share_groups.by_group)


def encode_shares(state: LogState, rows: Mapping[TopicId, int]) -> list[bytes]:
    """Encode share groups. `rows` are the numbers of the topics in the state."""
    groups = state.share_groups.by_group
    pieces = [COUNT.pack(len(groups))]
    for group, partitions in groups.items():
        pieces += [text_bytes(group), COUNT.pack(len(partitions))]
        for partition, share in partitions.items():
            pieces.append(
                _PARTITION.pack(
                    rows[partition.topic_id],
                    partition.partition,
                    share.state_epoch,
                    share.leader_epoch,
                    share.start_offset,
                    len(share.batches),
                )
            )
            pieces.append(text_bytes(share.leader))
            pieces += [_BATCH.pack(*batch) for batch in share.batches]
    return pieces


def decode_shares(
    reader: StateReader,
    state: LogState,
    partition_at: Callable[[int, int], TopicIdPartition],
    *,
    keep_groups: bool,
) -> None:
    """Decode into `state`. Raises `InvalidDataError`."""
    (groups,) = reader.take(COUNT)
    reader.expect(groups, COUNT)
    for _ in range(groups):
        group = reader.text()
        (partitions,) = reader.take(COUNT)
        reader.expect(partitions, _PARTITION)
        for _ in range(partitions):
            row, number, state_epoch, leader_epoch, start, batches = reader.take(_PARTITION)
            partition, leader = partition_at(row, number), reader.text()
            reader.expect(batches, _BATCH)
            found = tuple(ShareBatch(*reader.take(_BATCH)) for _ in range(batches))
            if not _ascend(found, start):
                raise reader.wrong("batches of a share-partition do not ascend")
            if any(batch.state not in STATES for batch in found):
                raise reader.wrong("a batch of a share-partition has an unknown state")
            if keep_groups:
                share = SharePartition(state_epoch, leader_epoch, leader, start, found)
                state.share_groups.note_loaded(group, partition, share)


def _ascend(batches: Sequence[ShareBatch], start: int) -> bool:
    """Return whether the batches are in offset order, do not overlap, and end at or above
    `start`."""
    end = None
    for batch in batches:
        if batch.last < max(batch.first, start) or (end is not None and batch.first <= end):
            return False
        end = batch.last
    return True
