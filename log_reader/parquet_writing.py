"""What a replay task does: its records, encoded as Parquet, into the target. Spark-free.

Invariants: what a task writes is a function of its pieces and the settings, and so are its files'
names: a task that runs again, or twice at once, finds its own files and adds none. A file is put
whole, under its name at once, so that no reader sees half of one. Within a file each partition's
records are in the order of their offsets. Memory is bounded by `buffer_bytes_max`, and by two
files that are on their way.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_reader.fetch import read_planned
from bucketlog.log_reader.options import ReadOptions
from bucketlog.log_reader.parquet_splitting import Part, Splitter
from bucketlog.log_reader.plan import Piece, TaskPiece
from bucketlog.tiered_storage.bucket import SyncBucket

Compression: TypeAlias = Literal["snappy", "zstd", "lz4", "gzip", "none"]
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS = "headers"
PARTITION_COLUMNS = ("topic", "partition", "day", "hour")
"""What files can be partitioned by; day and hour are of the record's timestamp, in UTC."""

PUTS_IN_FLIGHT = 2
_DICTIONARY = ("key", "topic", "partition", "timestampType")
_DELTA = ("offset", "timestamp")
_STATISTICS = ("offset", "timestamp", "topic", "partition")
"""Minima and maxima of keys and values would be compared for nothing: nobody prunes by them."""


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """How files are made. `file_bytes_max` is of encoded bytes, passed by at most a row group;
    `buffer_bytes_max` is what one task holds, decoded and encoded, before it writes early."""

    partition_by: tuple[str, ...] = ("topic", "partition")
    compression: Compression = "snappy"
    row_group_rows: int = 1_000_000
    file_bytes_max: int = 128 * 1024 * 1024
    buffer_bytes_max: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        """Raises `ConfigurationError`."""
        for name in self.partition_by:
            if name not in PARTITION_COLUMNS:
                raise ConfigurationError(
                    f"cannot partition by {name!r}",
                    remedy=f"choose among {', '.join(PARTITION_COLUMNS)}",
                )
        if len(set(self.partition_by)) < len(self.partition_by):
            raise ConfigurationError(f"partition_by names a column twice: {self.partition_by}")
        if self.compression not in get_args(Compression):
            raise ConfigurationError(
                f"compression {self.compression!r}",
                remedy=f"choose among {', '.join(get_args(Compression))}",
            )
        for limit in ("row_group_rows", "file_bytes_max", "buffer_bytes_max"):
            if getattr(self, limit) <= 0:
                raise ConfigurationError(f"{limit} {getattr(self, limit)}", remedy="give 1 or more")


def chosen_columns(
    columns: Sequence[str] | None, settings: ParquetSettings, *, include_headers: bool
) -> tuple[str, ...]:
    """What is read for the files; None: all there is. Raises `ConfigurationError`."""
    there = (*COLUMNS, HEADERS) if include_headers else COLUMNS
    chosen = tuple(there if columns is None else columns)
    for name in chosen:
        if name not in there:
            raise ConfigurationError(
                f"no column {name!r}",
                remedy=f"choose among {', '.join(there)}; headers come with includeHeaders=true",
            )
    if not set(chosen) - set(settings.partition_by):
        raise ConfigurationError("no column is left for the files", remedy="choose value, too")
    return chosen


class FileRecords(NamedTuple):
    """Records of one partition in one file; a file of several partitions has one for each."""

    file: str
    file_bytes: int
    topic: str
    partition: int
    records: int
    first_offset: int
    last_offset: int


class TaskName(NamedTuple):
    """What tells a task's files from all others: `job` is new with every replay."""

    job: str
    task: int

    def file(self, folder: str, number: int) -> str:
        name = f"part-{self.task:05}-{number:05}{_ending(self.job)}"
        return f"{folder}/{name}" if folder else name


