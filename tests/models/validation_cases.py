"""Batches with Apache Kafka 4.3.1's error, and with our error where it differs on purpose.

`tests/compat/test_produce_validation.py` compares the first column with a Kafka broker, and
`tests/integration/test_produce_validation.py` compares the second with our broker.
docs/decisions/0016-produced-records.md explains the differences.
"""

import gzip
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import cramjam
import lz4.frame
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import LOG_APPEND_TIME, Codec
from bucketlog.log_format.compression import compress
from tests.models.produced_batches import batch, record, sealed, varint

NONE, INVALID = ErrorCode.none, ErrorCode.invalid_record
CORRUPT, TIMESTAMP = ErrorCode.corrupt_message, ErrorCode.invalid_timestamp
UNKNOWN = ErrorCode.unknown_server_error
COMPACTED = {"cleanup.policy": "compact"}
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Case:
    """`data` has timestamps of the year 2023, or, with `ahead_ms`, relative to now."""

    data: bytes
    kafka: ErrorCode
    ours: ErrorCode | None = None
    """None: the same error as Kafka's."""
    configs: Mapping[str, str] = field(default_factory=dict)
    ahead_ms: int | None = None
    refused: tuple[int, ...] = ()
    """The records that the response names; our broker does so only if the error is the same."""

    @property
    def expected(self) -> ErrorCode:
        return self.kafka if self.ours is None else self.ours

    @property
    def named(self) -> tuple[int, ...]:
        return self.refused if self.ours is None else ()

    def sent_now(self) -> bytes:
        """The batch, with its timestamps for a send now."""
        if self.ahead_ms is None:
            return self.data
        timestamp_ms = time.time_ns() // 1_000_000 + self.ahead_ms
        stamped = bytearray(self.data)
        struct.pack_into(">qq", stamped, 27, timestamp_ms, timestamp_ms)
        return sealed(stamped)


BODY = record(0) + record(1)
SOUND = batch(BODY, 2)
LARGE = record(0, value=bytes(range(256)) * 1200)
HALF = len(LARGE) // 2


def packed(codec: Codec, body: bytes = BODY, count: int = 2) -> bytes:
    return batch(compress(codec, body), count, attributes=codec)


def with_body(body: bytes, count: int = 1) -> bytes:
    return batch(body, count)


def _flipped(data: bytes, at: int) -> bytes:
    found = bytearray(data)
    found[at] ^= 1
    return bytes(found)


