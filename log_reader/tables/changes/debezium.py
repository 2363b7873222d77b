"""Events of Debezium as rows of a table: an envelope with `before`, `after` and `op`. Pure.

Invariants: an event becomes the row `after`, the deletion of the key in `before`, or a dead letter.
No event is skipped. A truncation (`t`) or a message (`m`) does not change one row, and becomes a
dead letter. An update that changes the key also becomes a dead letter, because one record cannot
both delete a row and add a row. The connectors write two records for such an update.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.conversions import Convert, TimeRules
from bucketlog.log_reader.tables.json_text import BadValueError, kind_of
from bucketlog.log_reader.tables.value_format import (
    JSON_VALUES,
    ReadValue,
    RowDeletion,
    ValueFormat,
)

ROW_OPERATIONS = frozenset({"c", "r", "u"})
"""Create, read (of a first copy) and update."""
_OTHER_OPERATIONS = {
    "t": "the event truncates the source table; its rows stay in this table",
    "m": "the event is a message, and does not change a row",
}
_PLACEHOLDER = "__debezium_unavailable_value"
_UNAVAILABLE = (
    _PLACEHOLDER,
    base64.b64encode(_PLACEHOLDER.encode()).decode(),
    _PLACEHOLDER.encode(),
    [_PLACEHOLDER],
    list(_PLACEHOLDER.encode()),
    {_PLACEHOLDER: _PLACEHOLDER},
)
"""The PostgreSQL connector writes one of these for a large value that an update did not change: a
text, bytes as JSON and as Avro, an array of texts and of numbers, an `hstore`."""


@dataclass(frozen=True, slots=True)
class DebeziumValues:
    """Format of Debezium's events. `inner` is the format of the envelope. `key` has the fields of
    the key, or none if a row's key is the key of its record."""

    key: tuple[str, ...] = ()
    inner: ValueFormat = JSON_VALUES

    def reader(self) -> ReadValue:
        read, key = self.inner.reader(), self.key
        return lambda value: row_of(read(value), key)

    def converter(self, kind: pa.DataType, path: str, times: TimeRules) -> Convert:
        return self.inner.converter(kind, path, times)


def row_of(envelope: Mapping[str, Any], key: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the fields of an event's row, or a `RowDeletion`. Raises `BadValueError`."""
    event: Any = envelope
    if "payload" in envelope and "op" not in envelope:  # Kafka Connect's JSON with schemas
        event = envelope["payload"]
        if event is None:
            return RowDeletion()
        event = _object(event, "payload")
    operation = event.get("op")
    if not isinstance(operation, str):
        raise BadValueError(f"op: an operation of Debezium is expected, not {kind_of(operation)}")
    if operation in ROW_OPERATIONS:
        after = _object(event.get("after"), "after")
        _check_row(after, event.get("before"), key)
        return after
    if operation == "d":
        return _deletion(event.get("before"), key)
    meaning = _OTHER_OPERATIONS.get(operation, "Debezium has no such operation")
    raise BadValueError(f"op {operation!r}: {meaning}")


def _check_row(after: Mapping[str, Any], before: Any, key: tuple[str, ...]) -> None:
    for name, value in after.items():
        if any(type(value) is type(each) and value == each for each in _UNAVAILABLE):
            raise BadValueError(
                f"{name}: the event lacks the value; set REPLICA IDENTITY FULL for the source table"
            )
    if not isinstance(before, dict):
        return
    for name in key:
        old = before.get(name)
        if old is not None and old != after.get(name):
            raise BadValueError(f"{name}: the event changes the key")


def _deletion(before: Any, key: tuple[str, ...]) -> RowDeletion:
    if not key:
        return RowDeletion()
    found = _object(before, "before")
    for name in key:
        if found.get(name) is None:
            raise BadValueError(f"before.{name}: the key of the deletion is null")
    return RowDeletion({name: found[name] for name in key})


def _object(found: Any, path: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadValueError(f"{path}: an object is expected, not {kind_of(found)}")
    return found


def row_fields(envelope: pa.Schema) -> pa.Schema:
    """Return the fields of the row, from the fields of an envelope. Raises `ConfigurationError`."""
    at = envelope.get_field_index("after")
    if at < 0 or not kinds.is_struct(envelope.field(at).type):
        raise ConfigurationError(
            "the schemas of the subjects have no struct 'after'",
            remedy="name the subjects of Debezium's envelopes with --subject, or the fields of the "
            "row with --schema",
        )
    return pa.schema(list(envelope.field(at).type))
