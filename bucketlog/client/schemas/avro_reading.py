"""What was written by another schema: whether a class can take it, and which class in a union.

fastavro reads data by its writer's schema, pydantic makes the class of it: fields that are not
there get the class's defaults, those that it does not know are left out, former names are aliases.
So no datum is resolved twice, and defaults are the class's own. Invariant: a pair of schemas that
Avro's rules of resolution do not join is refused before pydantic could bend one into the other.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter

from bucketlog.client.schemas.avro_types import DerivedSchema, Schema
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.schema_registry.avro_kinds import ParsedSchema, kind_of, unqualified

_TAKES: Mapping[str, frozenset[str]] = {
    "long": frozenset({"double"}),
    "string": frozenset({"bytes", "enum", "uuid"}),
    "bytes": frozenset({"string"}),
    "enum": frozenset({"string"}),
    "fixed": frozenset({"bytes"}),
}
"""What may become what, beside itself. `string` and `enum`, `string` and `uuid`: by value, which
is checked as it is read."""
_ITEMS = {"array": "items", "map": "values"}


class SchemaResolution:
    """Of a writer's schema to the schema of a class."""

    def __init__(self, writer: ParsedSchema, reader: DerivedSchema) -> None:
        self._writer, self._writers = writer
        self._readers = reader.named
        self._found: dict[tuple[str, str], str] = {}
        self._reader = reader.schema
        self._filled = reader.filled

    def check(self) -> None:
        """Raises `InvalidDataError`, which names the field."""
        writer, reader = self._whole(self._writer, self._reader)
        if kind_of(writer) == kind_of(reader) == "record":
            names = {unqualified(name) for name in (reader["name"], *reader.get("aliases", ()))}
            if unqualified(writer["name"]) not in names and writer["name"] not in names:
                raise InvalidDataError(
                    f"it was written as {writer['name']}, not {reader['name']}",
                    remedy="declare the format with that name, or with it among aliases",
                )
        if reason := self._mismatch(self._writer, self._reader):
            raise InvalidDataError(
                f"its schema does not resolve to {_shown(reader)}: {reason}",
                remedy="declare the field as it was written, or give it a default",
            )

    def _whole(self, writer: Schema, reader: Schema) -> tuple[Any, Any]:
        if isinstance(writer, str):
            writer = self._writers.get(writer, writer)
        if isinstance(reader, str):
            reader = self._readers.get(reader, reader)
        return writer, reader

    def _mismatch(self, writer: Schema, reader: Schema) -> str:
        """Why not; empty: they do resolve."""
        writer, reader = self._whole(writer, reader)
        found, wanted = kind_of(writer), kind_of(reader)
        if found == "union":  # the others are refused where such a value comes
            reasons = [self._mismatch(branch, reader) for branch in writer]
            return min(reasons, key=len) if all(reasons) else ""
        if wanted == "union":
            reasons = [self._mismatch(writer, branch) for branch in reader]
            return f"{_shown(writer)} is none of {_shown(reader)}" if all(reasons) else ""
        if found != wanted:
            joined = wanted in _TAKES.get(found, ())
            return "" if joined else f"{_shown(writer)} does not fit {_shown(reader)}"
        if found in _ITEMS:
            return self._mismatch(writer[_ITEMS[found]], reader[_ITEMS[found]])
        return self._records(writer, reader) if found == "record" else ""

    def _records(self, writer: Any, reader: Any) -> str:
        pair = writer["name"], reader["name"]
        if pair not in self._found:
            self._found[pair] = ""  # while it is looked at: one that contains itself
            self._found[pair] = self._fields(writer, reader)
        return self._found[pair]

    def _fields(self, writer: Any, reader: Any) -> str:
        there = {field["name"]: field["type"] for field in writer["fields"]}
        for field in reader["fields"]:
            names = [one for one in (field["name"], *field.get("aliases", ())) if one in there]
            if not names:
                if (reader["name"], field["name"]) not in self._filled:
                    return f"{reader['name']}.{field['name']} is not there and has no default"
            elif reason := self._mismatch(there[names[0]], field["type"]):
                return reason if ":" in reason else f"{reader['name']}.{field['name']}: {reason}"
        return ""