SKIPPABLE = b"\x50\x2a\x4d\x18\x01\0\0\0x"
CASES: Mapping[str, Case] = {
    "sound": Case(SOUND, NONE),
    **{f"sound {codec.name}": Case(packed(codec), NONE) for codec in Codec},
    "a CRC that does not hold": Case(_flipped(SOUND, 70), CORRUPT),
    "garbage": Case(with_body(b"\xff" * 40), UNKNOWN, INVALID),
    **{
        f"garbage as {codec.name}": Case(batch(b"\xff" * 40, 1, attributes=codec), UNKNOWN, INVALID)
        for codec in [*Codec][1:]
    },
    **{
        f"{codec.name} of garbage": Case(packed(codec, b"\xff" * 40, 1), INVALID)
        for codec in [*Codec][1:]
    },
    "fewer records than the count": Case(with_body(BODY, 3), INVALID),
    "more records than the count": Case(with_body(BODY, 1), INVALID),
    "zstd of fewer records": Case(packed(Codec.ZSTD, BODY, 3), INVALID),
    "zstd of more records": Case(packed(Codec.ZSTD, BODY, 1), INVALID),
    "a length beyond the batch": Case(with_body(varint(1000) + BODY[1:]), INVALID),
    "a last offset delta that differs": Case(batch(BODY, 2, last_offset_delta=5), INVALID),
    "offset deltas with a gap": Case(with_body(record(0) + record(2), 2), NONE, INVALID),
    "offset deltas that repeat": Case(with_body(record(0) + record(0), 2), NONE, INVALID),
    "a key of length -2": Case(
        with_body(varint(6) + b"\0\0\0" + varint(-2) + b"\x01\0"), NONE, INVALID
    ),
    "a header without a key": Case(with_body(record(0, headers=[(None, b"x")])), INVALID),
    "a header's key that is not UTF-8": Case(
        with_body(record(0, headers=[(b"\xff", b"x")])), NONE, INVALID
    ),
    "a negative number of headers": Case(
        with_body(varint(6) + b"\0\0\0\x01\x01" + varint(-1)), INVALID
    ),
    "bytes behind the headers": Case(with_body(record(0, tail=b"x")), INVALID),
    "attributes of a record": Case(with_body(record(0, attributes=0x55)), NONE),
    "the highest attribute of a record": Case(with_body(record(0, attributes=0x80)), NONE, INVALID),
    "attributes beyond the known ones": Case(batch(BODY, 2, attributes=0x3F80), NONE),
    "the attribute of encrypted batches": Case(batch(BODY, 2, attributes=0x4000), NONE, INVALID),
    "a delete horizon": Case(batch(BODY, 2, attributes=0x40), NONE, INVALID),
    "a control batch": Case(batch(BODY, 2, attributes=0x20), INVALID),
    "an unknown codec": Case(batch(BODY, 2, attributes=6), UNKNOWN, INVALID),
    "a base offset": Case(batch(BODY, 2, base_offset=7), INVALID),
    "a producer without a sequence": Case(batch(BODY, 2, producer=(5, 0, -1)), INVALID),
    "a maximum timestamp that is not": Case(batch(BODY, 2, max_timestamp=2**63 - 1), NONE),
    "two gzip members": Case(
        batch(gzip.compress(LARGE[:HALF]) + gzip.compress(LARGE[HALF:]), 1, attributes=Codec.GZIP),
        NONE,
        INVALID,
    ),
    "two zstd frames": Case(
        batch(
            bytes(cramjam.zstd.compress(LARGE[:HALF])) + bytes(cramjam.zstd.compress(LARGE[HALF:])),
            1,
            attributes=Codec.ZSTD,
        ),
        NONE,
        INVALID,
    ),
    "lz4 of linked blocks": Case(
        batch(lz4.frame.compress(LARGE, block_linked=True), 1, attributes=Codec.LZ4),
        UNKNOWN,
        INVALID,
    ),
    "a skippable lz4 frame": Case(
        batch(SKIPPABLE + compress(Codec.LZ4, BODY), 2, attributes=Codec.LZ4), UNKNOWN, INVALID
    ),
    "an hour ahead": Case(SOUND, NONE, ahead_ms=HOUR_MS - 60_000),
    "more than an hour ahead": Case(SOUND, TIMESTAMP, ahead_ms=HOUR_MS + 60_000, refused=(0, 1)),
    "the last timestamp there is": Case(
        batch(BODY, 2, base_timestamp=2**63 - 1, max_timestamp=2**63 - 1), TIMESTAMP, refused=(0, 1)
    ),
    "one timestamp of many": Case(
        with_body(record(0) + record(1, timestamp_delta=2**62), 2), TIMESTAMP, refused=(1,)
    ),
    "no timestamp": Case(batch(BODY, 2, base_timestamp=-1, max_timestamp=-1), NONE),
    "a timestamp before 1970": Case(batch(BODY, 2, base_timestamp=-2, max_timestamp=-2), NONE),
    "a timestamp that overflows": Case(
        batch(record(0, timestamp_delta=10), 1, base_timestamp=2**63 - 1),
        TIMESTAMP,
        INVALID,
        refused=(0,),
    ),
    "too old for the topic": Case(
        SOUND, TIMESTAMP, configs={"message.timestamp.before.max.ms": "1000"}, refused=(0, 1)
    ),
    "ahead as far as the topic allows": Case(
        SOUND,
        NONE,
        configs={"message.timestamp.after.max.ms": str(10 * HOUR_MS)},
        ahead_ms=9 * HOUR_MS,
    ),
    "any timestamp with LogAppendTime": Case(SOUND, NONE, configs=APPEND_TIME, ahead_ms=2**60),
    "the broker's timestamp type": Case(
        batch(BODY, 2, attributes=LOG_APPEND_TIME), NONE, TIMESTAMP
    ),
    "the broker's timestamp type with LogAppendTime": Case(
        batch(BODY, 2, attributes=LOG_APPEND_TIME),
        TIMESTAMP,
        TIMESTAMP,
        configs=APPEND_TIME,
        refused=(0, 1),
    ),
    "keys in a compacted topic": Case(SOUND, NONE, configs=COMPACTED),
    "no key in a compacted topic": Case(
        with_body(record(0) + record(1, None), 2), INVALID, configs=COMPACTED, refused=(1,)
    ),
    "neither key nor time in a compacted topic": Case(
        with_body(record(0, None) + record(1, timestamp_delta=2**62), 2),
        TIMESTAMP,
        configs=COMPACTED,
        refused=(0, 1),
    ),
}
