"""Reading requests of all APIs but Produce and Fetch into kio's classes.

kio's own reader trusts: a count of 2^31 in a frame of 30 bytes makes it allocate the array and ends
the process, and it refuses tagged fields that it does not know. This one goes by kio's schemas and
keeps `FrameReader`'s invariant: every count is held against the bytes that are there. What they
may be is bounded, too: a megabyte of the smallest items would keep the event loop busy for seconds,
and the broker from saying that it lives. Tagged fields that are not known are skipped (KIP-482).
"""

import datetime
import types
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.index import load_request_schema
from kio.static.protocol import Entity

from bucketlog.wire.frames import FrameReader, MalformedRequestError

Read = Callable[[FrameReader], Any]

_NO_UUID = bytes(16)
LONGEST_MS = 10**15


def _bool(reader: FrameReader) -> bool:
    return reader.int8() != 0


def _uuid(reader: FrameReader) -> UUID | None:
    raw = reader.uuid()
    return None if raw == _NO_UUID else UUID(bytes=raw)


def _milliseconds(reader: FrameReader) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=reader.int32())


def _long_milliseconds(reader: FrameReader) -> datetime.timedelta:
    """What a timedelta cannot hold means for ever, and is as long as it can hold."""
    bounded = max(-LONGEST_MS, min(reader.int64(), LONGEST_MS))
    return datetime.timedelta(milliseconds=bounded)


def _bytes(reader: FrameReader) -> bytes:
    view = reader.nullable_bytes()
    if view is None:
        raise MalformedRequestError("bytes that may not be null are null")
    return bytes(view)


_PLAIN: dict[str, tuple[Read, int]] = {
    "bool": (_bool, 1),
    "bytes": (_bytes, 1),
    "int8": (FrameReader.int8, 1),
    "int16": (FrameReader.int16, 2),
    "int32": (FrameReader.int32, 4),
    "int64": (FrameReader.int64, 8),
    "string": (FrameReader.string, 1),
    "timedelta_i32": (_milliseconds, 4),
    "timedelta_i64": (_long_milliseconds, 8),
    "uuid": (_uuid, 16),
}
"""How a value is read, and the fewest bytes it takes."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A message or a structure in one: fields in order, tagged ones by tag."""

    schema: type[Entity]
    fields: tuple[tuple[str, Read], ...]
    tagged: dict[int, tuple[str, Read]]
    bytes_min: int

    def read(self, reader: FrameReader) -> Any:
        values = {name: read(reader) for name, read in self.fields}
        if reader.flexible:
            for _ in range(reader.uvarint()):
                tag, size = reader.uvarint(), reader.uvarint()
                name, read = self.tagged.get(tag, ("", None))
                if read is None:
                    reader.skip(size)
                    continue
                end = reader.at + size
                values[name] = read(reader)
                if reader.at != end:
                    raise MalformedRequestError(f"tagged field {tag} is not {size} bytes long")
        return self.schema(**values)


@cache
def _request(api_key: int, version: int) -> _Message:
    return _message(load_request_schema(api_key, version))


@cache
def _message(schema: type[Entity]) -> _Message:
    hints = get_type_hints(schema)
    plain: list[tuple[str, Read]] = []
    tagged: dict[int, tuple[str, Read]] = {}
    bytes_min = int(schema.__flexible__)
    for field in fields(cast(Any, schema)):
        read, size = _field(hints[field.name], field.metadata.get("kafka_type"))
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = (field.name, read)
        else:
            plain.append((field.name, read))
            bytes_min += size
    return _Message(schema, tuple(plain), tagged, bytes_min)


def _field(hint: Any, kafka_type: str | None) -> tuple[Read, int]:
    nullable = get_origin(hint) in (types.UnionType, Union)
    if nullable:
        (hint,) = [arm for arm in get_args(hint) if arm is not types.NoneType]
    if get_origin(hint) is tuple:
        item, size = _field(get_args(hint)[0], kafka_type)
        return _array(item, size, nullable=nullable), 1
    if is_dataclass(hint):
        message = _message(cast(type[Entity], hint))
        return message.read, message.bytes_min
    if kafka_type == "string" and nullable:
        return FrameReader.nullable_string, 1
    return _PLAIN[str(kafka_type)]


def _array(item: Read, bytes_min: int, *, nullable: bool) -> Read:
    def read(reader: FrameReader) -> tuple[Any, ...] | None:
        length = reader.nullable_array_length(bytes_min)
        if length is None:
            if not nullable:
                raise MalformedRequestError("an array that may not be null is null")
            return None
        return tuple(item(reader) for _ in range(length))

    return read


def read_message(api_key: int, version: int, frame: memoryview, at: int, *, items_max: int) -> Any:
    """The request whose body begins at `at`, as kio's class of that version; as in Kafka, bytes
    after its end are not looked at. All its arrays together have `items_max` items at most.

    Raises `MalformedRequestError`, and nothing else, for whatever is no such request.
    """
    message = _request(api_key, version)
    flexible = bool(message.schema.__flexible__)
    reader = FrameReader(frame, at, flexible=flexible, items_max=items_max)
    return message.read(reader)
