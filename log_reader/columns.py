"""Record batches to the columns of the `bucketlog` source, as Arrow.

Invariant: what `to_record_batch` makes has exactly the Arrow schema that Spark expects for the
declared one (Spark compares only the first batch, and then reads memory by the declared schema).
The Arrow schema is built by hand: `pyspark.sql.pandas.types.to_arrow_schema` changed its arguments
between releases.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bucketlog.log_format.arrow import HEADERS_TYPE, RecordColumns, decode_pieces
from bucketlog.log_format.arrow_building import (
    binary_array,
    flag_array,
    number_array,
    numbers_of,
    repeated_text,
)
from bucketlog.log_format.batch import LOG_APPEND_TIME
from bucketlog.log_format.model import Buffer
from bucketlog.log_reader.decoder_choice import PROCESS
from bucketlog.log_reader.plan import Run

logger = logging.getLogger(__name__)

_ARROW_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS_TYPE,
}


LAST_MS = (2**63 - 1) // 1000
"""The largest timestamp that 64-bit microseconds can hold; the smallest is its negative."""


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(name, _ARROW_TYPES[name]) for name in names])


class CheckedBatches(NamedTuple):
    """Checked batches; `data` begins at byte `position` of the object, which is `key`."""

    key: str
    data: Buffer
    position: int
    runs: Sequence[Run]


def to_record_batch(
    reads: Sequence[CheckedBatches],
    names: Sequence[str],
    *,
    max_decompressed_bytes: int,
    enough_bytes: int,
) -> tuple[pa.RecordBatch, list[CheckedBatches]]:
    """The records of `reads` as the columns `names`, in that order; and what is left of `reads`,
    where `enough_bytes` were decompressed before their end. Raises
    `InvalidDataError` for records that do not follow the format. Timestamps that do not fit
    in microseconds are clamped to the nearest value that fits. A warning counts them.
    """
    pieces = [
        (read.data, [row.position - read.position for run in read.runs for row in run.rows])
        for read in reads
    ]
    runs = [run for read in reads for run in read.runs]
    columns = decode_pieces(
        pieces,
        key="key" in names,
        value="value" in names,
        headers="headers" in names,
        check_crc=False,
        max_decompressed_bytes=max_decompressed_bytes,
        enough_bytes=enough_bytes,
        compiled=PROCESS.compiles(
            sum(row.next_offset - row.base_offset for run in runs for row in run.rows)
        ),
    )
    left: list[CheckedBatches] = []
    if len(columns.rows) < sum(len(run.rows) for run in runs):
        left = _left(reads, len(columns.rows))
        runs, _ = _divided(runs, len(columns.rows))
    made = {name: _column(name, columns, runs) for name in names}
    batch = pa.RecordBatch.from_arrays(list(made.values()), schema=arrow_schema(names))
    if all(_is_whole(run) for run in runs):
        return batch, left
    per_run = _rows_per_run(runs, columns.rows)
    offsets = numbers_of(columns.offset)
    inside = offsets >= np.repeat([run.start for run in runs], per_run)
    inside &= offsets < np.repeat([run.end for run in runs], per_run)
    return batch.filter(flag_array(inside)), left


def _divided(runs: Sequence[Run], batches: int) -> tuple[list[Run], list[Run]]:
    """The first `batches` of them, and the others."""
    head: list[Run] = []
    left: list[Run] = []
    for run in runs:
        if batches > 0:
            head.append(run._replace(rows=run.rows[:batches]))
        if batches < len(run.rows):
            left.append(run._replace(rows=run.rows[max(batches, 0) :]))
        batches -= len(run.rows)
    return head, left


def _left(reads: Sequence[CheckedBatches], batches: int) -> list[CheckedBatches]:
    """The reads without their first `batches`."""
    found = []
    for read in reads:
        _, left = _divided(read.runs, batches)
        if left:
            found.append(read._replace(runs=left))
        batches = max(0, batches - sum(len(run.rows) for run in read.runs))
    return found


def _is_whole(run: Run) -> bool:
    return run.start <= run.rows[0].base_offset and run.rows[-1].next_offset <= run.end


def _rows_per_run(runs: Sequence[Run], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.cumsum([0, *(len(run.rows) for run in runs[:-1])])
    counts: NDArray[np.int64] = np.add.reduceat(rows, starts)
    return counts


def _column(name: str, columns: RecordColumns, runs: Sequence[Run]) -> pa.Array:
    match name:
        case "key":
            return columns.key
        case "value":
            return columns.value
        case "topic":
            topics = sorted({run.topic for run in runs})
            if len(topics) == 1:
                return repeated_text(topics[0], int(columns.rows.sum()))
            rows = np.array([topics.index(run.topic) for run in runs], np.int32)
            per_record = np.repeat(rows, _rows_per_run(runs, columns.rows))
            names = binary_array([topic.encode() for topic in topics], pa.string())
            return names.take(number_array(per_record))
        case "partition":
            numbers = np.array([run.partition for run in runs], np.int32)
            return number_array(np.repeat(numbers, _rows_per_run(runs, columns.rows)))
        case "offset":
            return columns.offset
        case "timestamp":
            return _microseconds(columns.timestamp, runs)
        case "timestampType":
            kinds = [
                1 if row.attributes & LOG_APPEND_TIME else 0 for run in runs for row in run.rows
            ]
            return number_array(np.repeat(np.array(kinds, np.int32), columns.rows))
        case _:
            return _null_where_empty(columns.headers)


def _microseconds(milliseconds: pa.Array, runs: Sequence[Run]) -> pa.Array:
    given = numbers_of(milliseconds)
    fitting = np.clip(given, -LAST_MS, LAST_MS)
    if cut := int(np.count_nonzero(fitting != given)):
        logger.warning(
            "%d timestamps of %s do not fit in microseconds, and are probably not in milliseconds: "
            "they are clamped to the nearest value that fits",
            cut,
            ", ".join(sorted({f"{run.topic}-{run.partition}" for run in runs})),
        )
    return number_array(fitting * 1000).view(_ARROW_TYPES["timestamp"])


def _null_where_empty(headers: pa.ListArray) -> pa.Array:
    """Spark's Kafka source has null for a record without headers."""
    ends = headers.buffers()[1]
    is_empty = np.diff(np.frombuffer(ends, np.int32)) == 0
    validity = flag_array(~is_empty).buffers()[1]
    buffers = [validity, ends]
    return pa.Array.from_buffers(headers.type, len(headers), buffers, children=[headers.values])
