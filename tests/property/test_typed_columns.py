"""pyarrow's decoder of JSON columns answers as pydantic, on good and bad values."""

import json
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, Field, NaiveDatetime, TypeAdapter

from bucketlog.client.topic import Topic
from bucketlog.replaying.typed_table import TypedTable
from tests.rigs.typed_batches import batch_of, outcome, plainly


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    sku: str = Field(min_length=1, max_length=3)
    count: int = Field(default=7, ge=0)


class Wide(BaseModel):
    text: str
    number: int
    real: Annotated[float, Field(gt=-10, le=10)] | None = None
    flag: bool = True
    at: AwareDatetime | None = None
    local: NaiveDatetime | None = None
    day: date | None = None
    price: Decimal | None = None
    exact: Annotated[Decimal, Field(max_digits=5, decimal_places=2)] | None = None
    uid: UUID | None = None
    colour: Colour | None = None
    size: Literal["s", "m"] | None = None
    raw: bytes | None = None
    named: int | None = Field(default=None, alias="Named")
    inner: Inner | None = None
    lines: list[Inner] | None = None
    marks: list[int | None] = []


TABLE = TypedTable(Topic("wide", value=Wide), "flat", None)

digits = st.integers(0, 99).map("{:02}".format)
moments = st.builds(
    lambda day, middle, hour, minute, rest, zone: f"{day}{middle}{hour}:{minute}{rest}{zone}",
    st.one_of(
        st.dates().map(str),
        st.sampled_from(["0000-01-01", "0001-01-01", "9999-12-31", "2024-02-30"]),
    ),
    st.sampled_from(["T", " ", "t", "_"]),
    st.one_of(digits, st.sampled_from(["00", "12", "23", "24"])),
    st.one_of(digits, st.sampled_from(["00", "59"])),
    st.sampled_from(["", ":00", ":59.5", ":30.123456", ":30.1234567", ":60", ":"]),
    st.sampled_from(["", "Z", "z", "+00:00", "-0530", "+23:59", "+24:00", "+12:60", "+1"]),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=4),
    moments,
    st.dates().map(str),
    st.uuids().map(str),
    st.uuids().map(lambda uid: uid.hex),
    st.decimals(places=2, min_value=-2000, max_value=2000, allow_nan=False).map(str),
    st.sampled_from(["1e5", "-0", "00.5", "1.", ".5", "NaN", "red", "s", "12", "2024-01-01", "é"]),
)
fitting: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(max_size=5),
    "number": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(-12, 11),
    "flag": st.booleans(),
    "at": st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()) | moments,
    "local": st.datetimes().map(lambda at: at.isoformat()) | moments,
    "day": st.dates().map(str),
    "price": st.decimals(places=3, allow_nan=False, allow_infinity=False).map(str),
    "exact": st.decimals(places=2, min_value=-2000, max_value=2000).map(str),
    "uid": st.uuids().map(str),
    "colour": st.sampled_from(["red", "blue", "green"]),
    "size": st.sampled_from(["s", "m", "l"]),
    "raw": st.text(max_size=3),
    "Named": st.integers(0, 5),
    "inner": st.fixed_dictionaries(
        {}, optional={"sku": st.text(max_size=4), "count": st.integers(-1, 5) | st.none()}
    ),
    "lines": st.lists(
        st.fixed_dictionaries({"sku": st.text(min_size=1, max_size=3), "count": st.integers(0, 5)}),
        max_size=2,
    ),
    "marks": st.lists(st.none() | st.integers(), max_size=3),
}


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """JSON objects that are mostly valid."""
    wanted = draw(st.sets(st.sampled_from(sorted(fitting)))) | {"text", "number", "flag", "marks"}
    value = {name: draw(fitting[name]) for name in sorted(wanted)}
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from([*fitting, "other"]))
        value[name] = draw(st.one_of(scalars, st.lists(scalars, max_size=2)))
    if draw(st.integers(0, 9)) == 0:
        value.pop(draw(st.sampled_from(sorted(value))))
    spaces = draw(st.sampled_from([None, 1]))
    return json.dumps(value, indent=spaces, ensure_ascii=draw(st.booleans())).encode(
        errors="replace"
    )


