"""The topics a consumer subscribes to: how its metadata begins (ConsumerProtocolSubscription).

Every version of that schema starts as version 0 does, so the rest is left alone and newer
clients need nothing here: version (int16), then topics (int32 count, each int16 length and UTF-8).
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from zlib import crc32

from bucketlog.log_format.errors import InvalidDataError

_VERSION_AND_COUNT = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")
_CHECKSUM_BYTES = 4


class SubscribedTopics:
    """The topics of several subscriptions, as checksums of 4 bytes each.

    A name may have 1 byte, and a set of such names would need 20 times the memory of the
    subscriptions. If the checksums of two names are equal, a group seems to subscribe to both:
    it keeps offsets that would have expired.

    Raises InvalidDataError for bytes that are not a subscription, and for more than `topics_max`
    topics, counted for each subscription."""

    def __init__(self, subscriptions: Sequence[bytes], *, topics_max: int) -> None:
        count = sum(_count(each) for each in subscriptions)
        if count > topics_max:
            raise InvalidDataError(f"the members subscribe to {count} topics")
        names = frozenset[str]().union(*(subscribed_topics(each) for each in subscriptions))
        self._checksums: array[int] = array("I", sorted({crc32(name.encode()) for name in names}))

    def __contains__(self, topic: str) -> bool:
        checksum = crc32(topic.encode())
        at = bisect_left(self._checksums, checksum)
        return at < len(self._checksums) and self._checksums[at] == checksum

    @property
    def size_bytes(self) -> int:
        return _CHECKSUM_BYTES * len(self._checksums)


def _count(metadata: bytes) -> int:
    """Return the number of topics that the subscription states. Raises `InvalidDataError`."""
    try:
        _, count = _VERSION_AND_COUNT.unpack_from(metadata)
    except struct.error as error:
        raise InvalidDataError(f"not a consumer's subscription: {error}") from error
    return max(int(count), 0)


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Return the topics of a subscription. Raises InvalidDataError if the bytes end early or are
    invalid."""
    try:
        version, count = _VERSION_AND_COUNT.unpack_from(metadata)
        # no more names than could stand there: the count alone must not cost memory
        if version < 0 or not 0 <= count <= len(metadata) // _LENGTH.size:
            raise InvalidDataError(f"subscription version {version} with {count} topics")
        at, topics = _VERSION_AND_COUNT.size, []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, at)
            at += _LENGTH.size
            name = metadata[at : at + length]
            if not 0 <= length == len(name):
                raise InvalidDataError(f"a topic's name of {length} bytes is cut off")
            topics.append(name.decode())
            at += length
    except (struct.error, UnicodeDecodeError) as error:
        raise InvalidDataError(f"not a consumer's subscription: {error}") from error
    return frozenset(topics)
