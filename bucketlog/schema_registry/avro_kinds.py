"""What kinds of data an Avro schema speaks of, whoever wrote it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_KINDS: Mapping[str, str] = {"int": "long", "float": "double", "error": "record"}
_LOGICAL: Mapping[str, str] = {
    "int-date": "date",
    "int-time-millis": "time",
    "long-time-micros": "time",
    "long-timestamp-millis": "timestamp",
    "long-timestamp-micros": "timestamp",
    "long-local-timestamp-millis": "local-timestamp",
    "long-local-timestamp-micros": "local-timestamp",
    "bytes-decimal": "decimal",
    "fixed-decimal": "decimal",
    "string-uuid": "uuid",
}
"""Those that fastavro reads as what they mean; any other is data of its plain type."""


def kind_of(schema: Any) -> str:
    """`null`, `boolean`, `long`, `double`, `string`, `bytes`, `fixed`, `enum`, `array`, `map`,
    `record`, `union`, or a logical type without its unit. References are to be resolved first."""
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, str):
        return _KINDS.get(schema, schema)
    base = schema["type"]
    if not isinstance(base, str):
        return kind_of(base)
    logical = _LOGICAL.get(f"{base}-{schema.get('logicalType')}")
    return logical or _KINDS.get(base, base)


class ParsedSchema(NamedTuple):
    """A schema as `fastavro.parse_schema` leaves it; `named` has the records, enums and fixed of
    it and of what it refers to, by full name."""

    schema: Any
    named: Mapping[str, Any]


def unqualified(name: str) -> str:
    return name.rpartition(".")[2]


def named_within(node: Any, named: Mapping[str, Any]) -> set[str]:
    """Return the names of the types that are inside the named type `node`, or referred to there."""
    parts = [one for inner in parts_of(node) for one in nodes_within(inner)]
    names = [one if isinstance(one, str) else one.get("name", "") for one in parts]
    return {name for name in names if name in named}


def all_nodes(parsed: ParsedSchema) -> Iterator[Any]:
    """Yield each type of a schema and of its named types. A type may come more than once."""
    named = parsed.named.values()
    for root in (parsed.schema, *named, *(part for node in named for part in parts_of(node))):
        yield from nodes_within(root)


def nodes_within(node: Any) -> Iterator[Any]:
    """Yield `node` and the nodes inside, except unions and the insides of named types."""
    if not isinstance(node, list):
        yield node
    if not (isinstance(node, dict) and "name" in node):
        for inner in parts_of(node):
            yield from nodes_within(inner)


def parts_of(node: Any) -> list[Any]:
    match node:
        case list():
            return node
        case dict():
            fields = [field["type"] for field in node.get("fields", ())]
            return [node[key] for key in ("items", "values") if key in node] + fields
    return []
