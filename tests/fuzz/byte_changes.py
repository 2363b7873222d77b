"""Changes to the bytes of a request, and to the length in front of it. Pure."""

import struct
from collections.abc import Callable, Mapping
from random import Random

from tests.fuzz.shapes import uvarint

EXTREMES = (0, -1, 1, 127, 128, 255, 2**15 - 1, 2**16 - 1, 2**31 - 1, -(2**31), 2**24, 2**30)
VARINTS = (*(uvarint(value) for value in EXTREMES), b"\xff" * 4 + b"\x7f", b"\xff" * 11, b"\x80\0")
HEADER_BYTES = 8


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def _flip_bits(random: Random, request: bytes) -> bytes:
    changed = bytearray(request)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return framed(bytes(changed))


def _set_bytes(random: Random, request: bytes) -> bytes:
    changed = bytearray(request)
    for _ in range(random.choice((1, 2, 4))):
        changed[random.randrange(len(changed))] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
    return framed(bytes(changed))


def _set_number(random: Random, request: bytes) -> bytes:
    """An extreme 16, 32 or 64 bit number somewhere after the header: counts and lengths."""
    changed = bytearray(request)
    layout = random.choice((">H", ">I", ">Q"))
    size = struct.calcsize(layout)
    at = random.randrange(min(HEADER_BYTES, len(changed)), len(changed) + 1)
    changed[at : at + size] = struct.pack(layout, random.choice(EXTREMES) % 256**size)
    return framed(bytes(changed))


def _set_varint(random: Random, request: bytes) -> bytes:
    at = random.randrange(min(HEADER_BYTES, len(request)), len(request) + 1)
    return framed(request[:at] + random.choice(VARINTS) + request[at + 1 :])


def _truncate(random: Random, request: bytes) -> bytes:
    """Make the length agree with the remaining bytes."""
    return framed(request[: random.randrange(len(request))])


def _insert(random: Random, request: bytes) -> bytes:
    at = random.randrange(len(request) + 1)
    return framed(request[:at] + random.randbytes(random.choice((1, 7, 300))) + request[at:])


def _cut_out(random: Random, request: bytes) -> bytes:
    at = random.randrange(len(request))
    return framed(request[:at] + request[at + random.choice((1, 2, 9)) :])


def _repeat_part(random: Random, request: bytes) -> bytes:
    start = random.randrange(min(HEADER_BYTES, len(request)), len(request) + 1)
    end = random.randrange(start, len(request) + 1)
    return framed(request[:end] + request[start:end] * random.choice((1, 2, 50)) + request[end:])


def _another_version(random: Random, request: bytes) -> bytes:
    version = struct.pack(">h", random.choice((-1, 0, 1, 2, 3, 5, 9, 13, 17, 50, 2**15 - 1)))
    return framed(request[:2] + version + request[4:])


def _another_api(random: Random, request: bytes) -> bytes:
    return framed(struct.pack(">h", random.randrange(-2, 95)) + request[2:])


def _lie_about_length(random: Random, request: bytes) -> bytes:
    size = len(request)
    lie = random.choice((size + 1, size + 1000, size // 2, size - 1, 1, 0))
    return struct.pack(">i", lie) + request


def _absurd_length(random: Random, request: bytes) -> bytes:
    lie = random.choice((2**31 - 1, -1, -(2**31), 2**30, 0x16030102, 0x47455420))
    return struct.pack(">i", lie) + request


def _random_payload(random: Random, request: bytes) -> bytes:
    return framed(random.randbytes(random.choice((0, 1, 4, 8, 14, 100, 5000))))


def _random_body(random: Random, request: bytes) -> bytes:
    return framed(request[:14] + random.randbytes(random.choice((1, 10, 100, 3000))))


def _noise(random: Random, request: bytes) -> bytes:
    return random.randbytes(random.choice((1, 3, 4, 50, 2000)))


ByteChange = Callable[[Random, bytes], bytes]
BYTE_CHANGES: Mapping[str, ByteChange] = {
    "bits": _flip_bits,
    "bytes": _set_bytes,
    "number": _set_number,
    "varint": _set_varint,
    "truncated": _truncate,
    "inserted": _insert,
    "cut out": _cut_out,
    "repeated part": _repeat_part,
    "version": _another_version,
    "api": _another_api,
    "length": _lie_about_length,
    "absurd length": _absurd_length,
    "random payload": _random_payload,
    "random body": _random_body,
    "noise": _noise,
}
"""By kind: makes the bytes to send from a request without its length."""
