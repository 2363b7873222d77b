"""Formats of values: JSON, or the formats of a schema registry. Pure.

Invariants: a format gives the same result in every attempt of a task. A value that does not fit
raises `BadValueError`. Other errors end the run, and nothing of the batch is committed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from bucketlog.log_reader.tables.conversions import Convert, TimeRules, converter, json_simple
from bucketlog.log_reader.tables.json_text import parse_object

ReadValue: TypeAlias = Callable[[bytes], Mapping[str, Any]]


class RowDeletion(dict[str, Any]):
    """The decoded value of a record that deletes a row: the fields of the row's key. Without any
    fields, the record is a tombstone for its own key."""


class ValueFormat(Protocol):
    """A format of values. Tasks get the format pickled."""

    def reader(self) -> ReadValue:
        """Return a function that decodes a value to its fields, and raises `BadValueError`. A task
        calls this method once."""

    def converter(self, kind: pa.DataType, path: str, times: TimeRules) -> Convert:
        """Return the function that converts a decoded field, other than null, to `kind`. Raises
        `ConfigurationError` for a type that a table cannot have."""


@dataclass(frozen=True, slots=True)
class JsonValues:
    """Each value is one JSON object."""

    def reader(self) -> ReadValue:
        return parse_object

    def converter(self, kind: pa.DataType, path: str, times: TimeRules) -> Convert:
        return converter(kind, path, times, json_simple)


JSON_VALUES = JsonValues()
