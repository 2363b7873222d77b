"""The shape of each request by kio's schemas, and an encoder that accepts wrong values. Pure.

A request is a tree: dicts for structures, lists for arrays, `Raw` for bytes instead of a value. The
encoder checks nothing, so that mutations of the tree reach the broker.
"""

import datetime
import struct
import types
import typing
import uuid
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import request_schema

TAGS = "_tags"
"""The key of a structure's dict for tagged fields that the schema lacks: (tag, bytes)."""
NUMBERS = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "timedelta_i32": ">i",
    "timedelta_i64": ">q",
}
"""The binary layout of each kind of number."""
LIMITS = {kind: 256 ** struct.calcsize(layout) // 2 for kind, layout in NUMBERS.items()}
"""By kind: the lowest value that does not fit."""

TEXT_BYTES_MAX = 2**15 - 1
"""Limit of a text in versions without tagged fields; longer texts are cut."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes instead of a value."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Field:
    """`kind` is kio's type, or "struct". `shape` belongs to structures and arrays of them."""

    name: str
    kind: str
    is_array: bool
    nullable: bool
    tag: int | None
    shape: "Shape | None"


@dataclass(frozen=True, slots=True)
class Shape:
    """A request, or a structure in one, in one version."""

    name: str
    flexible: bool
    fields: tuple[Field, ...]
    by_name: dict[str, Field] = field(compare=False)


@cache
def request_shape(key: ApiKey, version: int) -> Shape:
    return _shape_of(request_schema(key, version))


def _shape_of(schema: type[Any]) -> Shape:
    hints = typing.get_type_hints(schema)
    found = tuple(_field(each, hints[each.name]) for each in fields(schema))
    by_name = {each.name: each for each in found}
    return Shape(schema.__name__, bool(schema.__flexible__), found, by_name)


def _field(given: Any, hint: Any) -> Field:
    nullable = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    if nullable:
        (hint,) = [arm for arm in typing.get_args(hint) if arm is not types.NoneType]
    is_array = typing.get_origin(hint) is tuple
    item = typing.get_args(hint)[0] if is_array else hint
    shape = _shape_of(typing.cast("type[Any]", item)) if is_dataclass(item) else None
    kind = "struct" if shape else str(given.metadata["kafka_type"])
    # KIP-516: a zero id means no id. kio decodes None, but the wire has no null here.
    is_nullable = nullable and kind != "uuid"
    tag = given.metadata.get("tag")
    assert tag is None or given.default is not MISSING or is_array, given
    return Field(given.name, kind, is_array, is_nullable, tag, shape)


def uvarint(value: int) -> bytes:
    """A varint of 32 bits; negative values wrap, as in Java."""
    value %= 1 << 32
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_request(
    key: ApiKey, version: int, correlation_id: int, body: Any, client_id: str | None = "fuzz"
) -> bytes:
    """Header and body, without the frame's length."""
    shape = request_shape(key, version)
    name = b"\xff\xff" if client_id is None else _text(client_id.encode(), False)
    head = struct.pack(">hhi", key, version, correlation_id) + name
    return head + (b"\0" if shape.flexible else b"") + encode_structure(shape, body)


def encode_structure(shape: Shape, values: Any) -> bytes:
    """Fields that `values` lacks are left out, even if the schema demands them."""
    if isinstance(values, Raw):
        return values.data
    if values is None:
        return b"\xff"
    parts: list[bytes] = []
    tagged: list[tuple[int, bytes]] = []
    order = shape.by_name
    for name, value in values.items():
        if name == TAGS:
            continue
        one = order[name]
        data = encode_field(one, value, shape.flexible)
        if one.tag is None:
            parts.append(data)
        elif shape.flexible:
            tagged.append((one.tag, data))
    if shape.flexible:
        tagged += values.get(TAGS, ())
        parts.append(uvarint(len(tagged)))
        parts += (uvarint(tag) + uvarint(len(data)) + data for tag, data in tagged)
    return b"".join(parts)


def encode_field(one: Field, value: Any, flexible: bool) -> bytes:
    if isinstance(value, Raw):
        return value.data
    if not one.is_array:
        return encode_value(one, value, flexible)
    if value is None:
        return length_of_array(-1, flexible)
    items = b"".join(encode_value(one, item, flexible) for item in value)
    return length_of_array(len(value), flexible) + items


def length_of_array(count: int, flexible: bool) -> bytes:
    return uvarint(count + 1) if flexible else struct.pack(">i", count)


def encode_value(one: Field, value: Any, flexible: bool) -> bytes:
    if isinstance(value, Raw):
        return value.data
    if one.shape is not None:
        data = encode_structure(one.shape, value)
        is_marked = one.nullable and not one.is_array and isinstance(value, dict)
        return b"\x01" + data if is_marked else data  # KIP-893
    kind = one.kind
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    if kind == "float64":
        return struct.pack(">d", value if isinstance(value, int | float) else 0.0)
    if kind == "uuid":
        return bytes(16) if value is None else typing.cast(uuid.UUID, value).bytes
    if kind == "string":
        raw = value if value is None or isinstance(value, bytes) else value.encode()
        return _text(raw, flexible)
    if kind in {"bytes", "records"}:
        if value is None:
            return length_of_array(-1, flexible)
        return length_of_array(len(value), flexible) + bytes(value)
    raise AssertionError(f"a field of kind {kind}")


def _text(raw: bytes | None, flexible: bool) -> bytes:
    if raw is None:
        return uvarint(0) if flexible else b"\xff\xff"
    raw = raw if flexible else raw[:TEXT_BYTES_MAX]
    return (uvarint(len(raw) + 1) if flexible else struct.pack(">h", len(raw))) + raw


def tree_of(entity: Any) -> Any:
    """kio's entity as a tree; durations are in milliseconds."""
    if is_dataclass(entity):
        return {each.name: tree_of(getattr(entity, each.name)) for each in fields(entity)}
    if isinstance(entity, tuple):
        return [tree_of(item) for item in entity]
    if isinstance(entity, datetime.timedelta):
        return round(entity.total_seconds() * 1000)
    return entity
