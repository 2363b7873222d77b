"""Columns of the types that pydantic validates, from pydantic's own description of them.

| Python | column |
|---|---|
| bool, int, float, str, bytes | bool, int64, double, string, binary |
| datetime, `AwareDatetime`; `NaiveDatetime` | timestamp[us, UTC]; timestamp[us] |
| date, time, timedelta | date32, time64[us], duration[us] |
| Decimal | decimal128(max_digits, decimal_places), by default (38, 18) |
| UUID, URLs | string |
| enums and literals of text, of int | string, int64 |
| model, dataclass, TypedDict | struct |
| list, set, frozenset, tuple[X, ...] | list |
| dict[str, X] | map |
| Any, unions of several types | string, as JSON |

pydantic's description (its core schema) also says what the values have to pass besides their type.
Whatever is not known here to be checked by pyarrow in the same way is decoded by pydantic.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bucketlog.log_format.arrow_building import binary_array, number_array, scalar_of
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.replaying.column import Check, Column, Field, scalar, struct
from bucketlog.replaying.neutral_schemas import (
    NEUTRAL,
    Schema,
    are_neutral_fields,
    is_neutral_class,
    is_neutral_default,
    is_neutral_field,
    reads_aliases_only,
)

LEVELS_MAX = 60
_EXACT_MAX = 2**53
"""Integers up to this are exact as doubles, too."""
_ONE, _NEGATIVE_INFINITY = (scalar_of(each, pa.float64()) for each in (1.0, -inf))
_INSTANT = pa.timestamp("us", tz="UTC")
_ZONE = r"(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
_LOCAL = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def column_of(declared: Any) -> Column:
    """Raises `ConfigurationError` if the type has no column."""
    from pydantic import TypeAdapter

    schema: Any = TypeAdapter(declared).core_schema
    return _Walk({}).column(schema, getattr(declared, "__name__", str(declared)), 0)


class _Walk:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions

    def column(self, schema: Schema, where: str, level: int) -> Column:
        if level > LEVELS_MAX:
            raise ConfigurationError(
                f"{where} has no columns: its type contains itself, or has more than "
                f"{LEVELS_MAX} levels",
                remedy="declare the inner value as Any: the column then has it as JSON",
            )
        match schema["type"]:
            case "definitions":
                self._definitions.update({each["ref"]: each for each in schema["definitions"]})
                return self.column(schema["schema"], where, level)
            case "definition-ref":
                return self.column(self._definitions[schema["schema_ref"]], where, level + 1)
            case "nullable":
                inner = self.column(schema["schema"], where, level + 1)
                return replace(inner, optional=True)
            case "default":
                return self._with_default(schema, where, level)
            case "model" | "dataclass":
                return self._model(schema, where, level)
            case "model-fields" | "typed-dict" | "dataclass-args":
                return self._fields(schema, where, level, by_alias_only=reads_aliases_only(schema))
            case "list" | "set" | "frozenset" | "tuple":
                return self._list(schema, where, level)
            case "dict":
                return self._map(schema, where, level)
            case "lax-or-strict":
                return self._unsure(schema["lax_schema"], where, level)
            case "json-or-python":
                return self._unsure(schema["json_schema"], where, level)
            case "function-after" | "function-before" | "function-wrap":
                return self._unsure(schema["schema"], where, level)
            case "enum":
                return _choice([member.value for member in schema["members"]], schema)
            case "literal":
                found = _choice(schema["expected"], schema)
                of_enum = any(isinstance(value, Enum) for value in schema["expected"])
                return replace(found, plain=None) if of_enum else found
        return _scalar(schema)

    def _unsure(self, schema: Schema, where: str, level: int) -> Column:
        """A function of the program sees the values: only pydantic can decode them. The function
        may return another class, such as a path: a column of text has its text."""
        inner = self.column(schema, where, level + 1)
        convert = _text_of if inner.kind == pa.string() else inner.value_of
        return replace(inner, plain=None, value_of=convert)

    def _with_default(self, schema: Schema, where: str, level: int) -> Column:
        """pydantic decodes null if only the default may be None: pyarrow reads null for a missing
        field, too."""
        inner = self.column(schema["schema"], where, level + 1)
        is_none = "default" in schema and schema["default"] is None
        plain = inner.plain if is_neutral_default(schema) else None
        return replace(inner, may_miss=is_none, plain=plain)

    def _model(self, schema: Schema, where: str, level: int) -> Column:
        inner = schema["schema"]
        if schema.get("root_model"):
            root = self.column(inner, where, level + 1)
            return replace(root, plain=None, value_of=lambda value: root.value_of(value.root))
        if inner["type"] in ("model-fields", "dataclass-args"):
            found = self._fields(inner, where, level, by_alias_only=reads_aliases_only(schema))
        else:
            found = self.column(inner, where, level + 1)
        return found if is_neutral_class(schema) else replace(found, plain=None)

    def _fields(self, schema: Schema, where: str, level: int, *, by_alias_only: bool) -> Column:
        given = schema["fields"]
        members = given.items() if isinstance(given, Mapping) else [(m["name"], m) for m in given]
        fields = []
        is_plain = are_neutral_fields(schema)
        for name, member in members:
            if member.get("init_only"):  # an argument of __post_init__, not a field
                is_plain = False
                continue
            alias = member.get("validation_alias", name)
            is_plain = (
                is_plain
                and is_neutral_field(member)
                and isinstance(alias, str)
                and (by_alias_only or alias == name)
            )
            column = self.column(member["schema"], f"{where}.{name}", level + 1)
            if member["schema"]["type"] != "default":  # a default further inside has no effect
                column = replace(column, may_miss=False)
            may_lack = not member.get("required", schema.get("total", True))
            if schema["type"] == "typed-dict" and may_lack:
                column = replace(column, plain=None)
            fields.append(Field(name, alias if isinstance(alias, str) else name, column))
        if not fields:
            raise ConfigurationError(
                f"{where} has no columns: the class has no fields",
                remedy="declare the fields that the table is to have",
            )
        read = _item if schema["type"] == "typed-dict" else getattr
        return struct(fields, read, plain=is_plain)

    def _list(self, schema: Schema, where: str, level: int) -> Column:
        items = schema.get("items_schema")
        if schema["type"] == "tuple":
            if schema.get("variadic_item_index") != 0 or items is None or len(items) != 1:
                return _as_json()
            (items,) = items
        inner = _as_json() if items is None else self.column(items, f"{where}[]", level + 1)
        inner = replace(inner, may_miss=True)
        convert = inner.value_of
        is_plain = schema["type"] == "list" and inner.plain is not None
        is_plain = is_plain and schema.keys() <= NEUTRAL | {"items_schema"}
        return Column(
            pa.list_(inner.kind),
            pa.list_(inner.plain) if is_plain else None,
            lambda value: None if value is None else [convert(each) for each in value],
            items=inner,
        )

    def _map(self, schema: Schema, where: str, level: int) -> Column:
        values = schema.get("values_schema")
        inner = _as_json() if values is None else self.column(values, f"{where}{{}}", level + 1)
        convert = inner.value_of

        def value_of(value: Any) -> Any:
            return (
                None
                if value is None
                else [(str(key), convert(each)) for key, each in value.items()]
            )

        return Column(pa.map_(pa.string(), inner.kind), None, value_of)


def _scalar(schema: Schema) -> Column:
    rules = schema.keys() - NEUTRAL
    match schema["type"]:
        case "bool":
            return scalar(pa.bool_(), None if rules else pa.bool_())
        case "int":
            return _bounded(pa.int64(), schema, rules)
        case "float":
            return _bounded(pa.float64(), schema, rules - {"allow_inf_nan"}, *_ODD_FLOATS)
        case "str":
            return _text(schema, rules)
        case "bytes":
            return scalar(pa.binary(), None if rules else pa.string())
        case "datetime":
            return _datetime(schema, rules)
        case "date":
            first = scalar_of("0001-01-01", pa.string())
            return scalar(
                pa.date32(), None if rules else pa.string(), lambda found: pc.less(found, first)
            )
        case "time":
            return scalar(pa.time64("us"), None)
        case "timedelta":
            return scalar(pa.duration("us"), None)
        case "decimal":
            return _decimal(schema, rules)
        case "uuid":
            plain = None if rules else pa.string()
            return Column(pa.string(), plain, _text_of, (_unless(_UUID),))
        case "url" | "multi-host-url":
            return Column(pa.string(), None, _text_of)
        case "none":
            return scalar(pa.null(), None)
    return _as_json()


def _is_negative_zero(values: pa.Array) -> pa.Array:
    """`-0` is 0.0 for pydantic, and -0.0 for pyarrow."""
    return pc.equal(pc.divide(_ONE, values), _NEGATIVE_INFINITY)


_ODD_FLOATS = (pc.is_inf, pc.is_nan, _is_negative_zero)


def _bounded(kind: pa.DataType, schema: Schema, rules: Any, *checks: Check) -> Column:
    found = list(checks)
    for rule, outside in (
        ("ge", pc.less),
        ("gt", pc.less_equal),
        ("le", pc.greater),
        ("lt", pc.greater_equal),
    ):
        if rule in schema:
            if not isinstance(schema[rule], int | float) or abs(schema[rule]) > _EXACT_MAX:
                return scalar(kind, None)
            bound = scalar_of(
                schema[rule], kind if schema[rule] == int(schema[rule]) else pa.float64()
            )
            found.append(_compared(outside, bound))
    return scalar(kind, None if rules - {"ge", "gt", "le", "lt"} else kind, *found)


def _compared(outside: Callable[[pa.Array, pa.Scalar], pa.Array], bound: pa.Scalar) -> Check:
    return lambda values: outside(values, bound)


def _text(schema: Schema, rules: Any) -> Column:
    found: list[Check] = []
    if (least := schema.get("min_length")) is not None:
        fewest = scalar_of(least, pa.int64())
        found.append(lambda values: pc.less(pc.utf8_length(values), fewest))
    if (most := schema.get("max_length")) is not None:
        largest = scalar_of(most, pa.int64())
        found.append(lambda values: pc.greater(pc.utf8_length(values), largest))
    return scalar(
        pa.string(), None if rules - {"min_length", "max_length"} else pa.string(), *found
    )


def _datetime(schema: Schema, rules: Any) -> Column:
    plain = None if rules - {"tz_constraint"} else pa.string()
    # a day at each end of the calendar is outside of it in some zones
    first, last = scalar_of("0001-01-02", pa.string()), scalar_of("9999-12-31", pa.string())

    def is_at_an_end(values: pa.Array) -> pa.Array:
        return pc.or_(pc.less(values, first), pc.greater(values, last))

    match schema.get("tz_constraint"):
        case "naive":
            return scalar(pa.timestamp("us"), plain, _unless(f"{_LOCAL}$"), is_at_an_end)
        case None | "aware":
            check = _unless(f"{_LOCAL}{_ZONE}$")
            return Column(_INSTANT, plain, _instant, (check, is_at_an_end))
    return Column(_INSTANT, None, _instant)


def _decimal(schema: Schema, rules: Any) -> Column:
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    if digits is None or places is None or digits > 38:
        digits, places = 38, 18
        rules = (
            rules | {"rounded"} if "decimal_places" in schema or "max_digits" in schema else rules
        )
    is_plain = digits >= places and rules <= {"max_digits", "decimal_places", "allow_inf_nan"}
    whole, after = f"[0-9]{{1,{digits - places}}}", rf"\.[0-9]{{1,{places or 1}}}"
    number = rf"^-?{whole}({after})?$" if digits > places else rf"^-?0{after}$"
    return scalar(pa.decimal128(digits, places), pa.string() if is_plain else None, _unless(number))


def _choice(values: list[Any], schema: Schema) -> Column:
    values = [value.value if isinstance(value, Enum) else value for value in values]
    for cls, kind in ((str, pa.string()), (int, pa.int64())):
        if all(type(value) is cls for value in values):
            known = _known(values)

            def is_unknown(found: pa.Array, known: pa.Array = known) -> pa.Array:
                return pc.and_not(found.is_valid(), pc.is_in(found, value_set=known))

            plain = None if "missing" in schema else kind
            return Column(kind, plain, _enum_value, (is_unknown,))
    return _as_json()


def _known(values: list[Any]) -> pa.Array:
    if isinstance(values[0], str):
        return binary_array([value.encode() for value in values], pa.string())
    return number_array(np.array(values, np.int64))


def _as_json() -> Column:
    from pydantic_core import to_json

    return Column(
        pa.string(),
        None,
        lambda value: None if value is None else to_json(value, fallback=str).decode(),
    )


def _unless(pattern: str) -> Check:
    return lambda found: pc.invert(pc.match_substring_regex(found, pattern))


def _enum_value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _text_of(value: Any) -> str | None:
    return None if value is None else str(_enum_value(value))


def _instant(value: Any) -> Any:
    if value is not None and value.tzinfo is None:
        raise ValueError(f"{value} has no time zone: declare the field as NaiveDatetime")
    return value


def _item(value: Any, name: str) -> Any:
    return value.get(name)
