"""Rows per CPU second of an ingest's conversion: JSON values become typed rows of a table.

    python -m benchmarks.table_rows --records 100000 --turns 5

Prints one JSON line for each kind of values on standard output: medians of the turns. Compiled code
and conversions one by one take turns. Reading the log and writing files are not measured here.
`make prove WHAT=freshness` measures them. CPU seconds are those of the one thread that works.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bucketlog.log_format.arrow_building import binary_array, number_array, repeated_text
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.log_reader.tables.rows import RowMaker, RowShape
from localstack.machine import machine

BATCH_RECORDS = 32_768
PLAIN = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("text", pa.string())])
ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)


def numbers(text_bytes: int) -> Callable[[int], dict[str, Any]]:
    return lambda number: {"id": number, "amount": number / 2, "text": "x" * text_bytes}


def order(number: int) -> dict[str, Any]:
    """Return an order with a list, which is converted one by one, and an object that the table
    lacks."""
    return {
        "id": number,
        "at": f"2024-02-29T12:30:{number % 60:02}.25Z",
        "price": f"{number % 1000}.50",
        "tags": ["new", "gift"],
        "customer": {"name": "A", "city": "B"},
    }


CASES = {
    "100 bytes": (PLAIN, numbers(50)),
    "1000 bytes": (PLAIN, numbers(950)),
    "decimals, times and lists": (ORDERS, order),
}


def records_of(values: list[bytes]) -> pa.RecordBatch:
    count = len(values)
    offsets = number_array(np.arange(count, dtype=np.int64))
    columns = {
        "key": binary_array([None] * count),
        "value": binary_array(values),
        "topic": repeated_text("orders", count),
        "partition": number_array(np.zeros(count, np.int32)),
        "offset": offsets,
        "timestamp": offsets.cast(pa.timestamp("us", tz="UTC")),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def rows_per_cpu_s(maker: RowMaker, batches: list[pa.RecordBatch]) -> float:
    began = time.thread_time()
    made: int = sum(maker.rows(batch).rows.num_rows for batch in batches)
    return made / (time.thread_time() - began)


def measured(name: str, records: int, turns: int) -> dict[str, Any]:
    fields, value = CASES[name]
    values = [json.dumps(value(number)).encode() for number in range(records)]
    batches = [
        records_of(values[at : at + BATCH_RECORDS]) for at in range(0, records, BATCH_RECORDS)
    ]
    shape = RowShape(fields)
    makers = {
        "compiled": RowMaker(shape, DecoderChoice(-1)),
        "one_by_one": RowMaker(shape, DecoderChoice(2**60)),
    }
    found: dict[str, list[float]] = {each: [] for each in makers}
    for turn in range(turns + 1):
        for each, maker in makers.items():
            rate = rows_per_cpu_s(maker, batches)
            if turn:  # the first turn compiles, and gets memory
                found[each].append(rate)
    rates = {each: round(statistics.median(turned)) for each, turned in found.items()}
    ratios = [fast / slow for fast, slow in zip(*found.values(), strict=True)]
    return {"values": name, "rows_per_cpu_s": rates, "ratio": round(statistics.median(ratios), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the conversion of JSON values into rows.")
    parser.add_argument("--records", type=int, default=100_000, help="Number of records.")
    parser.add_argument("--turns", type=int, default=5, help="Number of turns for each way.")
    given = parser.parse_args()
    for name in CASES:
        print(json.dumps(measured(name, given.records, given.turns)), flush=True)
    print(json.dumps(machine()))


if __name__ == "__main__":
    main()
