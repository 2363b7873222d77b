"""Rows per CPU second of a typed replay's last step: stored values become typed columns.

    python -m benchmarks.typed_columns --records 200000 --turns 5

One JSON line for each format on standard output: the median of the turns. All formats have the same
four fields: text, a float, an integer and a moment (Protobuf: as text). Reading the bucket and
decoding record batches is not part of it (`benchmarks.decode`). The schema registry is a stand-in
in this process. CPU seconds are those of the one thread that works.
"""

import argparse
import json
import statistics
import struct
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import AwareDatetime, BaseModel

import bucketlog
from benchmarks.sdk import reading_message
from bucketlog.log_format.arrow_building import binary_array, number_array
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.replaying.typed_table import TypedTable
from bucketlog.schema_registry.codec import SchemaText
from localstack.machine import machine

SCHEMA_ID = 7
BATCH_RECORDS = 32_768
START = datetime(2024, 1, 1, tzinfo=UTC)


class Order(BaseModel):
    id: str
    amount: float
    count: int
    at: AwareDatetime


class JsonRegistry(bucketlog.SchemaRegistry):
    """A registry that has one schema, of JSON."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")

    def schema(self, schema_id: int) -> SchemaText:
        return SchemaText("{}", "JSON")


def batch_of(values: Sequence[bytes]) -> pa.RecordBatch:
    offsets = number_array(np.arange(len(values), dtype=np.int64))
    columns = {
        "partition": number_array(np.zeros(len(values), np.int32)),
        "offset": offsets,
        "timestamp": offsets.cast(pa.timestamp("us", tz="UTC")),
        "key": binary_array(values),
        "value": binary_array(values),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


COMPILED, PLAIN = DecoderChoice(-1), DecoderChoice(2**60)
"""A process that replays many records, and one that replays a few."""


def cases(records: int) -> dict[str, tuple[Any, list[bytes], DecoderChoice]]:
    """The declared value and the stored values of each format."""
    orders = [
        Order(
            id=f"{number:08d}",
            amount=number % 10_000 / 7,
            count=number % 9,
            at=START + timedelta(seconds=number),
        )
        for number in range(records)
    ]
    texts = [order.model_dump_json().encode() for order in orders]
    framed = [struct.pack(">bI", 0, SCHEMA_ID) + text for text in texts]
    avro = bucketlog.Avro(Order)
    message = reading_message()
    return {
        "json": (Order, texts, COMPILED),
        "json by pyarrow": (Order, texts, PLAIN),
        "json with a registry": (JsonRegistry().json(Order), framed, COMPILED),
        "avro": (avro, [avro.encode(order) for order in orders], COMPILED),
        "protobuf": (
            bucketlog.Protobuf(type(message)),
            [message.SerializeToString() for _ in range(records)],
            COMPILED,
        ),
    }


def rows_per_cpu_s(value: Any, stored: Sequence[bytes], choice: DecoderChoice) -> float:
    table = TypedTable(bucketlog.Topic("orders", value=value), "flat", None, choice)
    starts = range(0, len(stored), BATCH_RECORDS)
    batches = [batch_of(stored[at : at + BATCH_RECORDS]) for at in starts]
    table.typed(batches[0].slice(0, 10))
    began = time.thread_time()
    for batch in batches:
        table.typed(batch)
    return len(stored) / (time.thread_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=200_000, help="Number of records.")
    parser.add_argument("--turns", type=int, default=5, help="Number of measurements.")
    args = parser.parse_args()
    found: dict[str, list[float]] = {}
    given = cases(args.records)
    for _ in range(args.turns):
        for name, (value, stored, choice) in given.items():
            found.setdefault(name, []).append(rows_per_cpu_s(value, stored, choice))
    for name, turns in found.items():
        figure = round(statistics.median(turns))
        print(json.dumps({"format": name, "rows_per_cpu_s": figure, "records": args.records}))
    print(json.dumps(machine()))


if __name__ == "__main__":
    main()
