"""How the bytes of a value become fields: JSON, or a format of a schema registry. Pure.

Invariant: a format decides in the same way in every attempt of a task. Errors of a value are
`BadValueError`. Other errors end the run, and nothing of the batch is committed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from bucketlog.log_reader.tables.conversions import Convert, TimeRules, converter, json_simple
from bucketlog.log_reader.tables.json_text import parse_object

ReadValue: TypeAlias = Callable[[bytes], Mapping[str, Any]]


class ValueFormat(Protocol):
    """A format of values. Tasks get it pickled."""

    def reader(self) -> ReadValue:
        """Return a function that returns the fields of a value, and raises `BadValueError`. A task
        calls this method once."""

    def converter(self, kind: pa.DataType, path: str, times: TimeRules) -> Convert:
        """Return the conversion of a field that `reader` returns, to the Python value of `kind`.
        Raises `ConfigurationError` for a type that a table cannot have."""


@dataclass(frozen=True, slots=True)
class JsonValues:
    """Each value is one JSON object."""

    def reader(self) -> ReadValue:
        return parse_object

    def converter(self, kind: pa.DataType, path: str, times: TimeRules) -> Convert:
        return converter(kind, path, times, json_simple)


JSON_VALUES = JsonValues()
