"""Requests and responses of all APIs but Produce and Fetch: kio's generated messages.

A handler answers with plain values by Kafka's field names, one set for all versions; a version
that lacks a field leaves it out, one that wants a field nobody gave takes its default. Requests are
read by `stateless_broker.network.message_reader`.
"""

import dataclasses
import datetime
import io
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer
from kio.serial.writers import Writer
from kio.static.protocol import Entity

Values = Mapping[str, Any]

_ZERO = datetime.timedelta(0)


@cache
def _response(api_key: int, version: int) -> tuple[type[Entity], Writer[Any]]:
    schema = load_response_schema(api_key, version)
    return schema, entity_writer(schema)


@cache
def is_flexible(api_key: int, version: int) -> bool:
    """Whether requests of this version have tagged fields (KIP-482)."""
    return bool(load_request_schema(api_key, version).__flexible__)


def write_message(api_key: int, version: int, values: Values) -> bytes:
    schema, writer = _response(api_key, version)
    out = io.BytesIO()
    writer(out, _build(schema, values))
    return out.getvalue()


@cache
def _fields(schema: type[Entity]) -> tuple[tuple[str, type[Entity] | None, bool], ...]:
    """Name, nested class if there is one, and whether a missing value means no time at all."""
    hints = get_type_hints(schema)
    return tuple(
        (
            field.name,
            _nested(hints[field.name]),
            field.default is dataclasses.MISSING
            and str(field.metadata.get("kafka_type", "")).startswith("timedelta"),
        )
        for field in dataclasses.fields(cast(Any, schema))
    )


def _nested(hint: Any) -> type[Entity] | None:
    if get_origin(hint) in (types.UnionType, Union, tuple):
        return next((found for part in get_args(hint) if (found := _nested(part))), None)
    is_message = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    return cast(type[Entity], hint) if is_message else None


def _build(schema: type[Entity], values: Values) -> Entity:
    given: dict[str, Any] = {}
    for name, nested, is_time in _fields(schema):
        if name not in values:
            if is_time:
                given[name] = _ZERO
            continue
        value = values[name]
        if nested is not None and isinstance(value, Mapping):
            value = _build(nested, value)
        elif nested is not None and value is not None:
            value = tuple(_build(nested, item) for item in value)
        given[name] = value
    return schema(**given)