def is_of_job(key: str, job: str) -> bool:
    """Whether a task of `job` gave the file its name."""
    return key.rpartition("/")[2].startswith("part-") and key.endswith(_ending(job))


def _ending(job: str) -> str:
    return f"-{job}.parquet"


def write_task(
    source: SyncBucket,
    pieces: Sequence[TaskPiece],
    target: SyncBucket,
    name: TaskName,
    columns: Sequence[str],
    settings: ParquetSettings,
    options: ReadOptions,
    *,
    on_rows: Callable[[int, int], None] | None = None,
) -> list[FileRecords]:
    """Write what `pieces` hold as the columns `columns` (less those it is partitioned by).

    `on_rows` is notified of records and their bytes as they pass.
    Raises `CorruptObjectError` for damage in the log, `InvalidDataError` where another file has a
    name of this task, and the buckets' errors.
    """
    if not pieces:
        return []
    places = {
        (run.topic, run.partition)
        for piece in pieces
        for run in (piece.runs if isinstance(piece, Piece) else ())
    } | {
        (piece.topic, piece.partition.partition) for piece in pieces if not isinstance(piece, Piece)
    }
    kept = [column for column in columns if column not in settings.partition_by]
    splitter = Splitter(places, settings.partition_by, kept)
    batches = read_planned(source, options, pieces, splitter.names)
    with _Files(target, name, settings) as files, closing(batches):
        for batch in batches:
            for part in splitter.split(batch):
                files.add(part)
            if on_rows is not None:
                on_rows(batch.num_rows, batch.nbytes)
        return files.finish()


@dataclass
class _OpenFile:
    """A file that is being made: rows that wait, and what of it is encoded."""

    folder: str
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_rows: int = 0
    waiting_bytes: int = 0
    encoded_bytes: int = 0
    sink: pa.BufferOutputStream | None = None
    writer: pq.ParquetWriter | None = None
    counts: dict[tuple[str, int], tuple[int, int, int]] = field(default_factory=dict)

    @property
    def held_bytes(self) -> int:
        return self.waiting_bytes + self.encoded_bytes

    def add(self, part: Part) -> None:
        self._wait(part.rows)
        place = (part.topic, part.partition)
        records, first, last = self.counts.get(place, (0, part.first_offset, part.last_offset))
        self.counts[place] = (
            records + part.rows.num_rows,
            min(first, part.first_offset),
            max(last, part.last_offset),
        )

    def _wait(self, rows: pa.RecordBatch) -> None:
        rows = unpinned(rows)
        self.waiting.append(rows)
        self.waiting_rows += rows.num_rows
        self.waiting_bytes += rows.get_total_buffer_size()

    def encode(self, settings: ParquetSettings, *, partly: bool) -> None:
        """Row groups out of what waits; `partly`: out of whole ones."""
        table = pa.Table.from_batches(self.waiting)
        if self.writer is None:
            self.sink = pa.BufferOutputStream()
            self.writer = pq.ParquetWriter(
                self.sink, table.schema, **_writer_arguments(table.schema, settings)
            )
        assert self.sink is not None
        size = settings.row_group_rows
        rows = table.num_rows - table.num_rows % size if partly else table.num_rows
        self.writer.write_table(table.slice(0, rows), row_group_size=size)
        self.encoded_bytes = self.sink.tell()
        self.waiting, self.waiting_rows, self.waiting_bytes = [], 0, 0
        for rest in table.slice(rows).to_batches():
            self._wait(rest)

    def finish(self, settings: ParquetSettings) -> memoryview:
        if self.waiting:
            self.encode(settings, partly=False)
        assert self.writer is not None
        assert self.sink is not None
        self.writer.close()
        return memoryview(self.sink.getvalue())


