"""Models of many shapes, and their values: what Avro writes is read back, and fastavro alone reads
the same from the same bytes."""

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from itertools import count
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import fastavro
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from bucketlog import Avro
from bucketlog.schema_registry.codec import SchemaText

_numbers = count()
LONGEST = 2**63


class Suit(Enum):
    HEARTS = "hearts"
    SPADES = "spades"


class Shape(NamedTuple):
    """A type, and values of it."""

    declared: Any
    values: st.SearchStrategy[Any]


PLAIN = [
    Shape(bool, st.booleans()),
    Shape(int, st.integers(-LONGEST, LONGEST - 1)),
    Shape(float, st.floats(allow_nan=False)),
    Shape(str, st.text()),
    Shape(bytes, st.binary()),
    Shape(datetime, st.datetimes(timezones=st.just(UTC))),
    Shape(date, st.dates()),
    Shape(time, st.times()),
    Shape(UUID, st.uuids()),
    Shape(Suit, st.sampled_from(Suit)),
    Shape(
        Annotated[Decimal, Field(max_digits=9, decimal_places=3)],
        st.decimals(-(10**5), 10**5, places=3),
    ),
    Shape(Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
]


def optional(inner: Shape) -> Shape:
    return Shape(inner.declared | None, st.none() | inner.values)


def many(inner: Shape) -> Shape:
    return Shape(list[inner.declared], st.lists(inner.values, max_size=3))  # type: ignore[name-defined]  # made here


def mapped(inner: Shape) -> Shape:
    values = st.dictionaries(st.text(max_size=3), inner.values, max_size=3)
    return Shape(dict[str, inner.declared], values)  # type: ignore[name-defined]  # made here


def model(fields: list[Shape]) -> Shape:
    types: dict[str, Any] = {f"f{at}": (shape.declared, ...) for at, shape in enumerate(fields)}
    cls = create_model(f"Model{next(_numbers)}", **types)
    given_values = {f"f{at}": shape.values for at, shape in enumerate(fields)}
    return Shape(cls, st.builds(cls, **given_values))


def either(fields: list[Shape]) -> Shape:
    """Two models whose fields are alike."""
    one, other = model(fields), model(fields)
    return Shape(one.declared | other.declared, one.values | other.values)


shapes = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        inner.filter(lambda shape: type(None) not in getattr(shape.declared, "__args__", ())).map(
            optional
        ),
        inner.map(many),
        inner.map(mapped),
        st.lists(inner, min_size=1, max_size=4).map(model),
        st.lists(inner, min_size=1, max_size=2).map(either),
    ),
    max_leaves=8,
)
models = st.lists(shapes, min_size=1, max_size=5).map(model)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), shape=models)
def test_what_is_written_is_read_back(data: st.DataObject, shape: Shape) -> None:
    avro: Avro[BaseModel] = Avro(shape.declared)
    schema = fastavro.parse_schema(json.loads(avro.schema))
    for value in data.draw(st.lists(shape.values, min_size=1, max_size=3)):
        written = avro.encode(value)
        back = avro.decode(written)
        assert back == value
        assert type(back) is type(value)
        again = io.BytesIO()
        seen = fastavro.schemaless_reader(io.BytesIO(written), schema, None, True)
        fastavro.schemaless_writer(again, schema, seen)
        assert again.getvalue() == written


class Old(BaseModel):
    kept: int
    dropped: str
    inner: list[Suit] = []


@settings(max_examples=40)
@given(
    old=st.builds(Old, kept=st.integers(-(2**53), 2**53)),
    added=st.lists(shapes, max_size=3),
    default=st.text(),
)
def test_added_fields_get_the_defaults_of_the_class(
    old: Old, added: list[Shape], default: str
) -> None:
    fields: dict[str, Any] = {
        "kept": (float, ...),
        "note": (str, default),
        "inner": (tuple[Suit, ...], ()),
    }
    for at, shape in enumerate(added):
        fields[f"added{at}"] = (shape.declared | None, None)
    new = create_model("Old", **fields)
    writer = SchemaText(Avro(Old).schema, "AVRO")
    seen = Avro(new).reader(writer)(Avro(Old).encode(old), 0)
    wanted = new(kept=float(old.kept), inner=tuple(old.inner))
    assert seen == wanted