EDGES: dict[str, list[Any]] = {
    "uid": ["6fa459ea-ee8a-3ca4-894e-db77e160355e", "6FA459EAEE8A3CA4894EDB77E160355E", "{}", ""],
    "real": [-10, -9.5, 10, 10.5, "1", True, -0.0, 0],
    "flag": [True, "yes", 1, None],
    "at": ["2024-01-01T00:00Z", "2024-01-01T00Z", "2024-01-01T00:00:00+24:00", "2024-01-01", 5],
    "local": ["2024-01-01T00:00", "2024-01-01T00", "2024-01-01", "2024-01-01T00:00Z"],
    "day": ["2024-01-01", "0000-01-01", "0001-01-01", "2024-1-1", "2024-01-01T00:00"],
    "price": ["1.5", "+1", " 1", "1_0", "NaN", "1e3", "0.0000000000000000001", 5],
    "exact": ["123.45", "123.4", "1234", "1.234", "0123.45"],
    "colour": ["red", "green", 1],
    "size": ["s", "l"],
    "inner": [
        {},
        {"sku": ""},
        {"sku": "abcd"},
        {"sku": "\U0001f600" * 3},
        {"sku": "a", "count": -1},
    ],
    "lines": [[{"sku": "a"}], [{"sku": "a", "count": -1}], [None], "a"],
    "marks": [[1, None], None, [1.0], [True]],
    "number": [2**63, 1.0, 1.5, "1", True, None],
    "text": [None, 1],
}
HOSTILE = [
    b"",
    b"null",
    b"{}",
    b"[]",
    b'{"text":"a","number":1,"flag":true,"marks":[]}{"text":"b","number":2,"flag":true,"marks":[]}',
    b'{"text":"a","number":1',
    b'"number":1,"flag":true,"marks":[]}',
    b'{"text":"\n","number":1,"flag":true,"marks":[]}',
    b'{"text":"\xff","number":1,"flag":true,"marks":[]}',
    b'{"text":"a","text":"b","number":1,"flag":true,"marks":[]}',
    b'{"text":"a","number":01,"flag":true,"marks":[]}',
    b'{"text":"a","number":1,"flag":true,"marks":[]}\0',
    b' {"text":"a","number":1,"flag":true,"marks":[]}\n',
    b'{"text":"\\ud800","number":1,"flag":true,"marks":[]}',
]
hostile = st.sampled_from(HOSTILE)
values = st.lists(objects() | st.none() | objects() | objects() | hostile, max_size=6)


@given(values)
def test_both_decoders_agree(given_values: list[bytes | None]) -> None:
    batch = batch_of(given_values)
    assert repr(outcome(TABLE, batch)) == repr(plainly(TABLE, batch))


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_values_beside_good_ones(bad: bytes) -> None:
    good = b'{"text":"good","number":1,"flag":true,"marks":[]}'
    for neighbours in (
        [good, bad, good],
        [bad, b'"number":1,"flag":true,"marks":[]}'],
        [bad, b"", good],
    ):
        batch = batch_of([*neighbours])
        assert repr(outcome(TABLE, batch)) == repr(plainly(TABLE, batch))


@pytest.mark.parametrize("name", EDGES)
def test_edges_of_each_type(name: str) -> None:
    good: dict[str, Any] = {"text": "good", "number": 1, "flag": True, "marks": []}
    for value in EDGES[name]:
        stored = [json.dumps(good), json.dumps(good | {name: value})]
        batch = batch_of([each.encode() for each in stored])
        assert repr(outcome(TABLE, batch)) == repr(plainly(TABLE, batch)), value


@given(st.lists(objects(), min_size=1, max_size=4))
def test_rows_are_what_pydantic_reads(given_values: list[bytes]) -> None:
    adapter = TypeAdapter(Wide)
    readable = []
    for value in given_values:
        try:
            readable.append((value, adapter.validate_json(value)))
        except ValueError:
            continue
    found = outcome(TABLE, batch_of([value for value, _ in readable]))
    if isinstance(found, str):  # a number, a price or a moment that fits no column
        assert "does not fit its column" in found
        return
    for row, (_, model) in zip(found, readable, strict=True):
        assert row["text"] == model.text
        assert row["number"] == model.number
        assert row["price"] == model.price
        assert row["at"] == model.at
        assert row["named"] == model.named
        assert row["inner"] == (None if model.inner is None else model.inner.model_dump())
        assert row["marks"] == model.marks


def test_the_fast_decoder_is_used() -> None:
    value = Wide(text="a", number=1, at=datetime.fromisoformat("2024-01-01T00:00:00+02:00"))
    value.inner = Inner(sku="x")
    stored = value.model_dump_json(by_alias=True).encode()
    table = TypedTable(Topic("wide", value=Wide), "flat", None)

    def fail(data: bytes) -> Any:
        raise AssertionError(data)

    table._value = replace(table._value, decode=fail)
    rows = table.typed(batch_of([stored, None, stored])).to_pylist()
    assert [row["inner"] for row in rows] == [
        {"sku": "x", "count": 7},
        None,
        {"sku": "x", "count": 7},
    ]
    assert rows[0]["at"].utcoffset() == timedelta(0)
