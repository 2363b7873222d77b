"""Encodes Metadata responses topic by topic, because a response may contain every partition.

Source: Kafka's MetadataResponse.json, versions 0 to 13.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.wire.frames import FrameWriter

NO_OPERATIONS_KNOWN = -(2**31)
FLEXIBLE_FROM = 9
PARTITIONS_A_STEP = 500
_RACK_FROM = 1
_CLUSTER_ID_FROM = 2
_THROTTLE_FROM = 3
_OFFLINE_FROM = 5
_LEADER_EPOCH_FROM = 7
_TOPIC_OPERATIONS_FROM = 8
_CLUSTER_OPERATIONS_UNTIL = 10
_TOPIC_ID_FROM = 10
_NULL_NAME_FROM = 12
_ERROR_FROM = 13
"""KIP-1102: REBOOTSTRAP_REQUIRED sends clients back to their bootstrap servers."""
_NO_TOPIC_ID = bytes(16)


class BrokerRow(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


def response_start(
    version: int, brokers: Sequence[BrokerRow], cluster_id: str, controller_id: int, topics: int
) -> bytes:
    """The response up to its first topic; `topics` is the number of topics."""
    out = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    if version >= _THROTTLE_FROM:
        out.int32(0)
    out.array_length(len(brokers))
    for broker in brokers:
        out.int32(broker.node_id)
        out.nullable_string(broker.host)
        out.int32(broker.port)
        if version >= _RACK_FROM:
            out.nullable_string(broker.rack)
        out.tags()
    if version >= _CLUSTER_ID_FROM:
        out.nullable_string(cluster_id)
    if version >= _RACK_FROM:
        out.int32(controller_id)
    out.array_length(topics)
    return bytes(out.data)


def response_end(version: int, operations: int = NO_OPERATIONS_KNOWN) -> bytes:
    """The response after its last topic. `operations`: those on the cluster, as a bit field."""
    out = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    if _TOPIC_OPERATIONS_FROM <= version <= _CLUSTER_OPERATIONS_UNTIL:
        out.int32(operations)
    if version >= _ERROR_FROM:
        out.int16(0)
    out.tags()
    return bytes(out.data)


def topic_start(
    version: int, error_code: int, name: str | None, topic_id: bytes | None, partitions: int
) -> bytes:
    """A topic up to its first partition; `partitions` is the number of partitions."""
    out = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    out.int16(error_code)
    out.nullable_string(name if version >= _NULL_NAME_FROM else name or "")
    if version >= _TOPIC_ID_FROM:
        out.data += topic_id or _NO_TOPIC_ID
    if version >= _RACK_FROM:
        out.data.append(0)  # not internal
    out.array_length(partitions)
    return bytes(out.data)


def topic_end(version: int, operations: int = NO_OPERATIONS_KNOWN) -> bytes:
    out = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    if version >= _TOPIC_OPERATIONS_FROM:
        out.int32(operations)
    out.tags()
    return bytes(out.data)


def partition_steps(version: int, leaders: Iterator[int]) -> Iterator[bytes]:
    """Partitions 0, 1, … with these `leaders`, in chunks of `PARTITIONS_A_STEP`."""
    pack = _PartitionLayout(version)
    out = bytearray()
    for partition, leader in enumerate(leaders):
        out += pack(partition, leader)
        if (partition + 1) % PARTITIONS_A_STEP == 0:
            yield bytes(out)
            out.clear()
    yield bytes(out)


class _PartitionLayout:
    """The layout of a partition whose leader is its only replica, and in sync."""

    def __init__(self, version: int) -> None:
        self._layout = struct.Struct(
            ">hii"
            + ("i" if version >= _LEADER_EPOCH_FROM else "")
            + ("BiBi" if version >= FLEXIBLE_FROM else "iiii")
            + ("B" if version >= FLEXIBLE_FROM else "i" if version >= _OFFLINE_FROM else "")
            + ("B" if version >= FLEXIBLE_FROM else "")
        )
        self._epoch = (LEADER_EPOCH,) if version >= _LEADER_EPOCH_FROM else ()
        self._one = 2 if version >= FLEXIBLE_FROM else 1
        """The encoded length of an array with one item."""
        none = 1 if version >= FLEXIBLE_FROM else 0
        offline = (none,) if version >= _OFFLINE_FROM else ()
        self._end = (*offline, 0) if version >= FLEXIBLE_FROM else offline

    def __call__(self, partition: int, leader: int) -> bytes:
        one = self._one
        return self._layout.pack(
            0, partition, leader, *self._epoch, one, leader, one, leader, *self._end
        )
