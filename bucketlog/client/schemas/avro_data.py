"""Between values and the data that fastavro takes, by an Avro schema.

Invariants: a value is written as what it is or refused: fastavro alone would cut floats to long,
take any text for a float, take a datetime without a zone for local time and cut microseconds. A
union's branch is chosen by the value's class, never by likeness. What needs no change (a model of
text and bytes) is handed over as it is.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias, get_args
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from bucketlog.client.schemas.avro_types import Schema
from bucketlog.client.schemas.record_classes import is_record, members_of
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.schema_registry.avro_kinds import ParsedSchema, kind_of, unqualified

Convert: TypeAlias = Callable[[Any], Any]

_LISTS = (list, tuple, set, frozenset)
_NULL = ("null", None)
_KINDS: Mapping[type, tuple[str, ...]] = {
    type(None): ("null",),
    bool: ("boolean",),
    int: ("long", "double"),
    float: ("double",),
    str: ("string", "enum"),
    bytes: ("bytes", "fixed"),
    Decimal: ("decimal", "string"),
    UUID: ("uuid", "string"),
    date: ("date",),
    time: ("time",),
    list: ("array",),
    tuple: ("array",),
    set: ("array",),
    frozenset: ("array",),
    dict: ("map",),
}
"""Branches of a union that a class may be in, the best first."""


class AvroValueEncoder:
    """What a schema makes of values. `names` are the full names of record classes and enums."""

    def __init__(self, parsed: ParsedSchema, names: Mapping[type, str]) -> None:
        self._schema, self._named = parsed
        self._names = names
        self._records: dict[str, _Record] = {}

    def root(self, declared: Any) -> Convert | None:
        """None: values are taken as they are. Raises `InvalidDataError`."""
        return self.of(self._schema, declared)

    def of(self, schema: Schema, hint: Any) -> Convert | None:
        """`hint` is what the value was declared as, where that is known."""
        if isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        kind = kind_of(schema)
        match kind:
            case "union":
                return self._union(schema, hint)
            case "record":
                name = schema["name"]
                if name not in self._records:
                    self._records[name] = _Record(self, schema)
                return self._records[name]
            case "array":
                return _array(self.of(schema["items"], _only(get_args(hint)[:1])))
            case "map":
                return _map(self.of(schema["values"], _only(get_args(hint)[1:])))
            case "string" if hint is str:
                return None
        return _fitted(schema) or _BY_KIND.get(kind)

    def _union(self, schema: list[Schema], hint: Any) -> Convert:
        branches: dict[str, tuple[str, Convert | None]] = {}
        inner = _only(tuple(one for one in get_args(hint) if one is not type(None)))
        kinds: list[str] = []
        for branch in schema:
            full = self._named.get(branch, branch) if isinstance(branch, str) else branch
            kind = kind_of(full)
            by_name = kind in ("record", "enum", "fixed")
            tag = full["name"] if by_name else full if isinstance(full, str) else full["type"]
            key = f"{kind}:{unqualified(tag)}" if by_name else kind
            branches[key] = (tag, self.of(branch, inner))
            kinds.append(kind)
            if by_name and kinds.count(kind) == 1:
                branches[kind] = branches[key]  # its name does not matter while it is the only one
            elif by_name:
                branches.pop(kind, None)
        return self._chosen(schema, branches)

    def _chosen(self, schema: Schema, branches: dict[str, tuple[str, Convert | None]]) -> Convert:
        def choose(value: Any) -> Any:
            if value is None and "null" in branches:
                return _NULL
            for kind in self._kinds(value):
                found = branches.get(kind)
                if found is not None:
                    tag, convert = found
                    return (tag, value if convert is None else convert(value))
            raise InvalidDataError(
                f"a {type(value).__name__} is in no branch of the union {schema}",
                remedy="send what the topic was declared with",
            )

        return choose

    def _kinds(self, value: Any) -> tuple[str, ...]:
        cls = type(value)
        if cls in _KINDS:
            return _KINDS[cls]
        if isinstance(value, Enum):
            symbol = f"enum:{unqualified(self._names.get(cls, cls.__name__))}"
            return (symbol, *_KINDS.get(type(value.value), ()))
        if is_record(cls):
            return (f"record:{unqualified(self._names.get(cls, cls.__name__))}", "record")
        if isinstance(value, datetime):
            return ("timestamp",) if value.tzinfo is not None else ("local-timestamp",)
        bases = (_KINDS[base] for base in cls.__mro__ if base in _KINDS)
        return next(bases, ("string",))


class _Record:
    """By the class of what it is given: a plan is made for the first of each."""

    def __init__(self, encoding: AvroValueEncoder, schema: Schema) -> None:
        self._encoding = encoding
        self._types = {field["name"]: field["type"] for field in schema["fields"]}
        self._name = schema["name"]
        self._plans: dict[type, Convert] = {}

    def __call__(self, value: Any) -> Any:
        plan = self._plans.get(type(value))
        if plan is None:
            plan = self._plans[type(value)] = self._plan(type(value))
        return plan(value)

    def _plan(self, cls: type) -> Convert:
        if not is_record(cls):
            raise InvalidDataError(
                f"a {cls.__name__} is not a record {self._name}",
                remedy="send what the topic was declared with",
            )
        changes: list[tuple[str, str, Convert]] = []
        for member in members_of(cls):
            if member.wire not in self._types:
                raise InvalidDataError(
                    f"the schema of {self._name} has no field {member.wire!r}, {cls.__name__} has",
                    remedy="register the class's own schema, or write with a class that fits",
                )
            convert = self._encoding.of(self._types[member.wire], member.annotation)
            if convert is not None or member.wire != member.attribute:
                changes.append((member.wire, member.attribute, convert or _same))
        attributes = _extras_refused if _may_have_extras(cls) else _attributes_of(cls)

        def row(value: Any) -> Any:
            given = attributes(value)
            made = {**given}
            for wire, attribute, convert in changes:
                made[wire] = convert(given[attribute])
            return made

        return row if changes else attributes


def _attributes_of(cls: type) -> Convert:
    if issubclass(cls, BaseModel) or not hasattr(cls, "__slots__"):
        return vars
    names = [member.attribute for member in members_of(cls)]
    return lambda value: {name: getattr(value, name) for name in names}


def _may_have_extras(cls: type) -> bool:
    return issubclass(cls, BaseModel) and cls.model_config.get("extra") == "allow"


def _extras_refused(value: BaseModel) -> dict[str, Any]:
    if value.model_extra:
        raise InvalidDataError(
            f"{type(value).__name__} has extra fields, as {next(iter(value.model_extra))!r}, "
            "and a record of Avro has none",
            remedy="declare them",
        )
    return vars(value)


def _only(hints: tuple[Any, ...]) -> Any:
    return hints[0] if len(hints) == 1 else None


def _same(value: Any) -> Any:
    return value


def _array(items: Convert | None) -> Convert:
    def array(value: Any) -> Any:
        if not isinstance(value, _LISTS):
            raise _refused("array", value)
        return [items(item) for item in value] if items else value

    return array


def _map(values: Convert | None) -> Convert:
    def mapping(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _refused("map", value)
        return {key: values(item) for key, item in value.items()} if values else value

    return mapping


def _refused(kind: str, value: Any) -> InvalidDataError:
    return InvalidDataError(
        f"expected {kind}, got {type(value).__name__}",
        remedy="send what the topic was declared with",
    )


def _boolean(value: Any) -> Any:
    if type(value) is not bool:
        raise _refused("boolean", value)
    return value


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    plain = value.value if isinstance(value, Enum) else value
    if not isinstance(plain, int) or isinstance(plain, bool):
        raise _refused("long", value)
    return plain


def _number(value: Any) -> Any:
    if type(value) is float:
        return value
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _refused("double", value)
    return value


def _text(value: Any) -> Any:
    if type(value) is str:
        return value
    plain = value.value if isinstance(value, Enum) else value
    if plain is not None and not isinstance(plain, str):
        plain = to_jsonable_python(plain)
    if not isinstance(plain, str):
        raise _refused("string", value)
    return plain


def _symbol(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _instant(value: Any) -> Any:
    if not isinstance(value, datetime):
        raise _refused("timestamp", value)
    if value.tzinfo is None:
        raise InvalidDataError(
            f"{value} has no time zone", remedy="add one, or declare the field as NaiveDatetime"
        )
    return value


def _wall_clock(value: Any) -> Any:
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise _refused("local timestamp, which has no zone", value)
    return value


def _day(value: Any) -> Any:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _refused("date", value)
    return value


def _time(value: Any) -> Any:
    if not isinstance(value, time):
        raise _refused("time", value)
    if value.tzinfo is not None:
        raise InvalidDataError(f"{value} has a zone, Avro's times have none", remedy="remove it")
    return value


def _decimal(value: Any) -> Any:
    if not isinstance(value, Decimal):
        raise _refused("decimal", value)
    return value


def _uuid(value: Any) -> Any:
    if not isinstance(value, UUID):
        raise _refused("uuid", value)
    return value


_BY_KIND: Mapping[str, Convert] = {
    "boolean": _boolean,
    "long": _integer,
    "double": _number,
    "string": _text,
    "enum": _symbol,
    "timestamp": _instant,
    "local-timestamp": _wall_clock,
    "date": _day,
    "time": _time,
    "decimal": _decimal,
    "uuid": _uuid,
}


def _fitted(schema: Schema) -> Convert | None:
    """For a schema that holds less than the value may have: what it would cut is refused."""
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    convert = _BY_KIND.get(kind_of(schema))
    if convert is None or not logical.endswith("-millis"):
        return None

    def whole(value: Any) -> Any:
        if convert(value).microsecond % 1000:
            raise InvalidDataError(
                f"{value} has microseconds, the schema milliseconds alone", remedy="round it"
            )
        return value

    return whole
