"""What a task reads, as bytes: column by column and compressed, for its way through Spark. Pure.

The driver sends a row of each batch to be read: 68 bytes where rows are pickled one by one, a few
where they are packed so (`make prove WHAT=spark-plan` says how many).
Invariant: `unpacked(packed(pieces)) == pieces`.
"""

import pickle
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.checkpoint import COLUMN_TYPES
from bucketlog.log_format.compression import compress, decompress
from bucketlog.log_format.model import BatchIndex, SegmentId
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.log_reader.plan import Piece, Run, TaskPiece

_ROW_TYPES = COLUMN_TYPES[: len(BatchIndex._fields)]
assert Run._fields[-2:] == ("rows", "data_keys")


def packed(pieces: Sequence[TaskPiece]) -> bytes:
    others = [(at, piece) for at, piece in enumerate(pieces) if not isinstance(piece, Piece)]
    mine = [piece for piece in pieces if isinstance(piece, Piece)]
    runs = [run for piece in mine for run in piece.runs]
    ranges: dict[tuple[object, ...], int] = {}
    data_keys: dict[int, tuple[int, tuple[WrappedKey, ...]]] = {}
    """By identity: the runs of a topic share one tuple, which may be long."""
    writers: dict[str, int] = {}
    columns = (
        array("I", (writers.setdefault(piece.segment.writer, len(writers)) for piece in mine)),
        array("q", (piece.segment.seq for piece in mine)),
        array("I", (len(piece.runs) for piece in mine)),
        array(
            "I",
            (
                ranges.setdefault(
                    (
                        *run[:-2],
                        data_keys.setdefault(id(run.data_keys), (len(data_keys), run.data_keys))[0],
                    ),
                    len(ranges),
                )
                for run in runs
            ),
        ),
        array("I", (len(run.rows) for run in runs)),
        *_columns(row for run in runs for row in run.rows),
    )
    shared = [each for _, each in data_keys.values()]
    whole = pickle.dumps((others, list(writers), list(ranges), shared, columns), protocol=5)
    return len(whole).to_bytes(8, "big") + compress(Codec.ZSTD, whole)


def _columns(rows: Iterable[BatchIndex]) -> "list[array[int]]":
    turned = list(zip(*rows, strict=True)) or [()] * len(_ROW_TYPES)
    return [array(kind, values) for kind, values in zip(_ROW_TYPES, turned, strict=True)]


def unpacked(data: bytes) -> tuple[TaskPiece, ...]:
    """Of a task of our driver: it is trusted."""
    size = int.from_bytes(data[:8], "big")
    whole = decompress(Codec.ZSTD, memoryview(data)[8:], max_bytes=size)
    others, writers, ranges, data_keys, columns = pickle.loads(whole)
    at_writers, seqs, run_counts, at_ranges, row_counts, *row_columns = columns
    rows = map(BatchIndex, *row_columns)
    runs = (
        Run._make((*ranges[at][:-1], tuple(islice(rows, count)), data_keys[ranges[at][-1]]))
        for at, count in zip(at_ranges, row_counts, strict=True)
    )
    pieces: Iterator[TaskPiece] = (
        Piece(SegmentId(writers[at], seq), tuple(islice(runs, count)))
        for at, seq, count in zip(at_writers, seqs, run_counts, strict=True)
    )
    found: list[TaskPiece] = []
    for at, other in others:
        found += islice(pieces, at - len(found))
        found.append(other)
    return tuple(chain(found, pieces))
