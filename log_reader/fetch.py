"""What a Spark task does: range GETs, checks, Arrow batches.

Invariant: a batch is compared with its footer row and its CRC before its records are returned (in
the tier: with its CRC and its row's offsets). Damage is an error that names topic, partition,
offsets and object. Only batches that do not decode are skipped, if the options allow it, and each
is named in the log. A few threads read ranges ahead; closing the generator early stops them.
"""

import logging
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from bucketlog.log_format.arrow import decode_batches
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import BatchIndex, Buffer, TierObject
from bucketlog.log_reader.columns import CheckedBatches, to_record_batch
from bucketlog.log_reader.damage import UNREADABLE_REMEDY, UnreadableBatchError, damaged, place
from bucketlog.log_reader.plan import Piece, Run, TaskPiece, TierPiece
from bucketlog.log_reader.unsealing import opened_runs
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Span, SyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from bucketlog.tiered_storage.segment import check_batch
from bucketlog.tiered_storage.tier_reader import BatchWalk, get_part, parts_of

if TYPE_CHECKING:
    from bucketlog.log_reader.options import ReadOptions

logger = logging.getLogger(__name__)

READ_AHEAD = 8
"""Range GETs that are in flight, or that wait to be decoded."""
READ_AHEAD_BYTES = 48 * 1024 * 1024
"""Bytes of these GETs, but for one GET that is longer by itself."""
DECODED_BYTES = 32 * 1024 * 1024
"""Decompressed bytes after which an Arrow batch ends, however few stored ones they were."""
DECODE_BYTES = 1024 * 1024
"""Stored bytes that become one Arrow batch; a record batch is never split."""


class RangeGet(NamedTuple):
    """One range GET of a piece."""

    piece: TaskPiece
    key: str
    span: Span


def read_planned(
    bucket: SyncBucket,
    options: "ReadOptions",
    pieces: Sequence[TaskPiece],
    names: Sequence[str],
) -> Generator[pa.RecordBatch, None, None]:
    """`read_pieces` for a plan that was made with `options`."""
    return read_pieces(
        bucket,
        pieces,
        names,
        max_decompressed_bytes=options.max_decompressed_bytes,
        fail_on_unreadable=options.fail_on_unreadable,
        encryption=options.encryption,
    )


