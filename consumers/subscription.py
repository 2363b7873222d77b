"""The topics a consumer subscribes to: how its metadata begins (ConsumerProtocolSubscription).

Every version of that schema starts as version 0 does, so the rest is left alone and newer
clients need nothing here: version (int16), then topics (int32 count, each int16 length and UTF-8).
"""

import struct

from bucketlog.log_format.errors import InvalidDataError

_VERSION_AND_COUNT = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Raises InvalidDataError where the bytes end early or say nonsense."""
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
