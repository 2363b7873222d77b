"""Reader and writer of the bytes that consumers of the classic protocol put into JoinGroup and
SyncGroup: ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to 3.

A newer version is read as version 3: versions only add fields.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from bucketlog.consumers.assignor_input import Assignment
from bucketlog.consumers.modern_messages import KnownTopics
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.frames import FrameReader

NEWEST_VERSION = 3
_STRING_BYTES_MIN = 2
_TOPIC_BYTES_MIN = 6
_INT32_BYTES = 4
_NO_USER_DATA = struct.pack(">i", -1)
_HEAD = struct.Struct(">hi")


class Subscription(NamedTuple):
    """A consumer's subscription. `owned`: partitions by topic name; empty in version 0."""

    topics: frozenset[str]
    owned: Mapping[str, frozenset[int]]
    rack_id: str | None
    version: int


def read_subscription(metadata: bytes, *, items_max: int) -> Subscription:
    """Decode a subscription. Raises `InvalidDataError` for other bytes, or for more than
    `items_max` names and numbers."""
    reader = FrameReader(memoryview(metadata), items_max=items_max)
    version = reader.int16()
    if version < 0:
        raise InvalidDataError(f"a subscription of version {version}")
    topics = frozenset(reader.string() for _ in range(reader.array_length(_STRING_BYTES_MIN)))
    reader.nullable_bytes()
    owned = _read_partitions(reader) if version >= 1 else {}
    if version >= 2:
        reader.int32()
    rack_id = reader.nullable_string() if version >= 3 else None
    return Subscription(topics, owned, rack_id, min(version, NEWEST_VERSION))


def read_assignment(data: bytes, topics: KnownTopics, *, items_max: int) -> Assignment:
    """The partitions of topics that exist. Raises `InvalidDataError` also for user data: a custom
    assignor's state would be lost."""
    if not data:
        return {}
    reader = FrameReader(memoryview(data), items_max=items_max)
    reader.int16()
    partitions = _read_partitions(reader)
    if reader.nullable_bytes():
        raise InvalidDataError("an assignment has user data of a custom assignor")
    return by_id(partitions, topics)


def by_id(partitions: Mapping[str, frozenset[int]], topics: KnownTopics) -> Assignment:
    """Return the partitions by topic id, without topics and partitions that do not exist."""
    found: dict[TopicId, frozenset[int]] = {}
    for name, numbers in partitions.items():
        topic = topics.find(name)
        if topic is not None:
            there = frozenset(each for each in numbers if 0 <= each < topic.partitions)
            if there:
                found[topic.topic_id] = there
    return found


def write_assignment(assignment: Assignment, topics: KnownTopics, version: int) -> bytes:
    """Return the encoded assignment, without topics that no longer exist."""
    named = sorted(
        (name, sorted(numbers))
        for topic_id, numbers in assignment.items()
        if (name := topics.name(topic_id)) is not None
    )
    parts = [_HEAD.pack(version, len(named))]
    for name, numbers in named:
        text = name.encode()
        parts.append(struct.pack(f">h{len(text)}si", len(text), text, len(numbers)))
        parts.append(struct.pack(f">{len(numbers)}i", *numbers))
    return b"".join((*parts, _NO_USER_DATA))


def _read_partitions(reader: FrameReader) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for _ in range(reader.array_length(_TOPIC_BYTES_MIN)):
        name = reader.string()
        numbers = frozenset(reader.int32() for _ in range(reader.array_length(_INT32_BYTES)))
        found[name] = found.get(name, frozenset()) | numbers
    return found
