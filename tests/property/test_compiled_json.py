"""The compiled decoder of JSON doubts a value, or gives what pydantic gives: on valid values in
unusual spellings, and on values that a few bytes made invalid."""

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, Field, NaiveDatetime, TypeAdapter

from bucketlog.client.topic import Topic
from bucketlog.log_format.arrow_building import binary_array
from bucketlog.log_format.json_values.compiled_values import can_compile
from bucketlog.replaying.column import NotPlainError, filled
from bucketlog.replaying.compiled_json import layout_of, parse_objects
from bucketlog.replaying.python_types import column_of
from bucketlog.replaying.typed_table import TypedTable
from tests.rigs.json_texts import moments, reals, strings, tokens, whole, written
from tests.rigs.typed_batches import CHOICES, batch_of, outcome, plainly
from tests.servers.components import Components


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Flat(BaseModel):
    text: str
    number: int
    real: float
    flag: bool
    at: AwareDatetime
    local: NaiveDatetime | None = None
    note: str | None = None
    count: Annotated[int, Field(ge=-5, lt=1000)] = 7
    share: Annotated[float, Field(gt=-10, le=10)] | None = None
    short: Annotated[str, Field(max_length=3)] | None = None
    nullable: bool | None = Field(default=None, alias="is ü")
    required: int | None
    day: date | None = None
    price: Annotated[Decimal, Field(max_digits=9, decimal_places=2)] | None = None
    uid: UUID | None = None
    colour: Colour | None = None
    size: Literal["s", "m"] | None = None
    raw: bytes | None = None


COLUMN = column_of(Flat)
ADAPTER = TypeAdapter(Flat)
PLAIN = {
    "text": '"a"',
    "number": "1",
    "real": "0.5",
    "flag": "true",
    "at": '"2024-02-29T12:30:59.25+01:00"',
    "required": "null",
    "count": "7",
}

