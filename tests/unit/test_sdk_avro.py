"""Avro schemas of Python types, values both ways, and what is refused."""

import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from random import Random
from typing import Any
from uuid import uuid4

import fastavro
import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, NaiveDatetime

from bucketlog import Avro, SchemaRegistry
from bucketlog.client.schemas.display import DisplayFormat
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.schema_registry.avro_parsing import data_reader, parsed_schema
from bucketlog.schema_registry.codec import SchemaText


class Letter(Enum):
    A = "a"
    B = "b"


class Phrase(Enum):
    ONE = "one word"
    TWO = "two words"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Card(BaseModel):
    number: int


class Cash(BaseModel):
    number: int


class Tree(BaseModel):
    name: str
    children: "list[Tree]" = []


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


class All(BaseModel):
    letter: Letter | Level | None = None
    phrase: Phrase = Phrase.ONE
    pay: Card | Cash | None = None
    paid: list[Card | Cash] = []
    either: int | float | str | bytes | bool | None = None
    when: datetime | None = None
    here: NaiveDatetime | None = None
    tree: Tree | None = None
    points: dict[str, Point] = {}
    link: AnyUrl | None = None
    lasts: timedelta = timedelta(seconds=1.5)
    free: Decimal = Decimal("1.10")
    names: frozenset[str] = frozenset()


ZURICH = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"letter": Letter.B, "pay": Cash(number=1), "paid": [Cash(number=1), Card(number=2)]},
        {"letter": Level.HIGH, "either": 1, "phrase": Phrase.TWO},
        {"either": 1.0},
        {"either": True},
        {"either": b"\xff"},
        {"either": "1"},
        {"when": datetime(2026, 1, 2, 3, 4, 5, 6, ZURICH)},
        {"here": datetime.fromisoformat("2026-01-02T03:04:05.000006")},
        {"tree": Tree(name="a", children=[Tree(name="b", children=[Tree(name="c")])])},
        {"points": {"p": Point(1, 2)}, "link": AnyUrl("http://a.b/c"), "names": frozenset("ab")},
    ],
)
def test_both_ways_to_the_very_type(values: dict[str, Any]) -> None:
    avro = Avro(All)
    value = All(**values)
    back = avro.decode(avro.encode(value))
    assert back == value
    for name in values:
        assert type(getattr(back, name)) is type(getattr(value, name))


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (str, "x"),
        (int, 5),
        (list[Card | Cash], [Cash(number=1)]),
        (Letter, Letter.B),
        (Point, Point(1)),
    ],
)
def test_types_that_are_no_model(declared: Any, value: Any) -> None:
    avro: Avro[Any] = Avro(declared)
    assert avro.decode(avro.encode(value)) == value


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    count: int = 1
    share: float = 1.0
    text: str = ""
    flag: bool = True
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    hour: time = time(1)
    price: Decimal = Field(Decimal("1.5"), max_digits=5, decimal_places=2)
    letter: Letter = Letter.A
    names: list[str] = []


def test_strict_models_read_what_they_wrote() -> None:
    avro = Avro(Strict)
    assert avro.decode(avro.encode(Strict(letter=Letter.B))) == Strict(letter=Letter.B)


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 1.5},
        {"count": 2**63},
        {"count": "1"},
        {"share": "1.5"},
        {"text": 1},
        {"flag": "no"},
        {"at": datetime.fromisoformat("2026-01-01")},
        {"hour": time(1, tzinfo=UTC)},
        {"price": Decimal("1.555")},
        {"price": Decimal("NaN")},
        {"letter": "z"},
        {"names": "abc"},
        {"text": "\ud800"},
        {"unknown": 1},
        {"text": None},
    ],
)
def test_values_that_were_never_validated_are_refused_not_bent(wrong: dict[str, Any]) -> None:
    avro = Avro(Strict)
    avro.encode(Strict())
    value = Strict() if "unknown" in wrong else Strict.model_construct(**Strict().__dict__ | wrong)
    if "unknown" in wrong:
        value = Strict(**wrong)
    with pytest.raises(InvalidDataError) as caught:
        avro.encode(value)
    assert caught.value.remedy


