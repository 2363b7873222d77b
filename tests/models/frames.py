"""Frames that no well-behaved client sends: random ones, and mutations of valid ones. Pure.

Everything follows from one seed, so that a frame that did harm can be made again by its number.
"""

import random
import struct
import types
import typing
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import (
    build,
    build_batch,
    encode_entity,
    request_schema,
    supported_versions,
)

KEPT_SHORT_MS = 5
EXTREMES = (0, -1, 1, 127, 128, 255, 2**15 - 1, 2**16 - 1, 2**31 - 1, -(2**31), 2**24, 2**30)


class Frame(NamedTuple):
    """`data` is what is sent, length and all; `kind` says how it came about."""

    kind: str
    data: bytes


class Corpus:
    """Valid requests of every version of every API that a broker offers."""

    def __init__(self, offered: Mapping[ApiKey, tuple[int, int]], topic: str) -> None:
        self.topic = topic
        self.requests: list[bytes] = []
        for key, (low, high) in sorted(offered.items()):
            for version in supported_versions(key):
                if low <= version <= high:
                    self.requests.append(self._request(key, version))

    def _request(self, key: ApiKey, version: int) -> bytes:
        schema = request_schema(key, version)
        header = {
            "request_api_key": schema.__api_key__,
            "request_api_version": version,
            "correlation_id": 7,
            "client_id": "fuzz",
        }
        body = self._sample(schema)
        header_schema = schema.__header_schema__
        return encode_entity(build(header_schema, header)) + encode_entity(body)

    def _sample(self, schema: type[Any]) -> Any:
        hints = typing.get_type_hints(schema)
        return schema(
            **{field.name: self._value(field.name, hints[field.name]) for field in fields(schema)}
        )

    def _value(self, name: str, hint: Any) -> Any:
        if isinstance(hint, types.UnionType):
            if name in {"transactional_id", "cluster_id"}:
                return None
            hint = next(arm for arm in typing.get_args(hint) if arm is not type(None))
        if typing.get_origin(hint) is tuple:
            return (self._value(name, typing.get_args(hint)[0]),)
        if is_dataclass(hint):
            return self._sample(typing.cast("type[Any]", hint))
        return self._plain(name, hint)

    def _plain(self, name: str, hint: Any) -> Any:
        word = hint.__name__
        if word == "Records":
            return build_batch([(b"key", b"value" * 20)] * 3)
        if "Timedelta" in word:
            return timedelta(milliseconds=KEPT_SHORT_MS)
        if hint is bytes:
            return b"bytes"
        if hint is bool:
            return False
        if hint is uuid.UUID:
            return uuid.UUID(int=1)
        if issubclass(hint, str):
            return self.topic
        numbers = {"acks": -1, "timestamp": -1, "replication_factor": 1, "replica_id": -1}
        known = numbers | {"num_partitions": 1, "resource_type": 2, "count": 2, "max_bytes": 1000}
        return known.get(name, 0)


def frames(corpus: Corpus, count: int, seed: int) -> Iterator[Frame]:
    """`count` of them, every kind in turn."""
    for number in range(count):
        source = random.Random(f"{seed}/{number}")
        kind = KINDS[number % len(KINDS)]
        yield Frame(kind, _MAKERS[kind](source, source.choice(corpus.requests)))


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def _flip_bits(source: random.Random, request: bytes) -> bytes:
    changed = bytearray(request)
    for _ in range(source.choice((1, 1, 1, 2, 8))):
        changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
    return framed(bytes(changed))


def _set_bytes(source: random.Random, request: bytes) -> bytes:
    changed = bytearray(request)
    for _ in range(source.choice((1, 2, 4))):
        changed[source.randrange(len(changed))] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
    return framed(bytes(changed))


def _set_number(source: random.Random, request: bytes) -> bytes:
    """An extreme 16, 32 or 64 bit number somewhere after the header: counts and lengths."""
    changed = bytearray(request)
    layout = source.choice((">H", ">I", ">Q"))
    size = struct.calcsize(layout)
    at = source.randrange(min(8, len(changed)), len(changed) + 1)
    changed[at : at + size] = struct.pack(layout, source.choice(EXTREMES) % 256**size)
    return framed(bytes(changed))


def _truncate(source: random.Random, request: bytes) -> bytes:
    """The length agrees with the bytes that are left."""
    return framed(request[: source.randrange(len(request))])


def _extend(source: random.Random, request: bytes) -> bytes:
    at = source.randrange(len(request) + 1)
    return framed(request[:at] + source.randbytes(source.choice((1, 7, 300))) + request[at:])


def _cut_out(source: random.Random, request: bytes) -> bytes:
    at = source.randrange(len(request))
    return framed(request[:at] + request[at + source.choice((1, 2, 9)) :])


def _another_version(source: random.Random, request: bytes) -> bytes:
    version = struct.pack(">h", source.choice((-1, 0, 1, 2, 3, 5, 9, 13, 17, 50, 2**15 - 1)))
    return framed(request[:2] + version + request[4:])


def _another_api(source: random.Random, request: bytes) -> bytes:
    return framed(struct.pack(">h", source.randrange(-2, 95)) + request[2:])


def _lie_about_length(source: random.Random, request: bytes) -> bytes:
    lie = source.choice((len(request) + 1, len(request) + 1000, len(request) // 2, 1, 0))
    return struct.pack(">i", lie) + request


def _absurd_length(source: random.Random, request: bytes) -> bytes:
    lie = source.choice((2**31 - 1, -1, -(2**31), 2**30, 0x16030102, 0x47455420))
    return struct.pack(">i", lie) + request


def _random_payload(source: random.Random, _: bytes) -> bytes:
    return framed(source.randbytes(source.choice((0, 1, 4, 8, 14, 100, 5000))))


def _random_body(source: random.Random, request: bytes) -> bytes:
    return framed(request[:14] + source.randbytes(source.choice((1, 10, 100, 3000))))


def _noise(source: random.Random, _: bytes) -> bytes:
    return source.randbytes(source.choice((1, 3, 4, 50, 2000)))


def _valid(_: random.Random, request: bytes) -> bytes:
    return framed(request)


_MAKERS = {
    "bits": _flip_bits,
    "bytes": _set_bytes,
    "number": _set_number,
    "truncated": _truncate,
    "extended": _extend,
    "cut out": _cut_out,
    "version": _another_version,
    "api": _another_api,
    "length": _lie_about_length,
    "absurd length": _absurd_length,
    "random payload": _random_payload,
    "random body": _random_body,
    "noise": _noise,
    "valid": _valid,
}
KINDS = tuple(_MAKERS)
