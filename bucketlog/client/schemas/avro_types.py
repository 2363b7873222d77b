"""The Avro schema of a Python type.

Derived here, not by a package: those there are make an enum's first symbol stand for any that is
unknown, state defaults that differ with every start, or want their own base class. What a schema
made here says is what `avro_data` writes and pydantic reads back: no value changes on the way.

| Python | Avro |
|---|---|
| bool, int, float, str, bytes, None | boolean, long, double, string, bytes, null |
| datetime (with a zone), `NaiveDatetime` | timestamp-micros, local-timestamp-micros |
| date, time, UUID | date, time-micros, uuid (string) |
| Decimal with max_digits and decimal_places | decimal (bytes) |
| an enum of text | enum, where its values are names, else string; of int: long |
| model, dataclass | record |
| list, set, frozenset, Sequence, tuple[X, ...] | array |
| dict[str, X], Mapping[str, X] | map |
| X or Y or None | union; a default's type comes first |
| any other type that pydantic writes as a JSON string | string |
"""

import collections.abc as abc
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, TypeAlias, Union, get_args, get_origin
from uuid import UUID

from pydantic import AwareDatetime, NaiveDatetime, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from bucketlog.client.schemas.avro_defaults import DoesNotFitError, stated
from bucketlog.client.schemas.record_classes import MISSING, RecordField, is_record, members_of
from bucketlog.log_format.errors import ConfigurationError

Schema: TypeAlias = Any
"""As `json.loads` gives it: a name, an object, or a list (a union)."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGICAL: Mapping[Any, tuple[str, str]] = {
    datetime: ("long", "timestamp-micros"),
    AwareDatetime: ("long", "timestamp-micros"),
    NaiveDatetime: ("long", "local-timestamp-micros"),
    date: ("int", "date"),
    time: ("long", "time-micros"),
    UUID: ("string", "uuid"),
}
_PRIMITIVES: Mapping[Any, str] = {
    None: "null",
    NoneType: "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
}
_ARRAYS = frozenset(
    {list, set, frozenset, abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet, abc.Iterable}
)
_MAPS = frozenset({dict, abc.Mapping, abc.MutableMapping})


@dataclass
class DerivedSchema:
    """`names` has every record and enum, by its class; `named` their schemas, by full name;
    `filled` the fields that the class fills in, whether its schema states a default or not."""

    schema: Schema = None
    names: dict[type, str] = field(default_factory=dict)
    named: dict[str, Schema] = field(default_factory=dict)
    filled: set[tuple[str, str]] = field(default_factory=set)


def derive(declared: Any, name: str | None = None, aliases: Iterable[str] = ()) -> DerivedSchema:
    """`name` is the full name of the outermost record, as `com.shop.Order`: its namespace is
    everybody's. Raises `ConfigurationError`."""
    namespace, _, simple = (name or "").rpartition(".")
    for part in filter(None, [*namespace.split("."), simple]):
        if not NAME.fullmatch(part):
            raise ConfigurationError(f"{name!r} is not an Avro name", remedy="as in com.shop.Order")
    deriving = _SchemaDerivation(namespace)
    if name is not None and isinstance(declared, type):
        deriving.own_names[declared] = simple
    derived = deriving.derived
    derived.schema = deriving.schema_of(declared, ())
    if former := list(aliases):
        if not is_record(declared):
            raise ConfigurationError(
                f"aliases of {declared!r}, which is not a record", remedy="leave them out"
            )
        derived.schema["aliases"] = former
    return derived


