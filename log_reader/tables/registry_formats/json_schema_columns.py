"""Columns of a table from a JSON Schema. Pure.

The columns depend on types, and not on constraints such as `minimum`. A value that is invalid by
the JSON Schema may therefore fit the columns.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as kinds

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_reader.tables.registry_formats.columns import (
    INSTANT,
    FieldCount,
    inner_path,
    no_column,
    not_null,
    structure,
    table_fields,
    union_type,
)

_SIMPLE: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
}
_TYPES_MAX = 7
"""Number of the types of a JSON Schema."""
_REFERENCE_MAX = 1_000
"""Largest number of characters of a reference, which a schema may use any number of times."""
_FORMATS: Mapping[str, pa.DataType] = {"date-time": INSTANT, "date": pa.date32()}


def json_schema_fields(text: str, references: Mapping[str, str]) -> pa.Schema:
    """Return the columns of a table for a JSON object. `references` has the texts of other schemas
    by name. Raises `ConfigurationError`, and `InvalidDataError` for a text that is not JSON."""
    columns = _JsonColumns({"": _parsed(text)} | {n: _parsed(t) for n, t in references.items()})
    found = columns.type_of("", columns.documents[""], "", 0)
    if not (found is not None and kinds.is_struct(found)):
        raise no_column("", "the JSON Schema is not an object with properties")
    return table_fields(list(found))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDataError(
            f"the JSON Schema is not JSON: {error}", remedy="correct the schema"
        ) from error


class _JsonColumns:
    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.documents = documents
        self._count = FieldCount()
        self._inside: list[tuple[str, str]] = []
        """The references that lead to the current schema, as document and JSON Pointer."""

    def type_of(self, document: str, schema: Any, path: str, level: int) -> pa.DataType | None:
        """Return the type of a column, or None if all values are null. `document` is the name of
        the document that contains `schema`."""
        self._count.add(path, level)
        if not isinstance(schema, dict):
            raise no_column(path, "the JSON Schema has no supported type")
        if "$ref" in schema:
            return self._referred(document, schema["$ref"], path, level)
        branches = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf")
        if branches and "properties" not in schema:
            return self._union(document, branches, path, level)
        named = schema.get("type")
        if named is None:
            named = _kinds_of(schema)
        if isinstance(named, list):
            if len(named) > _TYPES_MAX:
                raise no_column(path, f"the JSON Schema has more than {_TYPES_MAX} types")
            each = [{**schema, "type": one} for one in named]
            return self._union(document, each, path, level)
        return self._typed(document, schema, named, path, level)

    def _typed(
        self, document: str, schema: dict[str, Any], named: Any, path: str, level: int
    ) -> pa.DataType | None:
        match named:
            case "null":
                return None
            case "object":
                return self._object(document, schema, path, level)
            case "array":
                item = self.type_of(document, schema.get("items"), f"{path}[]", level + 1)
                return pa.list_(not_null(item, path))
            case "string":
                found = schema.get("format")
                return _FORMATS.get(found if isinstance(found, str) else "", pa.string())
        if not isinstance(named, str) or named not in _SIMPLE:
            raise no_column(path, "the JSON Schema has no supported type")
        return _SIMPLE[named]

    def _object(
        self, document: str, schema: dict[str, Any], path: str, level: int
    ) -> pa.DataType | None:
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if isinstance(properties, dict) and properties:
            found = []
            for name, inner in properties.items():
                kind = self.type_of(document, inner, inner_path(path, name), level + 1)
                if kind is not None:
                    found.append(pa.field(name, kind))
            return structure(found, path)
        if isinstance(others, dict):
            item = self.type_of(document, others, f"{path}{{}}", level + 1)
            return pa.map_(pa.string(), not_null(item, path))
        raise no_column(path, "the object has no properties")

    def _union(self, document: str, branches: Any, path: str, level: int) -> pa.DataType | None:
        if not isinstance(branches, list):
            raise no_column(path, "the JSON Schema has no supported type")
        found = [self.type_of(document, each, path, level + 1) for each in branches]
        return union_type(found, path)

    def _referred(self, document: str, reference: Any, path: str, level: int) -> pa.DataType | None:
        if not isinstance(reference, str) or len(reference) > _REFERENCE_MAX:
            raise no_column(path, "the JSON Schema has a reference that is not a short text")
        name, _, place = reference.partition("#")
        target = (name or document, place)
        if target in self._inside:
            raise no_column(path, "the JSON Schema contains itself")
        node: Any = self.documents.get(target[0])
        for step in filter(None, place.split("/")):
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        if node is None:
            raise no_column(path, f"there is no JSON Schema {reference[:100]!r}")
        self._inside.append(target)
        found = self.type_of(target[0], node, path, level + 1)
        self._inside.pop()
        return found


def _kinds_of(schema: dict[str, Any]) -> str | None:
    """Return the type of a schema without `type`, from `properties`, `enum` or `const`."""
    if "properties" in schema:
        return "object"
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    is_text = isinstance(listed, list) and listed and all(isinstance(one, str) for one in listed)
    return "string" if is_text else None
