"""Columns of a table from an Avro schema. Pure."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from bucketlog.log_reader.tables.registry_formats.columns import (
    INSTANT,
    MICROSECONDS,
    MILLISECONDS,
    WALL_CLOCK,
    FieldCount,
    inner_path,
    no_column,
    not_null,
    structure,
    table_fields,
    union_type,
)
from bucketlog.schema_registry.avro_kinds import ParsedSchema

DECIMAL_DIGITS_MAX = 38
_SIMPLE: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): MILLISECONDS,
    ("long", "time-micros"): MICROSECONDS,
    ("long", "timestamp-millis"): INSTANT,
    ("long", "timestamp-micros"): INSTANT,
    ("long", "local-timestamp-millis"): WALL_CLOCK,
    ("long", "local-timestamp-micros"): WALL_CLOCK,
}
"""Logical types that change the type of a column."""


def avro_fields(parsed: ParsedSchema) -> pa.Schema:
    """Return the columns of a table for an Avro record. Raises `ConfigurationError`."""
    columns = _AvroColumns(parsed.named)
    root = parsed.named.get(parsed.schema) if isinstance(parsed.schema, str) else parsed.schema
    if not isinstance(root, dict) or root.get("type") not in ("record", "error"):
        raise no_column("", "the Avro schema is not a record")
    return table_fields(columns.members(root, "", 0))


class _AvroColumns:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._count = FieldCount()
        self._inside: list[str] = []
        """The names of the records that contain the current field."""

    def members(self, record: Mapping[str, Any], path: str, level: int) -> list[pa.Field]:
        name = record["name"]
        if name in self._inside:
            raise no_column(path, f"the record {name} contains itself")
        self._inside.append(name)
        found = []
        for field in record["fields"]:
            inner = inner_path(path, field["name"])
            kind = self._type(field["type"], inner, level + 1)
            if kind is not None:
                found.append(pa.field(field["name"], kind))
        self._inside.pop()
        return found

    def _type(self, node: Any, path: str, level: int) -> pa.DataType | None:
        """Return the type of a column, or None if all values are null."""
        self._count.add(path, level)
        if isinstance(node, list):
            return self._union(node, path, level)
        if isinstance(node, str):
            if node in self._named:
                return self._type(self._named[node], path, level)
            return None if node == "null" else self._simple(node, path)
        base = node["type"]
        if not isinstance(base, str):
            return self._type(base, path, level + 1)
        match base:
            case "record" | "error":
                return self._struct(node, path, level)
            case "array":
                return pa.list_(self._item(node["items"], f"{path}[]", level))
            case "map":
                return pa.map_(pa.string(), self._item(node["values"], f"{path}{{}}", level))
            case "null":
                return None
        logical = node.get("logicalType")
        if logical == "decimal" and base in ("bytes", "fixed"):
            return _decimal(node, path)
        known = _LOGICAL.get((base, logical)) if isinstance(logical, str) else None
        return known or self._simple(base, path)

    def _simple(self, name: str, path: str) -> pa.DataType:
        found = _SIMPLE.get(name)
        if found is None:
            raise no_column(path, f"the Avro type {name[:60]!r} is unknown")
        return found

    def _struct(self, node: Mapping[str, Any], path: str, level: int) -> pa.DataType:
        return structure(self.members(node, path, level), path)

    def _item(self, node: Any, path: str, level: int) -> pa.DataType:
        return not_null(self._type(node, path, level + 1), path)

    def _union(self, branches: list[Any], path: str, level: int) -> pa.DataType | None:
        return union_type([self._type(branch, path, level + 1) for branch in branches], path)


def _decimal(node: Mapping[str, Any], path: str) -> pa.DataType:
    digits, scale = node.get("precision"), node.get("scale", 0)
    if type(digits) is not int or type(scale) is not int or not 0 <= scale <= digits > 0:
        raise no_column(path, f"no decimals have the precision {digits!r} and the scale {scale!r}")
    if digits > DECIMAL_DIGITS_MAX:
        reason = f"a decimal has {digits} digits, and the limit is {DECIMAL_DIGITS_MAX}"
        raise no_column(path, reason)
    return pa.decimal128(digits, scale)