def read_pieces(
    bucket: SyncBucket,
    pieces: Sequence[TaskPiece],
    names: Sequence[str],
    *,
    max_decompressed_bytes: int,
    fail_on_unreadable: bool = True,
    encryption: KeyAccess | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """The records of `pieces`, in order, as the columns `names`. `encryption` says how the keys of
    encrypted topics are reached. Raises `CorruptObjectError`, `UnreadableBatchError` (without
    `fail_on_unreadable`, the batch is skipped with a warning), and for encrypted topics
    `KeyRefusedError` and `KeyUnavailableError`."""
    with closing(checked_batches(bucket, pieces, encryption=encryption)) as reads:
        for read in reads:
            for runs in cut_runs(read.runs, DECODE_BYTES):
                yield from decoded(
                    read._replace(runs=runs),
                    names,
                    max_decompressed_bytes=max_decompressed_bytes,
                    fail_on_unreadable=fail_on_unreadable,
                )


def checked_batches(
    bucket: SyncBucket, pieces: Iterable[TaskPiece], *, encryption: KeyAccess | None = None
) -> Generator[CheckedBatches, None, None]:
    """The batches of `pieces`, in order, checked and in the clear. Raises as `read_pieces`, but for
    `UnreadableBatchError`."""
    access = encryption or KeyAccess()
    with closing(_reads(bucket, pieces)) as reads:
        for stored in reads:
            yield _opened(stored, access)


def decoded(
    read: CheckedBatches,
    names: Sequence[str],
    *,
    max_decompressed_bytes: int,
    fail_on_unreadable: bool = True,
) -> Generator[pa.RecordBatch, None, None]:
    """The records of `read` as the columns `names`. Raises `UnreadableBatchError`, having given the
    records before the batch."""
    runs = list(read.runs)
    while runs:
        try:
            batch, left = to_record_batch(
                [read._replace(runs=runs)],
                names,
                max_decompressed_bytes=max_decompressed_bytes,
                enough_bytes=DECODED_BYTES,
            )
        except InvalidDataError as error:
            unreadable = _unreadable(read, runs, max_decompressed_bytes)
            if unreadable is None:
                raise
            at, reason = unreadable
            if fail_on_unreadable:
                yield from decoded(
                    read._replace(runs=_before(runs, at)),
                    names,
                    max_decompressed_bytes=max_decompressed_bytes,
                )
                raise UnreadableBatchError(reason, remedy=UNREADABLE_REMEDY) from error
            logger.warning("%s: skipping the batch (failOnUnreadable=false)", reason)
            runs = _without(runs, at)
            continue
        if batch.num_rows:
            yield batch
        runs = list(left[0].runs) if left else []


def _opened(read: CheckedBatches, access: KeyAccess) -> CheckedBatches:
    """The same batches in the clear."""
    try:
        return CheckedBatches(
            read.key, *opened_runs(read.key, read.data, read.position, read.runs, access)
        )
    except CorruptObjectError as error:
        raise damaged(error, _places(read.runs)) from error


def _unreadable(
    read: CheckedBatches, runs: Sequence[Run], max_decompressed_bytes: int
) -> tuple[int, str] | None:
    """Position and description of the first batch that does not decode by itself."""
    for run in runs:
        for row in run.rows:
            at = [row.position - read.position]
            try:
                decode_batches(
                    read.data, at, check_crc=False, max_decompressed_bytes=max_decompressed_bytes
                )
            except InvalidDataError as error:
                (where,) = _places([run._replace(rows=(row,))])
                return row.position, f"a batch in {read.key!r} does not decode: {where}: {error}"
    return None


def _before(runs: Iterable[Run], position: int) -> list[Run]:
    """The batches before the one at `position`."""
    kept: list[Run] = []
    for run in runs:
        rows = tuple(takewhile(lambda row: row.position != position, run.rows))
        if rows:
            kept.append(run._replace(rows=rows))
        if len(rows) < len(run.rows):
            break
    return kept


def _without(runs: Iterable[Run], position: int) -> list[Run]:
    """All but the batch at `position`."""
    kept = (
        run._replace(rows=tuple(row for row in run.rows if row.position != position))
        for run in runs
    )
    return [run for run in kept if run.rows]


def _reads(
    bucket: SyncBucket, pieces: Iterable[TaskPiece]
) -> Generator[CheckedBatches, None, None]:
    with closing(_read_ahead(bucket, pieces)) as answers:
        yield from _checked(answers)


def _checked(answers: Iterable[tuple[RangeGet, Buffer]]) -> Iterator[CheckedBatches]:
    walk: BatchWalk | None = None
    for (piece, key, span), data in answers:
        if isinstance(piece, Piece):
            view = memoryview(data)
            for run in piece.runs:
                _check(key, view, piece.position, run)
            yield CheckedBatches(key, data, piece.position, piece.runs)
            continue
        if walk is None:
            walk = BatchWalk(piece.partition, piece.row, piece.span)
        try:
            found = walk.feed(data)
            if span.start + span.length == piece.span.start + piece.span.length:
                walk.finish()
                walk = None
        except CorruptObjectError as error:
            raise damaged(error, _places(piece)) from error
        rows = tuple(
            row
            for row in found.rows
            if row.base_offset < piece.end and row.next_offset > piece.start
        )
        if rows:
            number = piece.partition.partition
            run = Run(piece.topic, number, piece.start, piece.end, rows, piece.data_keys)
            yield CheckedBatches(key, found.data, found.position, [run])


def range_gets(pieces: Iterable[TaskPiece]) -> Iterator[RangeGet]:
    """The requests that read `pieces`, in order."""
    for piece in pieces:
        if isinstance(piece, Piece):
            key = keys.segment(piece.segment)
            yield RangeGet(piece, key, Span(piece.position, piece.length))
        else:
            key = keys.tier_object(TierObject.of(piece.partition, piece.row))
            for span in parts_of(piece.span):
                yield RangeGet(piece, key, span)


def _read_ahead(
    bucket: SyncBucket, pieces: Iterable[TaskPiece]
) -> Generator[tuple[RangeGet, Buffer], None, None]:
    pool = ThreadPoolExecutor(READ_AHEAD, thread_name_prefix="bucketlog-read")
    try:
        flying: deque[tuple[RangeGet, Future[Buffer]]] = deque()
        waiting = 0
        for request in range_gets(pieces):
            flying.append((request, pool.submit(_get, bucket, request)))
            waiting += request.span.length
            while len(flying) > READ_AHEAD or (len(flying) > 1 and waiting > READ_AHEAD_BYTES):
                first, future = flying.popleft()
                waiting -= first.span.length
                yield first, future.result()
        while flying:
            first, future = flying.popleft()
            yield first, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _get(bucket: SyncBucket, request: RangeGet) -> Buffer:
    try:
        return get_part(bucket, request.key, request.span)
    except CorruptObjectError as error:
        raise damaged(error, _places(request.piece)) from error


def cut_runs(
    all_runs: Iterable[Run], most_bytes: int, most_records: int | None = None
) -> Iterator[list[Run]]:
    """The runs, cut at about `most_bytes` stored bytes and `most_records` records. A record batch
    is never split."""
    group: list[Run] = []
    size = records = 0
    for run in all_runs:
        rows: list[BatchIndex] = []
        for row in run.rows:
            is_full = most_records is not None and records + row.record_count > most_records
            if size and (is_full or size + row.length > most_bytes):
                if rows:
                    group.append(run._replace(rows=tuple(rows)))
                yield group
                group, rows, size, records = [], [], 0, 0
            rows.append(row)
            size += row.length
            records += row.record_count
        group.append(run._replace(rows=tuple(rows)))
    yield group


def _check(key: str, view: memoryview, start: int, run: Run) -> None:
    for row in run.rows:
        at = row.position - start
        try:
            check_batch(key, view[at : at + row.length], row)
        except CorruptObjectError as error:
            one = run._replace(rows=(row,))
            raise damaged(error, _places([one])) from error


def _places(what: TaskPiece | Sequence[Run]) -> list[str]:
    """Return the offsets that exist, by partition."""
    if isinstance(what, TierPiece):
        first, last = max(what.start, what.row.start), min(what.end, what.row.end) - 1
        return [place(what.topic, what.partition.partition, first, last)]
    return [
        place(run.topic, run.partition, run.rows[0].base_offset, run.rows[-1].next_offset - 1)
        for run in (what.runs if isinstance(what, Piece) else what)
    ]
