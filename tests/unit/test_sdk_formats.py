"""Values to bytes and back, and what is refused before it is sent."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel, Field

from bucketlog.client.formats import format_of
from bucketlog.client.topic import Record, Topic
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError


class Order(BaseModel):
    id: str
    amount: float
    placed: datetime | None = None
    from_: str | None = Field(None, alias="from")


class Stranger(BaseModel):
    name: str


@dataclass
class Point:
    x: int
    y: int


@pytest.mark.parametrize(
    ("declared", "value", "data"),
    [
        (bytes, b"\x00\xff", b"\x00\xff"),
        (str, "Zürich", "Zürich".encode()),
        (int, 7, b"7"),
        (list[int], [1, 2], b"[1,2]"),
        (Point, Point(1, 2), b'{"x":1,"y":2}'),
        (
            Order,
            Order.model_validate(
                {"id": "1", "amount": 9.5, "placed": datetime(2026, 1, 2, tzinfo=UTC), "from": "eu"}
            ),
            b'{"id":"1","amount":9.5,"placed":"2026-01-02T00:00:00Z","from":"eu"}',
        ),
    ],
)
def test_both_ways(declared: object, value: object, data: bytes) -> None:
    chosen = format_of(declared)
    assert chosen.encode(value) == data
    assert chosen.decode(data) == value


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (bytes, "text"),
        (bytes, bytearray(b"x")),
        (str, b"bytes"),
        (Order, Stranger(name="x")),
        (int, "7"),
    ],
)
def test_another_type_is_refused(declared: object, value: object) -> None:
    with pytest.raises(InvalidDataError) as caught:
        format_of(declared).encode(value)
    assert type(value).__name__ in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("declared", "data", "named"),
    [
        (str, b"\xff", "UTF-8"),
        (Order, b"{", "JSON"),
        (Order, b'{"id":"1"}', "amount"),
        (Order, b"", "Order"),
    ],
)
def test_bytes_that_do_not_decode(declared: object, data: bytes, named: str) -> None:
    with pytest.raises(InvalidDataError, match=named):
        format_of(declared).decode(data)


def test_a_format_of_ones_own() -> None:
    class Reversed:
        name = "reversed"

        def encode(self, value: str) -> bytes:
            return value[::-1].encode()

        def decode(self, data: bytes) -> str:
            return data.decode()[::-1]

    topic = Topic("t", value=Reversed())
    assert topic.value_format.encode("abc") == b"cba"


def test_a_type_without_a_schema_is_refused() -> None:
    class Opaque:
        pass

    with pytest.raises(ConfigurationError, match="Opaque"):
        Topic("t", value=Opaque)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250])
def test_topic_names_are_kafkas(name: str) -> None:
    with pytest.raises(ConfigurationError):
        Topic(name)


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249])
def test_legal_topic_names(name: str) -> None:
    assert Topic(name).name == name


def test_types_flow() -> None:
    """Checked by mypy: the annotations are the test."""
    plain: Topic[bytes, bytes] = Topic("t")
    keyed: Topic[str, bytes] = Topic("t", key=str)
    orders: Topic[bytes, Order] = Topic("t", value=Order)
    both: Topic[str, Order] = Topic("t", value=Order, key=str)
    record: Record[str, Order] = Record("t", 0, 5, -1, "k", Order(id="1", amount=1))
    assert record.value.amount == 1
    assert {plain.name, keyed.name, orders.name, both.name} == {"t"}


def test_a_tombstone_has_no_value() -> None:
    record: Record[bytes, bytes] = Record("t", 2, 7, -1, b"k", None, is_tombstone=True)
    with pytest.raises(InvalidDataError, match=r"t\[2\]@7"):
        _ = record.value


def test_json_null_is_a_value() -> None:
    record: Record[bytes, None] = Record("t", 0, 0, -1, None, None)
    assert record.value is None


def test_a_union_is_a_type_too() -> None:
    maybe: Topic[bytes, int | None] = Topic("maybe", value=int | None)
    keyed: Topic[str, int | str] = Topic("maybe", value=int | str, key=str)
    assert [maybe.value_format.decode(maybe.value_format.encode(at)) for at in (1, None)] == [
        1,
        None,
    ]
    assert keyed.value_format.decode(b'"x"') == "x"
