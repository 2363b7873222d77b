"""Columns of a table from a Protobuf message, and conversion of messages to plain values.

If a message lacks a field without presence, the field's value is the default value. The wrappers of
google.protobuf become nullable values. Timestamp becomes a timestamp. Struct, Value and ListValue
become JSON texts.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa

from bucketlog.log_format.extras import needed
from bucketlog.log_reader.tables.json_text import BadValueError
from bucketlog.log_reader.tables.registry_formats.columns import (
    INSTANT,
    FieldCount,
    inner_path,
    no_column,
    structure,
    table_fields,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

Plain: TypeAlias = Callable[[Any], Any]
"""Converts the value of a field to a plain Python value."""

VALUE_FIELDS_MAX = 1_000_000
"""Largest number of fields of a value, with the fields of all messages inside."""
_UNSIGNED_64 = pa.decimal128(20, 0)
_TYPES: Mapping[str, pa.DataType] = {
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "INT64": pa.int64(),
    "SINT64": pa.int64(),
    "SFIXED64": pa.int64(),
    "UINT64": _UNSIGNED_64,
    "FIXED64": _UNSIGNED_64,
    "INT32": pa.int32(),
    "SINT32": pa.int32(),
    "SFIXED32": pa.int32(),
    "UINT32": pa.int64(),
    "FIXED32": pa.int64(),
    "BOOL": pa.bool_(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "ENUM": pa.string(),
}
_TIMESTAMP = "google.protobuf.Timestamp"
_JSON = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")
_WRAPPERS = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_NANOS, _MICROSECOND_NANOS = 1_000_000_000, 1_000


def message_fields(descriptor: "Descriptor") -> pa.Schema:
    """Return the columns of a table for a message. Raises `ConfigurationError`."""
    return table_fields(_MessageColumns().members(descriptor, "", 0))


class _MessageColumns:
    def __init__(self) -> None:
        self._count = FieldCount()
        self._inside: list[str] = []
        """The names of the messages that contain the current field."""

    def members(self, message: "Descriptor", path: str, level: int) -> list[pa.Field]:
        name = message.full_name
        if name in self._inside:
            raise no_column(path, f"the message {name} contains itself")
        self._inside.append(name)
        found = []
        for field in message.fields:
            inner = inner_path(path, field.name)
            found.append(pa.field(field.name, self._type(field, inner, level + 1)))
        self._inside.pop()
        return found

    def _type(self, field: "FieldDescriptor", path: str, level: int) -> pa.DataType:
        value = _map_value(field)
        if value is not None:
            return pa.map_(pa.string(), self._one(value, f"{path}{{}}", level + 1))
        if field.is_repeated:
            return pa.list_(self._one(field, f"{path}[]", level + 1))
        return self._one(field, path, level)

    def _one(self, field: "FieldDescriptor", path: str, level: int) -> pa.DataType:
        self._count.add(path, level)
        message = field.message_type
        if message is None:
            return _TYPES[_type_name(field)]
        if message.full_name == _TIMESTAMP:
            return INSTANT
        if message.full_name in _JSON:
            return pa.string()
        if message.full_name in _WRAPPERS:
            return _TYPES[_type_name(message.fields_by_name["value"])]
        return structure(self.members(message, path, level), path)


class MessageValues:
    """Converts messages to plain values by field name, with one plan for each message type."""

    def __init__(self) -> None:
        self._plans: dict[str, Mapping[str, Callable[[Message], Any]]] = {}
        self._count = 0
        """The number of fields of the current value. A message of two bytes has all its fields."""

    def of(self, message: "Message") -> dict[str, Any]:
        """Return the plain values of a message, by field name. Raises `BadValueError`."""
        self._count = 0
        return self._inner(message)

    def _inner(self, message: "Message") -> dict[str, Any]:
        plan = self._plan(cast("Descriptor", message.DESCRIPTOR))  # all descriptors have `fields`
        self._count += len(plan)
        if self._count > VALUE_FIELDS_MAX:
            raise BadValueError(f"the value has more than {VALUE_FIELDS_MAX:,} fields")
        return {name: get(message) for name, get in plan.items()}

    def _plan(self, descriptor: "Descriptor") -> Mapping[str, Callable[["Message"], Any]]:
        plan = self._plans.get(descriptor.full_name)
        if plan is None:
            plan = {field.name: self._getter(field) for field in descriptor.fields}
            self._plans[descriptor.full_name] = plan
        return plan

    def _getter(self, field: "FieldDescriptor") -> Callable[["Message"], Any]:
        name = field.name
        value = _map_value(field)
        if value is not None:
            one = self._plain(value)
            return lambda message: {
                _key(key): one(value) for key, value in getattr(message, name).items()
            }
        one = self._plain(field)
        if field.is_repeated:
            return lambda message: [one(each) for each in getattr(message, name)]
        if field.has_presence:
            return lambda message: one(getattr(message, name)) if message.HasField(name) else None
        return lambda message: one(getattr(message, name))

    def _plain(self, field: "FieldDescriptor") -> Plain:
        message, symbols = field.message_type, field.enum_type
        if symbols is not None:
            names = {value.number: value.name for value in reversed(symbols.values)}  # not aliases
            return lambda number: names.get(number, str(number))
        if message is None:
            return lambda value: value
        if message.full_name == _TIMESTAMP:
            return _moment
        if message.full_name in _WRAPPERS:
            return lambda wrapper: wrapper.value
        if message.full_name in _JSON:
            return _json
        return self._inner


def _type_name(field: "FieldDescriptor") -> str:
    descriptor = needed("google.protobuf.descriptor", "protobuf").FieldDescriptor
    return next(name for name in _TYPES if getattr(descriptor, f"TYPE_{name}") == field.type)


def _map_value(field: "FieldDescriptor") -> "FieldDescriptor | None":
    """Return the descriptor of a map's values, or None if `field` is not a map."""
    message = field.message_type
    if message is None or not (field.is_repeated and message.GetOptions().map_entry):
        return None
    return message.fields_by_name["value"]


def _key(key: Any) -> str:
    """Return the key of a map as Protobuf's JSON format writes keys."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _moment(timestamp: Any) -> datetime:
    if not 0 <= timestamp.nanos < _SECOND_NANOS:
        raise BadValueError(f"a timestamp has {timestamp.nanos} nanoseconds, no part of a second")
    if timestamp.nanos % _MICROSECOND_NANOS:
        raise BadValueError(f"{timestamp.nanos} nanoseconds are finer than a microsecond")
    micros = timestamp.nanos // _MICROSECOND_NANOS
    try:
        return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=micros)
    except OverflowError as error:
        raise BadValueError(
            f"{timestamp.seconds} seconds after 1970 are outside the years 1 to 9999"
        ) from error


def _json(value: Any) -> str:
    json_format = needed("google.protobuf.json_format", "protobuf")
    try:
        text: str = json_format.MessageToJson(value, indent=None)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadValueError(f"{value.DESCRIPTOR.name} cannot be JSON: {error}") from error
    return text