def encoded_file(rows: pa.Table, settings: ParquetSettings) -> memoryview:
    """All of `rows` as one file, with the codec, encodings and statistics of a task's files."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, **_writer_arguments(rows.schema, settings)) as writer:
        writer.write_table(rows, row_group_size=settings.row_group_rows)
    return memoryview(sink.getvalue())


def unpinned(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A copy where `rows` are less than half of the memory that they keep: a slice keeps all that
    it was cut from."""
    if 2 * rows.nbytes >= rows.get_total_buffer_size():
        return rows
    return pa.concat_batches([rows])


def _writer_arguments(schema: pa.Schema, settings: ParquetSettings) -> dict[str, Any]:
    dictionaries = [name for name in schema.names if name in _DICTIONARY]
    if "headers" in schema.names:
        dictionaries.append("headers.list.element.key")
    return {
        "compression": settings.compression,
        "use_dictionary": dictionaries or False,
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in schema.names if name in _DELTA}
        or None,
        "write_statistics": [name for name in schema.names if name in _STATISTICS] or False,
    }


class _Files:
    """The files of one task; those that are done are on their way while others are made."""

    def __init__(
        self,
        target: SyncBucket,
        name: TaskName,
        settings: ParquetSettings,
    ) -> None:
        self._target = target
        self._name = name
        self._settings = settings
        self._open: dict[str, _OpenFile] = {}
        self._waiting_bytes = 0
        self._encoded_bytes = 0
        self._number = 0
        self._written: list[FileRecords] = []
        self._pool = ThreadPoolExecutor(PUTS_IN_FLIGHT, thread_name_prefix="bucketlog-put")
        self._flying: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def add(self, part: Part) -> None:
        file = self._open.get(part.folder)
        if file is None:
            file = self._open[part.folder] = _OpenFile(part.folder)
        self._forget(file)
        file.add(part)
        self._hold(file)
        if file.waiting_rows >= self._settings.row_group_rows:
            self._encode(file, partly=True)
        while self._waiting_bytes + self._encoded_bytes > self._settings.buffer_bytes_max:
            if self._waiting_bytes >= self._encoded_bytes:
                largest = max(self._open.values(), key=lambda file: file.waiting_bytes)
                self._encode(largest, partly=False)
            else:
                self._close(max(self._open.values(), key=lambda file: file.encoded_bytes))

    def finish(self) -> list[FileRecords]:
        """All files are in the target when it returns."""
        for file in list(self._open.values()):
            self._close(file)
        while self._flying:
            self._flying.popleft().result()
        return self._written

    def _hold(self, file: _OpenFile) -> None:
        self._waiting_bytes += file.waiting_bytes
        self._encoded_bytes += file.encoded_bytes

    def _forget(self, file: _OpenFile) -> None:
        self._waiting_bytes -= file.waiting_bytes
        self._encoded_bytes -= file.encoded_bytes

    def _encode(self, file: _OpenFile, *, partly: bool) -> None:
        self._forget(file)
        file.encode(self._settings, partly=partly)
        self._hold(file)
        if file.encoded_bytes >= self._settings.file_bytes_max:
            self._close(file)

    def _close(self, file: _OpenFile) -> None:
        self._forget(self._open.pop(file.folder))
        data = file.finish(self._settings)
        key = self._name.file(file.folder, self._number)
        self._number += 1
        while len(self._flying) >= PUTS_IN_FLIGHT:
            self._flying.popleft().result()
        self._flying.append(self._pool.submit(_put, self._target, key, data))
        self._written += (
            FileRecords(key, len(data), *place, *count) for place, count in file.counts.items()
        )


def _put(target: SyncBucket, key: str, data: memoryview) -> None:
    """Where the file is there, it is of an earlier or another attempt of this very task."""
    if target.create(key, [data]):
        return
    found = target.head(key)
    if found is None or found.size_bytes != len(data):
        raise InvalidDataError(
            f"{key!r} of another attempt has {found.size_bytes if found else 'no'} bytes, "
            f"this one {len(data)}",
            remedy="let all workers have the same versions of pyarrow and bucketlog",
        )