FITTING = {
    "text": strings,
    "number": whole,
    "real": reals,
    "flag": st.sampled_from(["true", "false"]),
    "at": moments,
    "local": moments,
    "note": strings,
    "count": whole,
    "share": reals,
    "short": strings,
    "is ü": st.sampled_from(["true", "null"]),
    "required": whole | st.just("null"),
    "day": st.dates().map(lambda day: f'"{day}"'),
    "price": st.decimals(places=2, allow_nan=False, allow_infinity=False).map('"{}"'.format),
    "uid": st.uuids().map('"{}"'.format),
    "colour": st.sampled_from(['"red"', '"blue"', '"green"']),
    "size": st.sampled_from(['"s"', '"m"', '"l"']),
    "raw": strings,
    "other": tokens,
    "tex": tokens,
    "texts": tokens,
}


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Objects that are mostly valid."""
    members = list(PLAIN.items())
    for name in draw(st.lists(st.sampled_from(sorted(FITTING)), max_size=4)):
        value = draw(FITTING[name] if draw(st.integers(0, 4)) else tokens)
        if draw(st.integers(0, 7)):  # else a name may be repeated
            members = [member for member in members if member[0] != name]
        members.append((name, value))
    if draw(st.booleans()):
        members = draw(st.permutations(members))
    if not draw(st.integers(0, 7)):
        members = members[1:]
    return draw(written(members))


@pytest.fixture(scope="module", autouse=True)
def _compiled(components: Components) -> None:
    if not can_compile():
        components.missing("llvmlite", "pip install llvmlite")


def sure_rows(values: list[bytes]) -> list[Any]:
    """The rows of the compiled decoder; None for doubt."""
    layout = layout_of(COLUMN)
    assert layout is not None
    found, doubts = parse_objects(binary_array(values), layout)
    found.validate(full=True)
    return [
        None if is_doubtful else row
        for row, is_doubtful in zip(found.to_pylist(), doubts.to_pylist(), strict=True)
    ]


def expected(value: bytes) -> Any:
    """The row by pydantic; None for an error."""
    try:
        return filled(COLUMN, [ADAPTER.validate_json(value)]).to_pylist()[0]
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return None


def object_of(**fields: str) -> bytes:
    members = (PLAIN | fields).items()
    return ("{" + ",".join(f'"{name}":{value}' for name, value in members) + "}").encode()


@settings(max_examples=400)
@given(st.lists(documents(), min_size=1, max_size=4))
@example([object_of(real="9007199254740993", share="-0")])
@example([object_of(real="123456789.123456789e-7", share="1e-200")])
@example([object_of(at='"2024-02-29T12:30+01:00'), object_of()])
@example([object_of(at='"1900-02-29T00:00Z"')])
@example([object_of(text='"\n"'), object_of(text='"\0"')])
@example([object_of() + b"}", object_of() + object_of(), object_of() + b"\0"])
def test_a_row_is_doubtful_or_what_pydantic_gives(values: list[bytes]) -> None:
    try:
        found = sure_rows(values)
    except NotPlainError:  # a type of Arrow refuses a value: other decoders judge all rows
        found = [None] * len(values)
        event("refused by Arrow")
    for row, value in zip(found, values, strict=True):
        assert row is None or repr(row) == repr(expected(value)), value


@settings(max_examples=100)
@given(st.lists(documents() | st.none(), max_size=4), st.integers(0, 1))
def test_typed_tables_agree(values: list[bytes | None], start: int) -> None:
    batch = batch_of(values).slice(start)
    table = TypedTable(Topic("flat", value=Flat), "flat", None, CHOICES[0])
    assert repr(outcome(table, batch)) == repr(plainly(table, batch))


SURE = [
    object_of(),
    object_of(text=r'"\u00e9\n\"ü€😀"', number="-999999999999999999", real="1e3", flag="false"),
    object_of(real="0.1", share="-1.2345678901234567", count="999", short='"äöü"'),
    object_of(real="1.7976931348623157e-150", required="5", note="null"),
    object_of(
        at='"0002-03-01 00:00:00Z"', local='"9998-12-31T23:59:59.999999"', day='"2024-02-29"'
    ),
    object_of(at='"1969-12-31T23:59:59.000001-00:59"', local='"1970-01-01 00:00:00"'),
    object_of(price='"-12.50"', uid='"6fa459ea-ee8a-3ca4-894e-db77e160355e"', colour='"red"'),
    object_of(size='"m"', raw='"abc"', other='{"a":[1,-2.5e3,{"b":"\\n"},[],{}],"text":null}'),
    b" {" + object_of()[1:-1].replace(b",", b" ,\n").replace(b'":', b'"\t: ') + b" } \r\n",
    f'{{"is ü":true,{object_of().decode()[1:]}'.encode(),
]


def test_a_day_that_does_not_exist_is_for_other_decoders() -> None:
    with pytest.raises(NotPlainError):
        sure_rows([object_of(day='"2023-02-29"')])


@pytest.mark.parametrize("value", SURE)
def test_usual_values_are_not_doubtful(value: bytes) -> None:
    for neighbours in ([value], [object_of(), value, b"{}", value]):
        found = sure_rows(neighbours)
        wanted = [expected(each) for each in neighbours]
        assert wanted[0] is not None
        assert repr(found) == repr(wanted)


def test_texts_of_doubtful_rows_leave_nothing() -> None:
    bad = object_of(text='"long text"', note='"more"')[:-1]
    found = sure_rows([object_of(), bad, object_of(text='"b"', note='"n"'), b"", object_of()])
    assert [row and (row["text"], row["note"]) for row in found] == [
        ("a", None),
        None,
        ("b", "n"),
        None,
        ("a", None),
    ]


def test_many_texts_are_decoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [object_of(number=str(number)) for number in range(50)]
    monkeypatch.setattr("bucketlog.log_format.json_values.compiled_values.TEXT_BYTES_MAX", 2_000)
    assert [row["number"] for row in sure_rows([*values, b"{"])[:-1]] == list(range(50))


class Nested(BaseModel):
    inner: list[int]


@pytest.mark.parametrize("declared", [Nested, dict[str, int]])
def test_other_columns_have_no_layout(declared: Any) -> None:
    assert layout_of(column_of(declared)) is None


def test_moments_are_instants() -> None:
    (row,) = sure_rows([object_of()])
    assert row["at"] == datetime.fromisoformat("2024-02-29T11:30:59.250000+00:00")