class _SchemaDerivation:
    def __init__(self, namespace: str) -> None:
        self.derived = DerivedSchema()
        self.own_names: dict[type, str] = {}
        self._namespace = namespace

    def schema_of(self, declared: Any, metadata: tuple[Any, ...]) -> Schema:
        origin = get_origin(declared)
        if origin is Annotated:
            inner, *more = get_args(declared)
            return self.schema_of(inner, (*metadata, *more))
        if isinstance(declared, NewType):
            return self.schema_of(declared.__supertype__, metadata)
        if hasattr(declared, "__value__"):  # a `type` statement's alias
            return self.schema_of(declared.__value__, metadata)
        if isinstance(declared, abc.Hashable) and declared in _PRIMITIVES:
            return _PRIMITIVES[declared]
        if isinstance(declared, abc.Hashable) and declared in _LOGICAL:
            base, logical = _LOGICAL[declared]
            return {"type": base, "logicalType": logical}
        if declared is Decimal:
            return _decimal(metadata)
        if origin in (Union, UnionType):
            inner = get_args(declared)
            return self._union((_plain(one), self.schema_of(one, metadata)) for one in inner)
        if origin is Literal:
            classes = dict.fromkeys(type(value) for value in get_args(declared))
            return self._union((cls, self.schema_of(cls, ())) for cls in classes)
        if isinstance(declared, type) and issubclass(declared, Enum):
            return self._enum(declared)
        if is_record(declared):
            return self._record(declared)
        return self._collection(declared, origin)

    def _collection(self, declared: Any, origin: Any) -> Schema:
        inner = get_args(declared)
        if origin in _ARRAYS or (origin is tuple and len(inner) == 2 and inner[1] is ...):
            return {"type": "array", "items": self.schema_of(inner[0], ())}
        if origin in _MAPS:
            if self.schema_of(inner[0], ()) != "string":
                raise _no_schema(declared, "Avro's maps have text as keys")
            return {"type": "map", "values": self.schema_of(inner[1], ())}
        if _is_text_in_json(declared):
            return "string"
        raise _no_schema(declared, "there is no Avro type for it")

    def _record(self, cls: type) -> Schema:
        if cls in self.derived.names:
            return self.derived.names[cls]
        name = self._name(cls)
        fields: list[Schema] = []
        self.derived.named[name] = {"type": "record", "name": name, "fields": fields}
        for member in members_of(cls):
            fields.append(self._field(cls, member))
            if not member.required:
                self.derived.filled.add((name, member.wire))
        return self.derived.named[name]

    def _field(self, cls: type, member: RecordField) -> Schema:
        where = f"{cls.__name__}.{member.attribute}"
        for name in (member.wire, *member.aliases):
            if not NAME.fullmatch(name):
                raise ConfigurationError(
                    f"{where}: {name!r} is not an Avro name",
                    remedy="letters, digits and '_' alone: use another alias",
                )
        try:
            schema = self.schema_of(member.annotation, member.metadata)
        except ConfigurationError as error:
            if error.message.startswith(cls.__name__):
                raise
            raise ConfigurationError(f"{where}: {error.message}", remedy=error.remedy) from error
        made = {"name": member.wire, "type": schema}
        if member.aliases:
            made["aliases"] = list(member.aliases)
        if member.default is not MISSING:
            try:
                made["type"], made["default"] = stated(schema, member.default, self.derived.named)
            except DoesNotFitError as error:
                raise ConfigurationError(
                    f"{where}: {error}", remedy="give a default of the declared type"
                ) from error
        return made

    def _enum(self, cls: type[Enum]) -> Schema:
        if cls in self.derived.names:
            return self.derived.names[cls]
        values = [member.value for member in cls]
        if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            return "long"
        if not all(isinstance(value, str) for value in values):
            raise _no_schema(cls, "an enum has text or int as values")
        if not all(NAME.fullmatch(value) for value in values):
            return "string"
        name = self._name(cls)
        self.derived.named[name] = {"type": "enum", "name": name, "symbols": values}
        return self.derived.named[name]

    def _name(self, cls: type) -> str:
        simple = self.own_names.get(cls) or re.sub(r"\W+", "_", cls.__name__).strip("_")
        name = f"{self._namespace}.{simple}" if self._namespace else simple
        if not NAME.fullmatch(simple):
            raise ConfigurationError(f"{simple!r} is not an Avro name", remedy="rename the class")
        if name in self.derived.named:
            raise ConfigurationError(
                f"two classes are named {name}", remedy="Avro knows types by name: rename one"
            )
        self.derived.names[cls] = name
        return name

    def _union(self, branches: Iterable[tuple[Any, Schema]]) -> Schema:
        """Of what was declared, each with its schema."""
        flat: dict[str, tuple[Any, Schema]] = {}
        for declared, branch in branches:
            for one in branch if isinstance(branch, list) else [branch]:
                known, _ = flat.setdefault(_in_union(one), (declared, one))
                if known != declared:
                    raise ConfigurationError(
                        f"a union of {_shown(known)} and {_shown(declared)}",
                        remedy="Avro cannot tell them apart: use one, or a record around it",
                    )
        schemas = [schema for _, schema in flat.values()]
        return schemas if len(schemas) > 1 else schemas[0]


def _in_union(schema: Schema) -> str:
    """What Avro tells a union's branches apart by."""
    if isinstance(schema, str):
        return schema
    return str(schema.get("name") or schema["type"])


def _plain(declared: Any) -> Any:
    """Without what does not change the values' class."""
    while get_origin(declared) is Annotated:
        declared = get_args(declared)[0]
    if get_origin(declared) is Literal:
        classes = {type(value) for value in get_args(declared)}
        return classes.pop() if len(classes) == 1 else declared
    return declared


def _decimal(metadata: Iterable[Any]) -> Schema:
    digits = _constraint(metadata, "max_digits")
    places = _constraint(metadata, "decimal_places")
    if digits is None or places is None:
        return "string"
    return {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": places}


def _constraint(metadata: Iterable[Any], name: str) -> int | None:
    for one in metadata:
        if isinstance(one, FieldInfo):
            found = _constraint(one.metadata, name)
        else:
            found = getattr(one, name, None)
        if found is not None:
            return found
    return None


def _is_text_in_json(declared: Any) -> bool:
    if not isinstance(declared, type):
        return False
    try:
        schema = TypeAdapter(declared).json_schema(mode="serialization")
    except PydanticUserError:
        return False
    return schema.get("type") == "string"


def _no_schema(declared: Any, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{_shown(declared)} has no Avro schema: {why}",
        remedy="use types of the table in docs/sdk.md, or a model of them",
    )


def _shown(declared: Any) -> str:
    is_class = isinstance(declared, type) and get_origin(declared) is None
    return declared.__name__ if is_class else str(declared)
