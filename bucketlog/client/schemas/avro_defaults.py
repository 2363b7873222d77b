"""Defaults as an Avro schema states them: JSON, of the type of a union's first branch.

A registry judges by them whether an added field breaks readers. Reading does not use them: what
is missing there comes from the class.
"""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic_core import to_jsonable_python

from bucketlog.client.schemas.record_classes import is_record, members_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DoesNotFitError(Exception):
    """A default is not of the field's type."""


def stated(schema: Any, value: Any, named: Mapping[str, Any]) -> tuple[Any, Any]:
    """The schema, with the default's branch first where it is a union, and the default.

    Raises `DoesNotFitError`.
    """
    if not isinstance(schema, list):
        return schema, _json(schema, value, named)
    for branch in schema:
        try:
            default = _json(branch, value, named)
        except DoesNotFitError:
            continue
        return [branch, *(other for other in schema if other is not branch)], default
    raise DoesNotFitError(f"{value!r} is of no type of its union")


def _json(schema: Any, value: Any, named: Mapping[str, Any]) -> Any:
    if isinstance(schema, str):
        return _json(named[schema], value, named) if schema in named else _primitive(schema, value)
    if isinstance(schema, list):
        found, default = stated(schema, value, named)
        if found[0] is not schema[0]:
            raise DoesNotFitError(f"{value!r} within a default is not of its union's first type")
        return default
    if "logicalType" in schema:
        return _logical(schema, value)
    match schema["type"], value:
        case "record", _ if is_record(type(value)):
            return _record(schema, value, named)
        case "enum", Enum() if value.value in schema["symbols"]:
            return value.value
        case "array", list() | tuple():
            return [_json(schema["items"], item, named) for item in value]
        case "array", set() | frozenset():  # in an order that is the same in every process
            return sorted((_json(schema["items"], item, named) for item in value), key=repr)
        case "map", dict():
            return {key: _json(schema["values"], item, named) for key, item in value.items()}
    raise _unfit(schema["type"], value)


def _record(schema: Any, value: Any, named: Mapping[str, Any]) -> Any:
    types = {field["name"]: field["type"] for field in schema["fields"]}
    return {
        member.wire: _json(types[member.wire], getattr(value, member.attribute), named)
        for member in members_of(type(value))
    }


def _primitive(kind: str, value: Any) -> Any:
    match kind, value:
        case "null", None:
            return None
        case "boolean", bool():
            return value
        case "long", Enum(value=int(number)):
            return number
        case "long", int() if not isinstance(value, bool):
            return value
        case "double", float() | int() if not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        case "bytes", bytes():
            return value.decode("latin-1")
        case "string", str():
            return value.value if isinstance(value, Enum) else value
        case "string", _ if value is not None and isinstance(to_jsonable_python(value), str):
            return to_jsonable_python(value)
    raise _unfit(kind, value)


def _logical(schema: Any, value: Any) -> Any:
    match schema["logicalType"], value:
        case "timestamp-micros", datetime() if value.tzinfo is not None:
            return (value - _EPOCH) // _MICROSECOND
        case "local-timestamp-micros", datetime() if value.tzinfo is None:
            return (value.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
        case "date", date() if not isinstance(value, datetime):
            return (value - _EPOCH.date()).days
        case "time-micros", time():
            since = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
            return since // _MICROSECOND + value.microsecond
        case "uuid", UUID():
            return str(value)
        case "decimal", Decimal() if value.is_finite():
            unscaled = int(value.scaleb(schema["scale"]))
            size = (unscaled.bit_length() + 8) // 8
            return unscaled.to_bytes(size, "big", signed=True).decode("latin-1")
    raise _unfit(schema["logicalType"], value)


def _unfit(kind: str, value: Any) -> DoesNotFitError:
    return DoesNotFitError(f"the default {value!r} does not fit {kind}")