class AvroValueDecoder:
    """What fastavro read by a writer's schema, made into what pydantic takes.

    Only unions of several records need it: fastavro tells there which one it was.
    """

    def __init__(self, writer: ParsedSchema, names: Mapping[type, str]) -> None:
        self._writer, self._named = writer
        self._classes = {unqualified(name): cls for cls, name in names.items()}
        self._adapters: dict[str, Callable[[Any], Any] | None] = {}
        self._records: dict[str, Callable[[Any], Any]] = {}

    def root(self) -> Callable[[Any], Any] | None:
        """None: nothing needs to be done."""
        return self._of(self._writer) if self._has_several(self._writer) else None

    def _has_several(self, schema: Schema) -> bool:
        nodes = [schema, *self._named.values()]
        return any(self._is_several(one) for node in nodes for one in _unions(node))

    def _is_several(self, union: list[Any]) -> bool:
        return sum(kind_of(self._full(branch)) == "record" for branch in union) > 1

    def _full(self, schema: Schema) -> Any:
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def _of(self, schema: Schema) -> Callable[[Any], Any]:
        schema = self._full(schema)
        match kind_of(schema):
            case "union":
                return self._union(schema)
            case "array":
                items = self._of(schema["items"])
                return lambda value: [items(item) for item in value]
            case "map":
                values = self._of(schema["values"])
                return lambda value: {key: values(item) for key, item in value.items()}
            case "record":
                return self._record(schema)
        return lambda value: value

    def _record(self, schema: Any) -> Callable[[Any], Any]:
        name = schema["name"]
        if name not in self._records:
            fields: dict[str, Callable[[Any], Any]] = {}
            self._records[name] = lambda row: {key: fields[key](row[key]) for key in row}
            fields.update((field["name"], self._of(field["type"])) for field in schema["fields"])
        return self._records[name]

    def _union(self, union: list[Any]) -> Callable[[Any], Any]:
        if not self._is_several(union):
            return self._by_container(union)
        made = {
            branch["name"]: self._record(branch)
            for branch in map(self._full, union)
            if kind_of(branch) == "record"
        }

        def decode(value: Any) -> Any:
            if not isinstance(value, tuple):
                return value
            name, row = value
            row = made[name](row)
            adapter = self._adapter(name)
            return row if adapter is None else adapter(row)

        return decode

    def _by_container(self, union: list[Any]) -> Callable[[Any], Any]:
        made: dict[type, Callable[[Any], Any]] = {}
        for branch in map(self._full, union):
            kind = kind_of(branch)
            container = list if kind == "array" else dict if kind in ("map", "record") else None
            if container in made:
                del made[container]  # a map and a record: left to pydantic
            elif container is not None:
                made[container] = self._of(branch)
        return lambda value: made[type(value)](value) if type(value) in made else value

    def _adapter(self, name: str) -> Callable[[Any], Any] | None:
        if name not in self._adapters:
            cls = self._classes.get(unqualified(name))
            if cls is None:
                self._adapters[name] = None
            else:
                validate = TypeAdapter(cls).validator.validate_python
                self._adapters[name] = lambda row: validate(row, strict=False)
        return self._adapters[name]


def _unions(node: Any) -> list[list[Any]]:
    """Return the unions inside a schema, without those inside its named schemas."""
    match node:
        case list():
            return [node, *(one for branch in node for one in _unions(branch))]
        case dict():
            inner = [node.get("items"), node.get("values")]
            inner += [field["type"] for field in node.get("fields", ())]
            return [one for part in inner for one in _unions(part)]
    return []


def _shown(schema: Any) -> str:
    if isinstance(schema, list):
        return " or ".join(map(_shown, schema))
    if isinstance(schema, str):
        return schema
    return str(schema.get("name") or schema.get("logicalType") or schema["type"])
