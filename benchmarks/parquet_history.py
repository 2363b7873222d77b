"""The size and CPU time of old segments as Parquet files, beside the batches that clients read.

    python -m benchmarks.parquet_history --records 300000 --turns 3

The records are flights as JSON, in batches of 500 records. Sizes are fractions of the size of the
records without compression. CPU seconds are those of this process per 10^9 such bytes: to compress
the batches of a segment again with zstd, to write records that are in memory as Parquet (zstd), and
to read this file and compress the values as batches again. The last two figures are lower bounds:
they leave out how records are decoded, and how they get their framing. Prints one JSON line.
"""

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bucketlog.demo.flights import FLIGHTS, read_flights
from bucketlog.log_format.batch import HEADER_LENGTH, Codec, read_header
from bucketlog.log_format.compression import compress, decompress
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.log_format.rewriting import recompressed_batch
from localstack.machine import machine

BATCH_RECORDS = 500
ROW_GROUP_RECORDS = 100_000
START_MS = 1_700_000_000_000
GB = 1_000_000_000
STORED = (Codec.NONE, Codec.LZ4, Codec.ZSTD)
COLUMNS = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


def cpu_s(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def records_of(count: int) -> list[DecodedRecord]:
    return [
        DecodedRecord(at, START_MS + at, flight.carrier.encode(), flight.model_dump_json().encode())
        for at, flight in enumerate(read_flights(count))
    ]


def batches_of(records: list[DecodedRecord], codec: Codec) -> list[bytes]:
    starts = range(0, len(records), BATCH_RECORDS)
    return [encode_batch(records[at : at + BATCH_RECORDS], codec=codec) for at in starts]


def payload_of(batch: bytes) -> Buffer:
    return decompress(read_header(batch).codec, memoryview(batch)[HEADER_LENGTH:])


def with_zstd(batches: list[bytes]) -> int:
    """Compress the batches again. Return their size."""
    return sum(
        len(recompressed_batch(read_header(batch), payload_of(batch), Codec.ZSTD))
        for batch in batches
    )


def table_of(records: list[DecodedRecord]) -> pa.Table:
    columns = [
        [record.offset for record in records],
        [record.timestamp for record in records],
        [record.key for record in records],
        [record.value for record in records],
    ]
    arrays = [pa.array(each, kind.type) for each, kind in zip(columns, COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


def as_parquet(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=ROW_GROUP_RECORDS)
    return sink.getvalue()


def from_parquet(file: pa.Buffer, codec: Codec) -> int:
    """Read the file, and compress the values in batches. Return their size."""
    size = 0
    for rows in pq.ParquetFile(pa.BufferReader(file)).iter_batches(BATCH_RECORDS):
        size += len(compress(codec, b"".join(rows.column("value").to_pylist())))
    return size


def measured(count: int, turns: int) -> dict[str, Any]:
    records = records_of(count)
    table = table_of(records)
    stored = {codec: batches_of(records, codec) for codec in STORED}
    raw = sum(map(len, stored[Codec.NONE]))
    parquet = as_parquet(table)
    sizes = {codec.name: sum(map(len, batches)) for codec, batches in stored.items()}
    works: dict[str, Callable[[], Any]] = {
        "lz4 batches to zstd": lambda: with_zstd(stored[Codec.LZ4]),
        "records to Parquet": lambda: as_parquet(table),
        "Parquet to lz4 batches": lambda: from_parquet(parquet, Codec.LZ4),
        "Parquet to zstd batches": lambda: from_parquet(parquet, Codec.ZSTD),
    }
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(turns):
        for name, work in works.items():
            found[name].append(cpu_s(work)[0] / (raw / GB))
    return {
        "records": count,
        "raw_mb": round(raw / 1_000_000),
        "size": {
            **{name: round(size / raw, 3) for name, size in sizes.items()},
            "Parquet": round(parquet.size / raw, 3),
        },
        "cpu_s_per_gb": {name: round(median(each), 2) for name, each in found.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare old segments as Parquet and as batches.")
    parser.add_argument("--records", type=int, default=FLIGHTS, help="Number of records.")
    parser.add_argument("--turns", type=int, default=3, help="Number of turns.")
    given = parser.parse_args()
    print(json.dumps({**measured(given.records, given.turns), "machine": machine()}))


if __name__ == "__main__":
    main()
