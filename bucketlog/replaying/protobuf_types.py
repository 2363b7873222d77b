"""Columns of Protobuf messages, from their descriptors.

A message is a struct, a repeated field a list, a map a map; an enum is the name of its value
(or the number, if the value has no name). `google.protobuf.Timestamp` is timestamp[us, UTC],
`Duration` is duration[us]; the wrappers (`Int32Value`, ...) are their values. Other messages
without fields are text, as JSON. A field with presence that is not set is null.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.replaying.column import Column, Field, same, struct

LEVELS_MAX = 60
_KINDS = {
    1: pa.float64(),
    2: pa.float32(),
    3: pa.int64(),
    4: pa.uint64(),
    5: pa.int32(),
    6: pa.uint64(),
    7: pa.uint32(),
    8: pa.bool_(),
    9: pa.string(),
    12: pa.binary(),
    13: pa.uint32(),
    15: pa.int32(),
    16: pa.int64(),
    17: pa.int32(),
    18: pa.int64(),
}
"""By the number of the type in `FieldDescriptorProto.Type`."""
_MESSAGE, _GROUP, _ENUM = 11, 10, 14
_WRAPPED = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_AS_JSON = {
    f"google.protobuf.{name}" for name in ("Any", "Struct", "Value", "ListValue", "FieldMask")
}


def column_of_message(descriptor: Any, level: int = 0) -> Column:
    """Raises `ConfigurationError` if the message has no columns."""
    if level > LEVELS_MAX:
        raise ConfigurationError(
            f"{descriptor.full_name} has no columns: it contains itself, or has more than "
            f"{LEVELS_MAX} levels",
            remedy="iterate over the records instead",
        )
    name = descriptor.full_name
    if name == "google.protobuf.Timestamp":
        return Column(pa.timestamp("us", tz="UTC"), None, _microseconds)
    if name == "google.protobuf.Duration":
        return Column(pa.duration("us"), None, _microseconds)
    if name in _WRAPPED:
        kind = _KINDS[descriptor.fields_by_name["value"].type]
        return Column(kind, None, lambda value: None if value is None else value.value)
    if name in _AS_JSON or not descriptor.fields:
        return Column(pa.string(), None, _json)
    fields = [
        Field(field.name, field.name, _field(field, level + 1)) for field in descriptor.fields
    ]
    present = {field.name for field in descriptor.fields if field.has_presence}

    def read(message: Any, name: str) -> Any:
        if name in present and not message.HasField(name):
            return None
        return getattr(message, name)

    return struct(fields, read, plain=False)


def _field(field: Any, level: int) -> Column:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        keys = _KINDS[entry.fields_by_name["key"].type]
        inner = _single(entry.fields_by_name["value"], level)
        convert = inner.value_of
        return Column(
            pa.map_(keys, inner.kind),
            None,
            lambda value: [(key, convert(value[key])) for key in value],
        )
    inner = _single(field, level)
    if field.is_repeated:
        return Column(pa.list_(inner.kind), None, _each(inner.value_of))
    return inner


def _single(field: Any, level: int) -> Column:
    if field.type in (_MESSAGE, _GROUP):
        return column_of_message(field.message_type, level)
    if field.type == _ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return Column(
            pa.string(), None, lambda value: None if value is None else names.get(value, str(value))
        )
    return Column(_KINDS[field.type], None, same)


def _each(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: [convert(value) for value in values]


def _microseconds(value: Any) -> int | None:
    return None if value is None else value.seconds * 1_000_000 + value.nanos // 1000


def _json(value: Any) -> str | None:
    if value is None:
        return None
    from google.protobuf.json_format import MessageToJson

    return MessageToJson(value, indent=None)
