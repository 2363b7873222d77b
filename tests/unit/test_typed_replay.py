"""A replay of a typed topic is a table with the columns of its type."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pydantic import BaseModel, field_validator

import bucketlog
from bucketlog.client.formats import Format
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.models import order_messages
from tests.rigs.written_log import START_MS, WrittenLog

Stored = Callable[[Sequence[bytes | None]], str]


class Line(BaseModel):
    sku: str
    count: int = 1


class Order(BaseModel):
    id: str
    amount: float
    at: datetime | None = None
    lines: list[Line] = []


ORDERS = bucketlog.Topic("orders", value=Order, key=str)
JSON = [
    b'{"id":"a","amount":1.5,"at":"2024-01-01T00:00:00Z","lines":[{"sku":"x","count":2}]}',
    None,
    b'{"amount":2,"id":"b","more":[1]}',
]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """Writes values into topic `orders`; returns the bucket's URL."""

    def write(values: Sequence[bytes | None]) -> str:
        folder = tmp_path / f"bucket-{len(list(tmp_path.iterdir()))}"
        bucket = FileBucket(folder / "0")
        log = WrittenLog(bucket)
        log.create_topic("orders", 1)
        log.append(
            "orders",
            0,
            [
                DecodedRecord(0, START_MS + at, b"k%d" % at, value)
                for at, value in enumerate(values)
            ],
        )
        log.flush()
        bucket.close()
        return f"file://{folder}"

    return write


def test_the_fields_are_columns(stored: Stored) -> None:
    table = bucketlog.replay(stored(JSON), ORDERS).to_arrow()
    line = pa.struct([("sku", pa.string()), ("count", pa.int64())])
    assert table.schema.equals(
        pa.schema(
            [
                ("_partition", pa.int32()),
                ("_offset", pa.int64()),
                ("_timestamp", pa.timestamp("us", tz="UTC")),
                ("_key", pa.string()),
                ("id", pa.string()),
                ("amount", pa.float64()),
                ("at", pa.timestamp("us", tz="UTC")),
                ("lines", pa.list_(line)),
            ]
        )
    )
    assert table.select(["_offset", "_key", "id", "amount", "lines"]).to_pylist() == [
        {"_offset": 0, "_key": "k0", "id": "a", "amount": 1.5, "lines": [{"sku": "x", "count": 2}]},
        {"_offset": 1, "_key": "k1", "id": None, "amount": None, "lines": None},
        {"_offset": 2, "_key": "k2", "id": "b", "amount": 2.0, "lines": []},
    ]
    assert table["at"].to_pylist() == [datetime(2024, 1, 1, tzinfo=UTC), None, None]


def test_a_struct_instead_of_columns(stored: Stored) -> None:
    replay = bucketlog.replay(stored(JSON), ORDERS, layout="struct")
    assert replay.schema.names == ["_partition", "_offset", "_timestamp", "_key", "value"]
    values = replay.to_arrow()["value"].to_pylist()
    assert (values[0]["id"], values[1], values[2]["amount"]) == ("a", None, 2.0)


def test_chosen_columns(stored: Stored) -> None:
    url = stored(JSON)
    replay = bucketlog.replay(url, ORDERS, columns=["amount", "_tombstone", "_topic"])
    assert replay.to_arrow().to_pylist() == [
        {"amount": 1.5, "_tombstone": False, "_topic": "orders"},
        {"amount": None, "_tombstone": True, "_topic": "orders"},
        {"amount": 2.0, "_tombstone": False, "_topic": "orders"},
    ]
    with pytest.raises(ConfigurationError, match="no column 'price'"):
        bucketlog.replay(url, ORDERS, columns=["price"])
    with pytest.raises(ConfigurationError, match="to_parquet with columns"):
        replay.to_parquet("nowhere")


def test_polars_pandas_and_duckdb(stored: Stored) -> None:
    replay = bucketlog.replay(stored(JSON), ORDERS)
    frame = replay.to_polars()
    assert frame.schema["at"] == pl.Datetime("us", "UTC")
    assert frame["amount"].to_list() == [1.5, None, 2.0]
    assert pl.DataFrame(replay).equals(frame)  # by __arrow_c_stream__
    assert replay.to_pandas()["amount"].tolist()[::2] == [1.5, 2.0]
    assert pd.api.types.is_datetime64_any_dtype(replay.to_pandas()["at"])
    relation = replay.to_duckdb(duckdb.connect())
    assert relation.aggregate("count(*), sum(amount)").fetchall() == [(3, 3.5)]
    assert relation.filter("amount > 1.7").project("id").fetchall() == [("b",)]  # read again


def test_a_value_that_does_not_decode_is_named(stored: Stored) -> None:
    url = stored([*JSON, b'{"id":"c","amount":"much"}'])
    with pytest.raises(InvalidDataError, match=r"value of the record at orders\[0\]@3: .*amount"):
        bucketlog.replay(url, ORDERS).to_arrow()
    url = stored([b'{"id":"c","amount":1,"at":"2024-01-01T00:00:00"}'])
    with pytest.raises(InvalidDataError, match=r"orders\[0\]@0: .*no time zone.*NaiveDatetime"):
        bucketlog.replay(url, ORDERS).to_arrow()


