"""Parsing of Avro schemas, and reading of Avro data, without classes of values."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.avro_exact_values import python_reader, with_exact_values
from bucketlog.schema_registry.avro_kinds import (
    ParsedSchema,
    all_nodes,
    kind_of,
    named_within,
)
from bucketlog.schema_registry.codec import SchemaText

_NO_SCHEMA = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_NAMED_LEVELS_MAX = 100
_CHECKED = ("__fastavro_parsed", "__named_schemas")
_UNREADABLE = (ValueError, EOFError, IndexError, KeyError, OverflowError, ArithmeticError)


def parsed_schema(schema: SchemaText) -> ParsedSchema:
    """Return the schema as fastavro parses it, with the schemas that it refers to. Raises
    `InvalidDataError`."""
    fastavro = needed("fastavro", "avro")
    from fastavro.schema import SchemaParseException, UnknownType

    known: dict[str, Any] = {}
    try:
        for text in schema.references.values():
            fastavro.parse_schema(_json(text), named_schemas=known)
        return ParsedSchema(fastavro.parse_schema(_json(schema.text), named_schemas=known), known)
    except (SchemaParseException, UnknownType, *_NO_SCHEMA) as error:
        raise InvalidDataError(
            f"no Avro schema: {type(error).__name__}: {error}", remedy="correct the schema"
        ) from error


def _json(text: str) -> Any:
    """Parse the text of a schema, without the marks of schemas that fastavro has checked."""
    return json.loads(
        text, object_hook=lambda node: {key: node[key] for key in node if key not in _CHECKED}
    )


def data_reader(parsed: ParsedSchema, *, with_names: bool = True) -> Callable[[bytes, int], Any]:
    """Return a function that reads data of a parsed schema, up to the last byte. Both raise
    `InvalidDataError`.

    `with_names`: a record in a union of several records becomes a pair of its full name and the
    record.

    A schema that contains itself, or has many levels of names, is read by fastavro's Python, whose
    recursion ends in an error: deep data would overflow the stack of the compiled reader, and end
    the process.
    """
    with within_bounds():
        schema = with_exact_values(parsed)
        if _is_deep(parsed):
            read = python_reader(schema)
        else:
            read = needed("fastavro", "avro").schemaless_reader
        may_be_endless = _may_be_endless(parsed)
    if may_be_endless:
        raise InvalidDataError(
            "its schema has arrays of items without bytes: a short record could name any number",
            remedy="give the items a field",
        )

    def decode(data: bytes, at: int) -> Any:
        stream = io.BytesIO(data)
        stream.seek(at)
        try:
            datum = read(stream, schema, None, with_names, True)
        except (*_UNREADABLE, RecursionError, TypeError) as error:
            raise InvalidDataError(
                f"no Avro data of its schema: {type(error).__name__}: {error}",
                remedy="read the topic with bytes to see the record",
            ) from error
        if stream.tell() != len(data):
            raise InvalidDataError(
                f"no Avro data of its schema: {len(data) - stream.tell()} bytes are left over",
                remedy="read the topic with bytes to see the record",
            )
        return datum

    return decode


@contextmanager
def within_bounds() -> Iterator[None]:
    """Raises `InvalidDataError` for a schema of too many levels."""
    try:
        yield
    except RecursionError as error:
        raise InvalidDataError(
            "its Avro schema is nested too deeply", remedy="read the topic with bytes"
        ) from error


def _is_deep(parsed: ParsedSchema) -> bool:
    """Return True if a type contains itself, or if more than `_NAMED_LEVELS_MAX` types with names
    are inside each other."""
    inside = {name: named_within(node, parsed.named) for name, node in parsed.named.items()}
    for _ in range(_NAMED_LEVELS_MAX):
        for name in [name for name, others in inside.items() if not others & inside.keys()]:
            del inside[name]
    return bool(inside)


def _may_be_endless(parsed: ParsedSchema) -> bool:
    named = parsed.named
    empty: dict[str, bool] = {}

    def is_empty(node: Any) -> bool:
        node = named.get(node, node) if isinstance(node, str) else node
        match kind_of(node):
            case "null":
                return True
            case "record":
                name = node["name"]
                if name not in empty:
                    empty[name] = True  # one that contains itself alone
                    empty[name] = all(is_empty(field["type"]) for field in node["fields"])
                return empty[name]
            case "fixed":
                return bool(node["size"] == 0)
        return False

    return any(
        is_empty(one["items"])
        for one in all_nodes(parsed)
        if isinstance(one, dict) and one.get("type") == "array"
    )
