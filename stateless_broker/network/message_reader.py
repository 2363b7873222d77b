"""Reading requests of all APIs but Produce and Fetch into the one class that an API has for them.

kio's own reader trusts: a count of 2^31 in a frame of 30 bytes makes it allocate the array and ends
the process, and it refuses tagged fields that it does not know. This one goes by kio's schemas and
keeps `FrameReader`'s invariant: every count is compared with the bytes that are there. What they
may be is bounded, too: a megabyte of the smallest items would keep the event loop busy for seconds,
and the broker from saying that it lives. Tagged fields that are not known are skipped (KIP-482).
"""

import datetime
import types
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Generic, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.index import load_request_schema
from kio.static.protocol import Entity

from bucketlog.log_format.wire.api_messages import ApiMessages, RequestT
from bucketlog.log_format.wire.frames import FrameReader, MalformedRequestError

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
    """Read milliseconds. A value that exceeds a timedelta means for ever, and becomes the longest
    timedelta."""
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
    "float64": (FrameReader.float64, 8),
    "string": (FrameReader.string, 1),
    "timedelta_i32": (_milliseconds, 4),
    "timedelta_i64": (_long_milliseconds, 8),
    "uuid": (_uuid, 16),
}
"""For each type, the function that reads a value, and the fewest bytes that a value takes."""


@dataclass(frozen=True, slots=True)
class _Message(Generic[RequestT]):
    """A message, or a structure in one, of one version: what it is read into, its fields in order,
    tagged ones by tag."""

    made: type[RequestT]
    fields: tuple[tuple[str, Read], ...]
    tagged: dict[int, tuple[str, Read]]
    bytes_min: int
    flexible: bool

    def read(self, reader: FrameReader) -> RequestT:
        values = {name: read(reader) for name, read in self.fields}
        if self.flexible:
            for _ in range(reader.tag_count()):
                tag, size = reader.uvarint(), reader.uvarint()
                name, read = self.tagged.get(tag, ("", None))
                if read is None:
                    reader.skip(size)
                    continue
                end = reader.at + size
                values[name] = read(reader)
                if reader.at != end:
                    raise MalformedRequestError(f"tagged field {tag} is not {size} bytes long")
        return self.made(**values)


@cache
def _request(messages: ApiMessages[RequestT, Any], version: int) -> _Message[RequestT]:
    return _message(load_request_schema(messages.key, version), messages.request)


def _message(schema: type[Entity], made: type[RequestT]) -> _Message[RequestT]:
    """`schema` is kio's class of the version, `made` the one for all versions."""
    hints, made_hints = get_type_hints(schema), get_type_hints(made)
    plain: list[tuple[str, Read]] = []
    tagged: dict[int, tuple[str, Read]] = {}
    flexible = bool(schema.__flexible__)
    bytes_min = int(flexible)
    for field in fields(cast(Any, schema)):
        kafka_type = field.metadata.get("kafka_type")
        read, size = _field(hints[field.name], kafka_type, made_hints[field.name])
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = (field.name, read)
        else:
            plain.append((field.name, read))
            bytes_min += size
    return _Message(made, tuple(plain), tagged, bytes_min, flexible)


def _field(hint: Any, kafka_type: str | None, made: Any) -> tuple[Read, int]:
    nullable = get_origin(hint) in (types.UnionType, Union)
    hint, made = _not_null(hint), _not_null(made)
    if get_origin(hint) is tuple:
        item, size = _field(get_args(hint)[0], kafka_type, get_args(made)[0])
        return _array(item, size, nullable=nullable), 1
    if is_dataclass(hint):
        message = _message(cast(type[Entity], hint), made)
        if nullable:
            return _structure_or_null(message.read), 1
        return message.read, message.bytes_min
    if kafka_type == "string" and nullable:
        return FrameReader.nullable_string, 1
    return _PLAIN[str(kafka_type)]


def _structure_or_null(read: Read) -> Read:
    """KIP-893: a byte before the structure, negative for null."""
    return lambda reader: None if reader.int8() < 0 else read(reader)


def _not_null(hint: Any) -> Any:
    if get_origin(hint) not in (types.UnionType, Union):
        return hint
    (arm,) = [arm for arm in get_args(hint) if arm is not types.NoneType]
    return arm


def _array(item: Read, bytes_min: int, *, nullable: bool) -> Read:
    def read(reader: FrameReader) -> tuple[Any, ...] | None:
        length = reader.nullable_array_length(bytes_min)
        if length is None:
            if not nullable:
                raise MalformedRequestError("an array that may not be null is null")
            return None
        return tuple(item(reader) for _ in range(length))

    return read


def read_message(
    messages: ApiMessages[RequestT, Any],
    version: int,
    frame: memoryview,
    at: int,
    *,
    items_max: int,
) -> RequestT:
    """The request whose body begins at `at`; as in Kafka, bytes after its end are not looked at.
    All its arrays together have `items_max` items at most.

    Raises `MalformedRequestError`, and nothing else, for whatever is not such a request.
    """
    message: _Message[RequestT] = _request(messages, version)
    reader = FrameReader(frame, at, flexible=message.flexible, items_max=items_max)
    return message.read(reader)