def test_another_class_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="expected Card, got Cash"):
        Avro(Card).encode(Cash(number=1))  # type: ignore[arg-type]  # that is the point

    class More(Card):
        lost: str

    with pytest.raises(InvalidDataError, match="no field 'lost'"):
        Avro(Card).encode(More(number=1, lost="x"))


def wrote(schema: Any, datum: Any) -> tuple[SchemaText, bytes]:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
    return SchemaText(json.dumps(schema), "AVRO"), out.getvalue()


def record(*fields: tuple[str, Any], name: str = "Seen") -> Any:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields],
    }


class Seen(BaseModel):
    id: float = 0.0
    at: datetime | None = None
    key: Letter | None = None
    raw: bytes = b""
    fresh: str = Field(default_factory=lambda: str(uuid4()))


@pytest.mark.parametrize(
    ("fields", "datum", "seen"),
    [
        ([], {}, {}),
        ([("id", "int")], {"id": 3}, {"id": 3.0}),
        ([("id", ["null", "long"])], {"id": 3}, {"id": 3.0}),
        ([("raw", "string")], {"raw": "ä"}, {"raw": "ä".encode()}),
        ([("raw", {"type": "fixed", "name": "F", "size": 1})], {"raw": b"x"}, {"raw": b"x"}),
        ([("key", "string")], {"key": "b"}, {"key": Letter.B}),
        (
            [("at", {"type": "long", "logicalType": "timestamp-millis"})],
            {"at": 1000},
            {"at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
        ),
        (
            [("more", {"type": "array", "items": "int"}), ("id", "float")],
            {"more": [1], "id": 1},
            {"id": 1.0},
        ),
    ],
)
def test_what_others_wrote(fields: list[Any], datum: Any, seen: dict[str, Any]) -> None:
    schema, data = wrote(record(*fields), datum)
    value = Avro(Seen).reader(schema)(data, 0)
    assert value == Seen(**seen, fresh=value.fresh)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ([("id", "string")], "Seen.id: string does not fit double"),
        ([("at", "long")], "Seen.at"),
        ([("raw", "long")], "Seen.raw: long does not fit bytes"),
        ([("key", {"type": "array", "items": "string"})], "Seen.key"),
    ],
)
def test_what_does_not_resolve(fields: list[Any], why: str) -> None:
    schema = SchemaText(json.dumps(record(*fields)), "AVRO")
    with pytest.raises(InvalidDataError, match=why):
        Avro(Seen).reader(schema)


def test_what_does_not_resolve_by_name_or_for_want_of_a_default() -> None:
    other = SchemaText(json.dumps(record(name="com.shop.Other")), "AVRO")
    with pytest.raises(InvalidDataError, match=r"written as com\.shop\.Other, not Seen"):
        Avro(Seen).reader(other)
    Avro(Seen, aliases=["Other"]).reader(other)
    Avro(Seen, name="org.Other").reader(other)
    with pytest.raises(InvalidDataError, match=r"Card\.number is not there"):
        Avro(Card).reader(SchemaText(json.dumps(record(name="Card")), "AVRO"))
    with pytest.raises(InvalidDataError, match="no Avro schema"):
        Avro(Card).reader(SchemaText("{", "AVRO"))


def test_an_unknown_symbol_is_no_other_symbol() -> None:
    kind = {"type": "enum", "name": "Letter", "symbols": ["a", "z"]}
    schema, data = wrote(record(("key", kind)), {"key": "z"})
    with pytest.raises(InvalidDataError, match="key"):
        Avro(Seen).reader(schema)(data, 0)