def test_validators_run(stored: Stored) -> None:
    class Shouted(BaseModel):
        id: str

        @field_validator("id")
        @classmethod
        def shout(cls, value: str) -> str:
            return value.upper()

    topic = bucketlog.Topic("orders", value=Shouted)
    table = bucketlog.replay(stored(JSON), topic, columns=["id"]).to_arrow()
    assert table["id"].to_pylist() == ["A", None, "B"]


def test_text_keys_and_plain_values(stored: Stored) -> None:
    topic = bucketlog.Topic("orders", key=str)
    table = bucketlog.replay(stored([b"\x00\xff", None]), topic, columns=["_key", "value"])
    assert table.to_arrow().to_pylist() == [
        {"_key": "k0", "value": b"\x00\xff"},
        {"_key": "k1", "value": None},
    ]
    numbers = bucketlog.Topic("orders", value=int)
    found = bucketlog.replay(stored([b"7", b"-1"]), numbers, columns=["value"]).to_arrow()
    assert found["value"].to_pylist() == [7, -1]


def test_avro(stored: Stored) -> None:
    chosen = bucketlog.Avro(Order)
    topic = bucketlog.Topic("orders", value=chosen)
    order = Order(id="a", amount=1.5, at=datetime(2024, 1, 1, tzinfo=UTC), lines=[Line(sku="x")])
    table = bucketlog.replay(stored([chosen.encode(order), None]), topic).to_arrow()
    assert table["id"].to_pylist() == ["a", None]
    assert table["lines"].to_pylist() == [[{"sku": "x", "count": 1}], None]
    assert table["at"].to_pylist() == [order.at, None]


def test_protobuf(stored: Stored) -> None:
    chosen = bucketlog.Protobuf(order_messages.Order)
    message = order_messages.Order(id="a", total=order_messages.Money(cents=5))
    message.lines.add(sku="x")
    empty = order_messages.Order()
    topic = bucketlog.Topic("orders", value=chosen)
    url = stored([chosen.encode(message), None, chosen.encode(empty)])
    table = bucketlog.replay(url, topic).to_arrow()
    assert table["id"].to_pylist() == ["a", None, ""]
    assert table["total"].to_pylist() == [{"cents": 5}, None, None]
    assert [row and row[0]["sku"] for row in table["lines"].to_pylist()] == ["x", None, []]


def test_a_field_with_the_name_of_another_column() -> None:
    @dataclass
    class Odd:
        _offset: int

    topic = bucketlog.Topic("orders", value=Odd)
    with pytest.raises(ConfigurationError, match=r"_offset .* has the name of another column"):
        bucketlog.replay("file:///nowhere", topic, columns=["_offset"])
    assert bucketlog.replay("file:///nowhere", topic, layout="struct").schema.names[-1] == "value"


def test_a_format_without_a_declared_type(stored: Stored) -> None:
    class Reversed:
        name = "reversed"

        def encode(self, value: bytes) -> bytes:
            return value[::-1]

        def decode(self, data: bytes) -> bytes:
            return data[::-1]

    chosen: Format[bytes] = Reversed()
    replay = bucketlog.replay(stored([b"ab"]), bucketlog.Topic("orders", value=chosen))
    assert [record.value for record in replay] == [b"ba"]
    with pytest.raises(ConfigurationError, match=r"format 'reversed' .* has no columns"):
        replay.to_arrow()


def test_a_type_that_contains_itself() -> None:
    class Tree(BaseModel):
        branches: "list[Tree]"

    Tree.model_rebuild(_types_namespace={"Tree": Tree})
    topic: bucketlog.Topic[bytes, Any] = bucketlog.Topic("orders", value=Tree)
    with pytest.raises(ConfigurationError, match="contains itself"):
        bucketlog.replay("file:///nowhere", topic, layout="struct")


def test_a_few_records_import_neither_numba_nor_pandas(stored: Stored) -> None:
    code = f"""
import sys, bucketlog
from pydantic import BaseModel

class Order(BaseModel):
    id: str
    amount: float

replay = bucketlog.replay({stored(JSON)!r}, bucketlog.Topic("orders", value=Order, key=str))
assert sum(batch.num_rows for batch in replay.batches()) == 3
assert [record.offset for record in replay] == [0, 1, 2]
unused = "aiobotocore boto3 confluent_kafka duckdb fastavro llvmlite numba pandas polars redis rich"
print([name for name in unused.split() if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_numba_is_imported_when_it_pays() -> None:
    choice = DecoderChoice(plain_records_max=10)
    assert [choice.compiles(count) for count in (4, 6, 1, 1)] == [False, False, True, True]
    assert DecoderChoice(plain_records_max=10).compiles(11)
    choice = DecoderChoice(plain_records_max=10)
    choice.expect(10)
    assert not choice.compiles(1)
    choice.expect(10)
    assert choice.compiles(1)
