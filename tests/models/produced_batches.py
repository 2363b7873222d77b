"""Batches as a producer could send them, valid and mutated, each with a correct CRC."""

import gzip
import struct
from collections.abc import Callable, Sequence
from random import Random

import cramjam
import lz4.frame
from crc32c import crc32c

from bucketlog.log_format.batch import CRC_START, HEADER_LENGTH, Codec
from bucketlog.log_format.compression import compress
from bucketlog.log_format.records import put_varint

Headers = Sequence[tuple[bytes | None, bytes | None]]
NOW_MS = 1_700_000_000_000


def varint(value: int) -> bytes:
    out = bytearray()
    put_varint(out, value)
    return bytes(out)


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    delta: int,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    headers: Headers = (),
    *,
    timestamp_delta: int = 0,
    attributes: int = 0,
    tail: bytes = b"",
) -> bytes:
    """One record, followed by `tail` after its headers."""
    body = bytes([attributes]) + varint(timestamp_delta) + varint(delta) + field(key) + field(value)
    body += varint(len(headers)) + b"".join(field(name) + field(each) for name, each in headers)
    return varint(len(body) + len(tail)) + body + tail


def batch(
    payload: bytes,
    count: int,
    *,
    attributes: int = 0,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = NOW_MS,
    max_timestamp: int = NOW_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A batch of a header and `payload`, which is compressed by the codec in `attributes`."""
    last = count - 1 if last_offset_delta is None else last_offset_delta
    covered = struct.pack(
        ">hiqqqhii", attributes, last, base_timestamp, max_timestamp, *producer, count
    )
    length = len(covered) + len(payload) + 9
    prefix = struct.pack(">qiib", base_offset, length, -1, 2)
    return prefix + struct.pack(">I", crc32c(covered + payload)) + covered + payload


def sealed(data: bytes | bytearray) -> bytes:
    """The same batch with a correct CRC."""
    found = bytearray(data)
    struct.pack_into(">I", found, 17, crc32c(found[CRC_START:]))
    return bytes(found)


def sound(random: Random, codec: int, records: int) -> tuple[bytes, int]:
    """A batch's records before compression, and their number."""
    rows = []
    for delta in range(records):
        headers = [
            (b"h%d" % number, random.choice([None, b"", "ä".encode()]))
            for number in range(random.choice([0, 0, 1, 3]))
        ]
        rows.append(
            record(
                delta,
                random.choice([None, b"", random.randbytes(random.randrange(1, 20))]),
                random.choice([None, b"", random.randbytes(random.randrange(1, 300))]),
                headers,
                timestamp_delta=random.choice([0, 1, -5, 1000]),
            )
        )
    return b"".join(rows), codec


def _flip(random: Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 8])):
        if found:
            at = random.randrange(len(found))
            found[at] = random.choice(
                [found[at] ^ 1 << random.randrange(8), 0, 1, 0x7F, 0x80, 0xFF]
            )
    return bytes(found)


def _cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _grow(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.randbytes(random.choice([1, 2, 10])) + data[at:]


def _repeat(random: Random, data: bytes) -> bytes:
    return data * 2


def _replace(random: Random, data: bytes) -> bytes:
    return random.choice([b"", b"\xff" * len(data), bytes(len(data)), random.randbytes(len(data))])


_CHANGES: Sequence[Callable[[Random, bytes], bytes]] = (
    _flip,
    _flip,
    _cut,
    _grow,
    _repeat,
    _replace,
)


def _foreign_frame(random: Random, codec: int, body: bytes) -> bytes:
    """Framings that some decoders read and others do not."""
    match codec:
        case Codec.GZIP:
            half = len(body) // 2
            return gzip.compress(body[:half], mtime=0) + gzip.compress(body[half:], mtime=0)
        case Codec.LZ4:
            payload: bytes = lz4.frame.compress(
                body,
                block_linked=random.random() < 0.5,
                store_size=random.random() < 0.5,
                content_checksum=random.random() < 0.5,
                block_checksum=random.random() < 0.5,
                block_size=random.choice([4, 5, 7]),
            )
            return random.choice([payload, b"\x50\x2a\x4d\x18\x01\0\0\0x" + payload, payload * 2])
        case Codec.SNAPPY:
            raw = bytes(cramjam.snappy.compress_raw(body))
            framed = compress(codec, body)
            return random.choice([raw, framed[:16] + framed, framed + framed[:16]])
        case Codec.ZSTD:
            payload = bytes(cramjam.zstd.compress(body))
            return random.choice([payload + payload, b"\x50\x2a\x4d\x18\x01\0\0\0x" + payload])
        case _:
            return body


def mutated(random: Random, codec: int) -> bytes:
    """A mutated batch, which may still be valid."""
    count = random.choice([1, 2, 5, 40])
    body, _ = sound(random, codec, count)
    where = random.choice(["body", "payload", "frame", "header", "nothing"])
    if where == "body":
        body = random.choice(_CHANGES)(random, body)
    payload = _foreign_frame(random, codec, body) if where == "frame" else compress(codec, body)
    if where == "payload":
        payload = random.choice(_CHANGES)(random, payload)
    whole = batch(payload, count, attributes=codec)
    if where == "header":
        found = bytearray(whole)
        at = random.choice([*range(CRC_START, HEADER_LENGTH)])
        found[at] = random.randrange(256)
        whole = sealed(found)
    return whole
