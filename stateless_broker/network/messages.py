"""Responses of all APIs but Produce and Fetch: kio's generated messages.

A handler answers with plain values by Kafka's field names (the API's TypedDict), one set for all
versions; a version that lacks a field leaves it out, one that wants a field nobody gave takes its
default. Invariant: a name that no version served has is an error, at every level of the answer.
Requests are read by `stateless_broker.network.message_reader`.
"""

import dataclasses
import datetime
import io
import struct
import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer
from kio.serial.writers import Writer
from kio.static.protocol import Entity

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages, ResponseT
from bucketlog.log_format.wire.frames import FrameWriter, shortened_message

Values = Mapping[str, Any]

ERROR_MESSAGE = "error_message"
THROTTLE_TIME = "throttle_time"
_ZERO = datetime.timedelta(0)
_INT32 = struct.Struct(">i")


@dataclasses.dataclass(frozen=True, slots=True)
class _Structure:
    """A response, or a structure in one, of one version."""

    schema: type[Entity]
    fields: tuple[tuple[str, "_Structure | None", bool], ...]
    """Name, the nested structure if there is one, and whether a missing value means no time."""
    typed_dict: type[Any]
    names: frozenset[str]
    """The names of fields in all served versions."""

    def build(self, values: Values) -> Entity:
        if not values.keys() <= self.names:
            raise self._unknown(values)
        given: dict[str, Any] = {}
        for name, nested, is_time in self.fields:
            if name not in values:
                if is_time:
                    given[name] = _ZERO
                continue
            value = values[name]
            if nested is not None and value is not None:
                is_one = isinstance(value, Mapping)
                build = nested.build
                value = build(value) if is_one else tuple([build(item) for item in value])
            elif name == ERROR_MESSAGE and value is not None:
                value = shortened_message(value)
            given[name] = value
        return self.schema(**given)

    def _unknown(self, values: Values) -> TypeError:
        name = min(values.keys() - self.names)
        close = get_close_matches(name, self.names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return TypeError(f"{self.typed_dict.__name__} has no field {name!r}{hint}")


@cache
def _response(messages: ApiMessages[Any, Any], version: int) -> tuple[_Structure, Writer[Any]]:
    schema = load_response_schema(messages.key, version)
    return _structure(schema, messages.response), entity_writer(schema)


@cache
def is_flexible(api_key: ApiKey, version: int) -> bool:
    """Return whether requests of this version have tagged fields (KIP-482)."""
    return bool(load_request_schema(api_key, version).__flexible__)


def write_message(
    messages: ApiMessages[Any, ResponseT], version: int, response: ResponseT
) -> bytes:
    """Encode a response. Raises `TypeError` for a field that no served version has, or that this
    one lacks."""
    structure, writer = _response(messages, version)
    out = io.BytesIO()
    writer(out, structure.build(response))
    return out.getvalue()


@cache
def _row_writer(
    messages: ApiMessages[Any, Any], version: int, field: str
) -> tuple[_Structure, Writer[Any]]:
    rows = {name: nested for name, nested, _ in _response(messages, version)[0].fields}
    structure = rows[field]
    assert structure is not None, f"{field} has no structures"
    return structure, entity_writer(structure.schema)


def write_row(
    messages: ApiMessages[Any, Any], version: int, field: str, row: Mapping[str, Any]
) -> bytes:
    """Encode one element of the response's array `field`, so that long arrays can be sliced."""
    structure, writer = _row_writer(messages, version, field)
    out = io.BytesIO()
    writer(out, structure.build(row))
    return out.getvalue()


def write_rows(
    messages: ApiMessages[Any, Any],
    version: int,
    field: str,
    rows: Sequence[bytes],
    *,
    throttle_ms: int = 0,
) -> bytes:
    """A response of encoded elements (`write_row`). Besides the array `field`, the response has at
    most the throttle time."""
    structure, _ = _response(messages, version)
    *before, last = [name for name, _, _ in structure.fields]
    assert last == field, f"{messages.key.message_name} has fields after {field}"
    assert before in ([], [THROTTLE_TIME]), f"{messages.key.message_name} has other fields"
    start = FrameWriter(flexible=structure.schema.__flexible__)
    if before:
        start.int32(throttle_ms)
    start.array_length(len(rows))
    end = FrameWriter(flexible=start.flexible)
    end.tags()
    return b"".join([start.data, *rows, end.data])


def throttled_response(
    messages: ApiMessages[Any, ResponseT], response: ResponseT, throttle_ms: int
) -> ResponseT:
    """The response with at least this throttle time. Versions without one leave it out."""
    values = cast(Values, response)
    if THROTTLE_TIME not in messages.response.__annotations__:
        return response
    throttle = datetime.timedelta(milliseconds=throttle_ms)
    throttle = max(values.get(THROTTLE_TIME, _ZERO), throttle)
    return cast(ResponseT, {**values, THROTTLE_TIME: throttle})


def throttled_body(
    messages: ApiMessages[Any, Any], version: int, body: bytes, throttle_ms: int
) -> bytes:
    """Return the encoded response with at least this throttle time, if it begins with one. See
    `throttled_response`."""
    structure, _ = _response(messages, version)
    if structure.fields[0][0] != THROTTLE_TIME:
        return body
    (given,) = _INT32.unpack_from(body)
    return _INT32.pack(max(given, throttle_ms)) + body[_INT32.size :]


def _structure(schema: type[Entity], typed_dict: type[Any]) -> _Structure:
    hints, types_by_name = get_type_hints(schema), get_type_hints(typed_dict)
    fields = []
    for field in dataclasses.fields(cast(Any, schema)):
        inner = _entity(hints[field.name])
        is_time = str(field.metadata.get("kafka_type", "")).startswith("timedelta")
        fields.append(
            (
                field.name,
                None if inner is None else _structure(inner, _item(types_by_name[field.name])),
                is_time and field.default is dataclasses.MISSING,
            )
        )
    return _Structure(schema, tuple(fields), typed_dict, frozenset(types_by_name))


def _entity(hint: Any) -> type[Entity] | None:
    """kio's class of a structure, or of the structures in an array."""
    if get_origin(hint) in (types.UnionType, Union, tuple):
        return next((found for part in get_args(hint) if (found := _entity(part))), None)
    is_message = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    return cast(type[Entity], hint) if is_message else None


def _item(hint: Any) -> type[Any]:
    """The TypedDict of a structure, or of the structures in an array."""
    if get_origin(hint) in (types.UnionType, Union):
        hint = get_args(hint)[0]
    return cast(type[Any], get_args(hint)[0] if get_origin(hint) is Sequence else hint)