def test_a_schema_of_ones_own() -> None:
    schema = record(("number", "int"), name="Card")
    avro = Avro(Card, schema=schema)
    assert json.loads(avro.schema) == schema
    assert avro.decode(avro.encode(Card(number=3))) == Card(number=3)
    with pytest.raises(ConfigurationError, match="Card and its schema"):
        Avro(Card, schema=record(("other", "int"), name="Card"))


def test_data_that_is_none() -> None:
    avro = Avro(All)
    whole = avro.encode(All(pay=Cash(number=1), points={"a": Point(1)}))
    for end in range(len(whole)):
        with pytest.raises(InvalidDataError):
            avro.decode(whole[:end])
    with pytest.raises(InvalidDataError, match="1 bytes are left over"):
        avro.decode(whole + b"\0")


def test_random_bytes_raise_one_error_alone() -> None:
    avro = Avro(All)
    dice, decoded = Random(7), 0
    for _ in range(2000):
        try:
            avro.decode(dice.randbytes(30))
        except InvalidDataError:
            continue
        decoded += 1
    assert decoded < 2000


class Registered(SchemaRegistry):
    """One schema, whatever is asked for."""

    def __init__(self, schema: SchemaText) -> None:
        self._only = schema

    def schema(self, schema_id: int) -> SchemaText:
        return self._only


def nested_arrays(levels: int) -> Any:
    made: Any = "int"
    for _ in range(levels):
        made = {"type": "array", "items": made}
    return made


def test_a_schema_of_too_many_levels_is_refused() -> None:
    class Flat(BaseModel):
        other: int = 0

    fields = [{"name": "at", "type": nested_arrays(600)}]
    text = json.dumps({"type": "record", "name": "Flat", "fields": fields})
    with pytest.raises(InvalidDataError):
        Avro(Flat).reader(SchemaText(text, "AVRO"))
    shown = DisplayFormat(Registered(SchemaText(json.dumps(nested_arrays(300)), "AVRO")))
    with pytest.raises(InvalidDataError, match="to be shown"):
        shown.decode(b"\0\0\0\0\1" + b"\2" * 301 + b"\0" * 300)


def test_deep_data_ends_in_an_error_not_in_the_process() -> None:
    class Deep(BaseModel):
        next: "Deep | None" = None

    avro = Avro(Deep)
    with pytest.raises(InvalidDataError, match="RecursionError"):
        avro.decode(b"\x02" * 1_000_000 + b"\x00")
    deep = Deep()
    for _ in range(5000):
        deep = Deep.model_construct(next=deep)
    with pytest.raises(InvalidDataError):
        avro.encode(deep)


def test_schemas_that_refer_to_much_are_judged_in_no_time() -> None:
    """Forty records, each with two of the next: 2 ** 40 ways through it."""
    schema: Any = "long"
    for number in reversed(range(40)):
        fields = [{"name": "a", "type": schema}]
        if number < 39:
            fields.append({"name": "b", "type": f"R{number + 1}"})
        schema = {"type": "record", "name": f"R{number}", "fields": fields}
    with pytest.raises(InvalidDataError, match="written as R0"):
        Avro(Seen).reader(SchemaText(json.dumps(schema), "AVRO"))
    parsed = parsed_schema(SchemaText(json.dumps(schema), "AVRO"))
    with pytest.raises(InvalidDataError, match="EOFError"):
        data_reader(parsed)(b"", 0)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"type":"array","items":' * 2000, "5", "null"])
def test_schemas_that_are_none(text: str) -> None:
    closing = "}" * text.count("{")
    with pytest.raises(InvalidDataError, match="no Avro schema"):
        Avro(Seen).reader(SchemaText(f'{text}"long"{closing}' if closing else text, "AVRO"))


def test_arrays_whose_items_have_no_bytes_are_refused() -> None:
    empty = {"type": "array", "items": record(name="Empty")}
    schema = SchemaText(json.dumps(record(("more", empty))), "AVRO")
    with pytest.raises(InvalidDataError, match="items without bytes"):
        Avro(Seen).reader(schema)
