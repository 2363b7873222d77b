"""What a Spark task does: range GETs, checks, Arrow batches.

Invariant: a batch is held against its footer row and its CRC before a record of it is handed out,
and damage is an error that names topic, partition, offsets and object; nothing is skipped. Pieces
are read ahead by a few threads, and closing the generator early stops them.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from bucketlog.errors import CorruptObjectError, InvalidDataError, ObjectNotFoundError
from bucketlog.model import BatchIndex, Buffer
from spark_jobs.columns import to_record_batch
from spark_jobs.plan import Piece, Run
from tiered_storage import keys
from tiered_storage.bucket import Span, SyncBucket
from tiered_storage.segment import check_batch

READ_AHEAD = 3
DECODE_BYTES = 1024 * 1024
"""Stored bytes that become one Arrow batch; a record batch is never split."""


def read_pieces(
    bucket: SyncBucket,
    pieces: Sequence[Piece],
    names: Sequence[str],
    *,
    max_decompressed_bytes: int,
) -> Generator[pa.RecordBatch, None, None]:
    """The records of `pieces`, in order, as the columns `names`. Raises `CorruptObjectError`."""
    for piece, data in _read_ahead(bucket, pieces):
        key = keys.segment(piece.segment)
        view = memoryview(data)
        for runs in _groups(piece):
            for run in runs:
                _check(key, view, piece.position, run)
            try:
                batch = to_record_batch(
                    data,
                    piece.position,
                    runs,
                    names,
                    max_decompressed_bytes=max_decompressed_bytes,
                )
            except InvalidDataError as error:
                at = runs[0].rows[0].position
                raise _damage(key, at, runs, str(error)) from error
            if batch.num_rows:
                yield batch


def _read_ahead(bucket: SyncBucket, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Buffer]]:
    pool = ThreadPoolExecutor(READ_AHEAD, thread_name_prefix="bucketlog-read")
    try:
        flying: deque[tuple[Piece, Future[Buffer]]] = deque()
        for piece in pieces:
            flying.append((piece, pool.submit(_get, bucket, piece)))
            if len(flying) > READ_AHEAD:
                first, future = flying.popleft()
                yield first, future.result()
        while flying:
            first, future = flying.popleft()
            yield first, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _get(bucket: SyncBucket, piece: Piece) -> Buffer:
    key = keys.segment(piece.segment)
    try:
        data = bucket.get(key, Span(piece.position, piece.length)).data
    except ObjectNotFoundError as error:
        raise _damage(key, piece.position, piece.runs, "the object is gone") from error
    if len(data) != piece.length:
        at = piece.position + len(data)
        raise _damage(key, at, piece.runs, f"{len(data)} of {piece.length} bytes are there")
    return data


def _groups(piece: Piece) -> Iterator[list[Run]]:
    """The runs of a piece, cut so that about `DECODE_BYTES` are decoded at once."""
    group: list[Run] = []
    size = 0
    for run in piece.runs:
        rows: list[BatchIndex] = []
        for row in run.rows:
            if size and size + row.length > DECODE_BYTES:
                if rows:
                    group.append(run._replace(rows=tuple(rows)))
                yield group
                group, rows, size = [], [], 0
            rows.append(row)
            size += row.length
        group.append(run._replace(rows=tuple(rows)))
    yield group


def _check(key: str, view: memoryview, start: int, run: Run) -> None:
    for row in run.rows:
        at = row.position - start
        try:
            check_batch(key, view[at : at + row.length], row)
        except CorruptObjectError as error:
            one = run._replace(rows=(row,))
            raise _damage(key, error.position, [one], error.reason) from error


def _damage(key: str, position: int, runs: Sequence[Run], reason: str) -> CorruptObjectError:
    lost = "; ".join(
        f"topic {run.topic!r} partition {run.partition} "
        f"offsets {run.rows[0].base_offset} to {run.rows[-1].next_offset - 1}"
        for run in runs[:5]
    )
    more = f" and {len(runs) - 5} more" if len(runs) > 5 else ""
    return CorruptObjectError(
        key,
        position,
        f"{reason}: {lost}{more}",
        remedy="restore the object, or leave these offsets out by startingOffsets or endingOffsets",
    )
