"""Whole records of an export, as JSON lines or as rows of Parquet.

Invariants: JSON lines are those of `bucketlog replay`, and rows of Parquet have the schema of a
replay. A record whose bytes and headers alone are larger than an export is not decoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.client.lines import to_json_line
from bucketlog.client.topic import Record
from bucketlog.log_format.batch import LOG_APPEND_TIME, BatchHeader
from bucketlog.log_format.records import Header, RecordSpans, decode_headers

HEADER_BYTES = 128
"""The approximate memory of a header besides its bytes. Batches may have millions of headers."""


class ExportedLine(NamedTuple):
    """A line of JSON, with its line feed."""

    offset: int
    size_bytes: int
    line: bytes


class ExportedRecord(NamedTuple):
    """A row of Parquet. `append_time` is True if the broker set the timestamp."""

    offset: int
    size_bytes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    append_time: bool


@dataclass(frozen=True, slots=True)
class LineMaker:
    """Makes lines of up to `bytes_max`. A larger record is an empty line with its size."""

    topic: str
    partition: int
    bytes_max: int

    def __call__(self, batch: BatchHeader, payload: bytes, record: RecordSpans) -> ExportedLine:
        size_bytes = stored_bytes(record)
        if size_bytes > self.bytes_max:
            return ExportedLine(record.offset, size_bytes, b"")
        value = _cut(payload, record.value)
        text = to_json_line(
            Record(
                self.topic,
                self.partition,
                record.offset,
                record.timestamp,
                _cut(payload, record.key),
                value,
                _headers(payload, record),
                is_tombstone=value is None,
            )
        )
        line = f"{text}\n".encode()
        return ExportedLine(record.offset, len(line), line)


@dataclass(frozen=True, slots=True)
class ParquetRowMaker:
    """Makes rows of up to `bytes_max`. A larger record is an empty row with its size."""

    bytes_max: int

    def __call__(self, batch: BatchHeader, payload: bytes, record: RecordSpans) -> ExportedRecord:
        size_bytes = stored_bytes(record)
        append_time = bool(batch.attributes & LOG_APPEND_TIME)
        if size_bytes > self.bytes_max:
            return ExportedRecord(
                record.offset, size_bytes, record.timestamp, None, None, (), append_time
            )
        return ExportedRecord(
            record.offset,
            size_bytes,
            record.timestamp,
            _cut(payload, record.key),
            _cut(payload, record.value),
            _headers(payload, record),
            append_time,
        )


def stored_bytes(record: RecordSpans) -> int:
    """The size of key, value and headers, with `HEADER_BYTES` for each header."""
    spans = (record.key, record.value, record.headers)
    size = sum(end - begin for begin, end in (span for span in spans if span is not None))
    return size + HEADER_BYTES * record.header_count


def _headers(payload: bytes, record: RecordSpans) -> tuple[Header, ...]:
    return decode_headers(payload, record, headers_max=record.header_count)


def _cut(payload: bytes, span: tuple[int, int] | None) -> bytes | None:
    return None if span is None else payload[span[0] : span[1]]


def parquet_bytes(topic: str, partition: int, rows: Sequence[ExportedRecord]) -> memoryview:
    """A Parquet file with the columns of `bucketlog replay`, including topic and partition."""
    import pyarrow as pa

    from bucketlog.log_reader.columns import LAST_MS, arrow_schema
    from bucketlog.log_reader.parquet_writing import (
        COLUMNS,
        HEADERS,
        ParquetSettings,
        encoded_file,
    )

    columns = {
        "key": [row.key for row in rows],
        "value": [row.value for row in rows],
        "topic": [topic] * len(rows),
        "partition": [partition] * len(rows),
        "offset": [row.offset for row in rows],
        "timestamp": [1_000 * max(-LAST_MS, min(row.timestamp_ms, LAST_MS)) for row in rows],
        "timestampType": [int(row.append_time) for row in rows],
        HEADERS: [list(row.headers) or None for row in rows],
    }
    table = pa.Table.from_pydict(columns, schema=arrow_schema((*COLUMNS, HEADERS)))
    return encoded_file(table, ParquetSettings(partition_by=()))
