"""The fast decoders of JSON columns answer as pydantic, whatever the classes declare: settings of
each kind of class, defaults of None, fields that JSON cannot set, nested in each other."""

import dataclasses
import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, NamedTuple, cast

import pydantic.dataclasses
import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict, Field, create_model

from bucketlog.client.topic import Topic
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.replaying.typed_table import TypedTable
from tests.rigs.typed_batches import CHOICES, batch_of, outcome, plainly

SETTINGS: list[dict[str, Any]] = [
    {},
    {"frozen": True},
    {"strict": True},
    {"extra": "ignore"},
    {"extra": "allow"},
    {"extra": "forbid"},
    {"validate_by_name": True, "validate_by_alias": True},
    {"val_json_bytes": "base64"},
    {"str_to_lower": True},
    {"str_strip_whitespace": True},
    {"str_max_length": 2},
    {"validate_default": True},
]
ABSENT = object()
EXAMPLES = 10


def rarely(one_in: int) -> st.SearchStrategy[bool]:
    return st.integers(1, one_in).map(lambda drawn: drawn == one_in)


class Scalar(NamedTuple):
    declared: Any
    default: Any
    fitting: st.SearchStrategy[Any]


SCALARS = {
    "number": Scalar(int, 7, st.integers(-3, 3)),
    "text": Scalar(
        str, "Dd", st.sampled_from(["", "A", "Ab", " a"]) | rarely(9).map("abc".__mul__)
    ),
    "raw": Scalar(bytes, b"d", st.sampled_from(["", "QUJD", "QUJE"])),
    "real": Scalar(float, 0.5, st.sampled_from([0, 0.0, -0.0, 1, -1.5])),
    "flag": Scalar(bool, True, st.booleans()),
    "share": Scalar(
        Annotated[Decimal, Field(max_digits=3, decimal_places=3)],
        Decimal("0.5"),
        st.sampled_from(["0.12", "0.0", "-0.001"] * 3 + ["0", ".5", "0.1234"]),
    ),
}
anything: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 1, -1.0, "1", "Ab", [], {}, [None], 10**30]
)


class Member(NamedTuple):
    """`given` makes JSON for the field, by one of the names in `spellings`."""

    name: str
    declared: Any
    default: Any
    spellings: list[str]
    given: st.SearchStrategy[Any]
    is_set: bool = True
    """False: a dataclass keeps the default, whatever JSON has."""
    is_passed: bool = False
    """True: a dataclass passes the value on, and has no such field."""


class Shape(NamedTuple):
    declared: Any
    values: st.SearchStrategy[Any]
    columns: tuple[str, ...]


def required(name: str, scalar: Scalar) -> Member:
    return Member(name, scalar.declared, ABSENT, [name], scalar.fitting)


def none_by_default(name: str, scalar: Scalar) -> Member:
    fitting = st.one_of(*[scalar.fitting] * 4, st.none())
    return Member(name, scalar.declared, None, [name], fitting)


def optional(name: str, scalar: Scalar) -> Member:
    nullable: Any = scalar.declared | None
    declared = Annotated[nullable, Field(alias=name.upper())]
    return Member(name, declared, None, [name.upper(), name], scalar.fitting | st.none())


def listed(name: str, scalar: Scalar) -> Member:
    fitting = st.lists(scalar.fitting, max_size=2)
    declared: Any = scalar.declared
    return Member(name, list[declared], ABSENT, [name], fitting)


def never_set(name: str, scalar: Scalar) -> Member:
    default = ABSENT if scalar.default is ABSENT else scalar.default
    return required(name, scalar)._replace(default=default, is_set=default is ABSENT)


def passed_on(name: str, scalar: Scalar) -> Member:
    return required(name, scalar)._replace(is_passed=name == "number")


STYLES = [required, none_by_default, optional, listed, never_set, passed_on]
CARRIERS = ["itself", "field", "list"]


def model(fields: list[Member], chosen: ConfigDict) -> Any:
    given = {
        each.name: (each.declared, ... if each.default is ABSENT else each.default)
        for each in fields
    }
    return create_model("Model", __config__=chosen, **cast(Any, given))


