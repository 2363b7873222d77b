"""Avro schemas of Python types."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal
from uuid import uuid4

import fastavro
import pytest
from pydantic import AliasChoices, AliasPath, AnyUrl, BaseModel, Field, NaiveDatetime

from bucketlog import Avro
from bucketlog.client.schemas.avro_types import derive
from bucketlog.log_format.errors import ConfigurationError


class Letter(Enum):
    A = "a"
    B = "b"


class Phrase(Enum):
    ONE = "one word"
    TWO = "two words"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


def own_type(declared: Any) -> Any:
    class Holder(BaseModel):
        field: declared

    return derive(Holder).schema["fields"][0]["type"]


@pytest.mark.parametrize(
    ("declared", "schema"),
    [
        (bool, "boolean"),
        (int, "long"),
        (float, "double"),
        (datetime, {"type": "long", "logicalType": "timestamp-micros"}),
        (NaiveDatetime, {"type": "long", "logicalType": "local-timestamp-micros"}),
        (Decimal, "string"),
        (
            Annotated[Decimal, Field(max_digits=9, decimal_places=2)],
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        ),
        (Letter, {"type": "enum", "name": "Letter", "symbols": ["a", "b"]}),
        (Phrase, "string"),
        (Level, "long"),
        (Literal["x", "y"], "string"),
        (Literal["x", None], ["string", "null"]),
        (int | None, ["long", "null"]),
        (Literal["x"] | str, "string"),
        (set[str], {"type": "array", "items": "string"}),
        (tuple[int, ...], {"type": "array", "items": "long"}),
        (dict[str, list[int]], {"type": "map", "values": {"type": "array", "items": "long"}}),
        (timedelta, "string"),
        (AnyUrl, "string"),
    ],
)
def test_types(declared: Any, schema: Any) -> None:
    assert own_type(declared) == schema


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (Any, "no Avro type"),
        (list, "no Avro type"),
        (tuple[int, str], "no Avro type"),
        (dict[int, str], "text as keys"),
        (list[int] | set[str], "union"),
        (Decimal | str, "union of Decimal and str"),
        (datetime | NaiveDatetime, "union"),
        (Level | int, "union of Level and int"),
        (Annotated[Decimal, Field(max_digits=9, decimal_places=2)] | bytes, "union"),
    ],
)
def test_types_without_a_schema(declared: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        own_type(declared)
    assert caught.value.remedy


class Fields(BaseModel):
    fresh: str = Field(default_factory=lambda: str(uuid4()))
    found: str = Field("x", validation_alias=AliasChoices("found", "formerly"))
    from_: int | None = Field(None, alias="from")
    level: Level = Level.LOW
    point: Point = Point(1)
    letters: set[Letter] = {Letter.B, Letter.A}
    price: Decimal = Field(Decimal("1.5"), max_digits=5, decimal_places=2)
    at: datetime = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_defaults_and_names() -> None:
    schema = derive(Fields, "com.shop.Fields", ["Old"]).schema
    assert (schema["name"], schema["aliases"]) == ("com.shop.Fields", ["Old"])
    fields = {one["name"]: one for one in schema["fields"]}
    assert "default" not in fields["fresh"]  # it differs each time
    assert fields["found"]["aliases"] == ["formerly"]
    assert fields["from"]["type"] == ["null", "long"]
    assert fields["from"]["default"] is None
    assert fields["level"]["default"] == 1
    assert fields["point"]["default"] == {"x": 1, "y": 0}
    assert fields["letters"]["default"] == ["a", "b"]
    assert fields["price"]["default"] == "\x00\x96"
    assert fields["at"]["default"] == 1_000_000
    assert fields["point"]["type"]["name"] == "com.shop.Point"
    fastavro.parse_schema(schema)


def test_what_no_schema_can_say() -> None:
    class Odd(BaseModel):
        e_mail: str = Field(alias="e-mail")

    class Deep(BaseModel):
        name: str = Field(validation_alias=AliasPath("a", "b"))

    class Wrong(BaseModel):
        number: int = "x"  # type: ignore[assignment]  # that is the point

    class Unread(BaseModel):
        name: str = Field(serialization_alias="other", validation_alias="one")

    for cls, named in ((Odd, "e-mail"), (Deep, "path"), (Wrong, "number"), (Unread, "'other'")):
        with pytest.raises(ConfigurationError, match=named):
            Avro(cls)
    with pytest.raises(ConfigurationError, match="Avro name"):
        Avro(Point, name="com..1x")
    with pytest.raises(ConfigurationError, match="not a record"):
        Avro(str, aliases=["x"])


def test_two_classes_of_one_name() -> None:
    def make() -> Any:
        class Inner(BaseModel):
            x: int

        return Inner

    class Outer(BaseModel):
        one: make()  # type: ignore[valid-type]  # a class of its own each time
        two: make()  # type: ignore[valid-type]  # a class of its own each time

    with pytest.raises(ConfigurationError, match="two classes are named Inner"):
        Avro(Outer)
