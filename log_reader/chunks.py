"""What is decoded at once: stored batches of one range GET or of several, in the plan's order.

Invariants: the chunks have all batches that were read, in their order. If reading fails, the
batches before the failure come first. A chunk that fails gives the rows before the failure.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_reader.columns import CheckedBatches, to_record_batch
from bucketlog.log_reader.fetch import DECODED_BYTES, cut_runs, decoded

if TYPE_CHECKING:
    from bucketlog.log_reader.options import ReadOptions

CHUNK_BYTES = 1024 * 1024
"""Stored bytes of a chunk. A record batch is never split."""
CHUNK_RECORDS = 32_768
"""Records of a chunk, as the footers count them: well-compressed batches have few bytes."""

Chunk: TypeAlias = tuple[CheckedBatches, ...]


def chunks(
    reads: Generator[CheckedBatches, None, None],
    *,
    most_bytes: int = CHUNK_BYTES,
    most_records: int = CHUNK_RECORDS,
) -> Generator[Chunk, None, None]:
    """Small reads together, and large ones in parts. Closing the generator closes `reads`."""
    parts: list[CheckedBatches] = []
    size = records = 0
    with closing(reads):
        try:
            for read in reads:
                for runs in cut_runs(read.runs, most_bytes, most_records):
                    rows = [row for run in runs for row in run.rows]
                    more_bytes = sum(row.length for row in rows)
                    more_records = sum(row.record_count for row in rows)
                    if parts and (
                        size + more_bytes > most_bytes or records + more_records > most_records
                    ):
                        yield tuple(parts)
                        parts, size, records = [], 0, 0
                    parts.append(read._replace(runs=runs))
                    size, records = size + more_bytes, records + more_records
        except Exception:
            if parts:
                yield tuple(parts)
            raise
    if parts:
        yield tuple(parts)


def decoded_chunk(
    chunk: Chunk, names: Sequence[str], options: "ReadOptions"
) -> Generator[pa.RecordBatch, None, None]:
    """The records as the columns `names`: of all reads together, because each call of the decoder
    costs a millisecond of Python. Raises `UnreadableBatchError`."""
    left: Sequence[CheckedBatches] = chunk
    while left:
        try:
            batch, left = to_record_batch(
                left,
                names,
                max_decompressed_bytes=options.max_decompressed_bytes,
                enough_bytes=DECODED_BYTES,
            )
        except InvalidDataError:
            yield from _decoded_reads(left, names, options)  # which finds the batch
            return
        if batch.num_rows:
            yield batch


def _decoded_reads(
    reads: Sequence[CheckedBatches], names: Sequence[str], options: "ReadOptions"
) -> Generator[pa.RecordBatch, None, None]:
    """Decode one read after another."""
    found = (
        decoded(
            read,
            names,
            max_decompressed_bytes=options.max_decompressed_bytes,
            fail_on_unreadable=options.fail_on_unreadable,
        )
        for read in reads
    )
    return _joined(batch for batches in found for batch in batches)


def _joined(batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
    """Fewer and larger batches: each costs a millisecond of Python on its way into a table."""
    together: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in batches:
            if together and size + batch.nbytes > DECODED_BYTES:
                yield _one(together)
                together, size = [], 0
            together.append(batch)
            size += batch.nbytes
    except Exception:
        if together:
            yield _one(together)
        raise
    if together:
        yield _one(together)


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