def typed_dict(fields: list[Member], chosen: ConfigDict) -> Any:
    given = {each.name: each.declared for each in fields}
    made = cast(Any, typing_extensions.TypedDict)("Dict", given)
    if chosen:
        made.__pydantic_config__ = chosen
    return made


def with_dataclass(
    decorate: Callable[[type, ConfigDict], Any],
) -> Callable[[list[Member], ConfigDict], Any]:
    def made(fields: list[Member], chosen: ConfigDict) -> Any:
        body: dict[str, Any] = {"__annotations__": {}}
        for each in fields:
            if each.is_passed:
                body["__annotations__"][each.name] = dataclasses.InitVar(each.declared)
            else:
                body["__annotations__"][each.name] = each.declared
            if each.default is not ABSENT:
                body[each.name] = dataclasses.field(default=each.default, init=each.is_set)
        return decorate(type("Data", (), body), chosen)

    return made


def standard(cls: type, chosen: ConfigDict) -> Any:
    made: Any = dataclasses.dataclass(kw_only=True)(cls)
    if chosen:
        made.__pydantic_config__ = chosen
    return made


def of_pydantic(cls: type, chosen: ConfigDict) -> Any:
    return pydantic.dataclasses.dataclass(kw_only=True, config=chosen)(cls)


KINDS: dict[str, Callable[[list[Member], ConfigDict], Any]] = {
    "model": model,
    "TypedDict": typed_dict,
    "dataclass": with_dataclass(standard),
    "pydantic dataclass": with_dataclass(of_pydantic),
}


@st.composite
def objects(draw: st.DrawFn, fields: list[Member]) -> dict[str, Any]:
    """Mostly what the class takes."""
    value = {}
    for each in fields:
        if not draw(rarely(40 if each.default is ABSENT else 3)):
            name = draw(st.sampled_from(each.spellings))
            value[name] = draw(anything if draw(rarely(40)) else each.given)
    if draw(rarely(5)):
        value["other"] = draw(anything)
    return value


@cache
def shape_of(kind: str, text: str, style: Callable[[str, Scalar], Member]) -> Shape:
    chosen = json.loads(text)
    fields = [style(name, scalar) for name, scalar in SCALARS.items()]
    if not all(each.is_set for each in fields) and chosen.get("extra") == "allow":
        chosen = {}  # pydantic refuses both
    declared = KINDS[kind](fields, cast(ConfigDict, chosen))
    is_data = "dataclass" in kind
    columns = tuple(each.name for each in fields if not (is_data and each.is_passed))
    return Shape(declared, objects(fields), columns)


@cache
def carried(kind: str, text: str, style: Callable[[str, Scalar], Member], carrier: str) -> Shape:
    inner = shape_of(kind, text, style)
    if carrier == "itself":
        return inner
    declared, values = inner.declared, inner.values
    if carrier == "list":
        declared = list[declared]  # type: ignore[valid-type]  # made here
        values = st.lists(values, max_size=2)
    outer = create_model("Outer", inner=(declared, ...), other=(int | None, None))
    return Shape(outer, st.fixed_dictionaries({"inner": values}), ("inner", "other"))


@cache
def table_of(shape: Shape, columns: tuple[str, ...] | None, choice: DecoderChoice) -> TypedTable:
    return TypedTable(Topic("shapes", value=shape.declared), "flat", columns, choice)


@pytest.mark.parametrize("given_settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_both_decoders_agree(
    kind: str, given_settings: dict[str, Any], data: st.DataObject
) -> None:
    """Together and alone: a bad value hides what its neighbours are."""
    style = data.draw(st.sampled_from(STYLES))
    carrier = data.draw(st.sampled_from(CARRIERS))
    shape = carried(kind, json.dumps(given_settings), style, carrier)
    some = st.sampled_from(shape.columns).map(lambda name: (name,))
    table = table_of(shape, data.draw(st.none() | some), data.draw(st.sampled_from(CHOICES)))
    stored = data.draw(st.lists(shape.values.map(json.dumps), min_size=1, max_size=3))
    values = [each.replace("-0.0", "-0").encode() for each in stored]
    for each in ([*values], *([value] for value in values)):
        batch = batch_of([*each])
        assert repr(outcome(table, batch)) == repr(plainly(table, batch))
