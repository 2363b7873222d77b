"""`bucketlog.replay`: a topic as Arrow, pandas, polars, records, Parquet or JSON lines.

    bucketlog.replay("s3://logs/prod", "orders", since="7d").to_pandas()

Read from the bucket alone, in this process. Invariant: what is replayed is decided once, at the
first use, so that everything that is asked of one `Replay` tells of the same records.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Literal, TypeAlias, TypeVar, overload

from bucketlog.client.lines import to_json_line
from bucketlog.client.topic import Record, Topic
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import check_installed, needed
from bucketlog.log_format.model import WallClock
from bucketlog.replaying.selection import Moment, OffsetRange, Selection
from bucketlog.replaying.streaming import in_order

if TYPE_CHECKING:
    import pandas
    import polars

    from bucketlog.log_reader.parquet_target import ReplayReport
    from bucketlog.log_reader.parquet_writing import ParquetSettings
    from bucketlog.log_reader.plan import TaskPiece
    from bucketlog.log_reader.replay_plan import ReplayPlan
    from bucketlog.tiered_storage.backends.location import S3Options

K = TypeVar("K")
V = TypeVar("V")

Isolation = Literal["read_committed", "read_uncommitted"]
Rows = Callable[[int, int], None]
"""Told of records and their bytes as they pass."""
ArrowTable: TypeAlias = Any
ArrowBatch: TypeAlias = Any
"""pyarrow's `Table` and `RecordBatch`. Its wheel has no types: its names would be unknown to a
strict type checker, here and in every program that calls us. Annotate where there are stubs."""

THREADS = 2
STREAM_TASK_BYTES = 16 * 1024 * 1024
"""Stored bytes of a task that is streamed: with the next ones they are what memory holds."""
BATCHES_AHEAD = 16
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
_RECORD_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@overload
def replay(
    url: str,
    topic: Topic[K, V],
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    offsets: Mapping[int, OffsetRange] | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    isolation: Isolation = "read_committed",
    s3: "S3Options | Mapping[str, Any] | None" = None,
    threads: int = THREADS,
    options: Mapping[str, str] | None = None,
    clock: WallClock = _now_ms,
) -> "Replay[K, V]": ...
@overload
def replay(
    url: str,
    topic: str,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    offsets: Mapping[int, OffsetRange] | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    isolation: Isolation = "read_committed",
    s3: "S3Options | Mapping[str, Any] | None" = None,
    threads: int = THREADS,
    options: Mapping[str, str] | None = None,
    clock: WallClock = _now_ms,
) -> "Replay[bytes, bytes]": ...
def replay(
    url: str,
    topic: Any,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    offsets: Mapping[int, OffsetRange] | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    isolation: Isolation = "read_committed",
    s3: "S3Options | Mapping[str, Any] | None" = None,
    threads: int = THREADS,
    options: Mapping[str, str] | None = None,
    clock: WallClock = _now_ms,
) -> "Replay[Any, Any]":
    """What `topic` (a name or a `Topic`) holds in the bucket at `url`; nothing is read yet.

    `since` and `until` are a datetime, a date or time as text, or so far back from now: `"7d"`,
    `"2h"`; a partition is read from its first record that is as late, up to the first one as late
    as `until`. `offsets` gives, by partition, the first offset, or it and the one after the last.
    `columns` are those of `batches` and the tables, all by default. `s3` says how the store is
    reached (`endpoint_url`, `region`, …; credentials are AWS's own). `options` are further options
    of the Spark source, such as `failOnDataLoss`. Raises `ConfigurationError`.
    """
    named: Topic[Any, Any] = Topic(topic) if isinstance(topic, str) else topic
    check_installed("replay")
    if threads < 1:
        raise ConfigurationError(f"threads {threads}", remedy="give 1 or more")
    for name in columns or ():
        if name not in COLUMNS:
            raise ConfigurationError(
                f"no column {name!r}", remedy=f"choose among {', '.join(COLUMNS)}"
            )
    if columns is not None and not columns:
        raise ConfigurationError("no column is asked for", remedy="choose one, such as value")
    chosen = Selection(named.name, since, until, offsets, partitions).options(clock)
    given = {
        "path": url,
        "includeHeaders": "true",
        "isolation.level": isolation,
        **_s3_options(s3),
        **chosen,
        **(options or {}),
    }
    return Replay(named, given, tuple(columns or COLUMNS), threads)


class Replay(Generic[K, V]):
    """Made by `bucketlog.replay`. Iterating gives typed records, as `records()` does.

    Everything streams with bounded memory but the tables (`to_arrow`, `to_pandas`, `to_polars`).
    Records come in the order of `batches`: each partition's offsets ascend; how partitions take
    turns is how they were written.
    """

    def __init__(
        self,
        topic: Topic[K, V],
        options: Mapping[str, str],
        columns: tuple[str, ...],
        threads: int,
    ) -> None:
        from bucketlog.log_reader.replay_plan import replay_options

        self.topic = topic
        self._options = dict(options)
        self._parsed = replay_options(options)
        self._columns = columns
        self._threads = threads

    @property
    def chosen_columns(self) -> tuple[str, ...] | None:
        """None: all."""
        return None if self._columns == COLUMNS else self._columns

    @cached_property
    def plan(self) -> "ReplayPlan":
        """What is to be read, as it was at the first use: `records` (None if a batch is cut),
        `stored_bytes`, `ranges` of offsets, and `withheld_records`: committed records that are
        left out, because a broker may still be writing offsets below them. Logs a warning about
        these. Raises `ConfigurationError` if the log, the topic or an offset does not exist,
        `CorruptObjectError`, and the bucket's errors."""
        from bucketlog.log_reader.replay_plan import plan_replay

        return plan_replay(self._parsed, cores=lambda: self._threads)

    def cluster_id(self) -> str:
        """Whose bucket it is. Raises as `plan`."""
        from bucketlog.tiered_storage.identity import read_cluster_sync

        with closing(self.plan.open_source()) as bucket:
            return str(read_cluster_sync(bucket).cluster_id)

    def batches(self, *, on_rows: Rows | None = None) -> Generator[ArrowBatch, None, None]:
        """Arrow batches of about a MiB as stored. Raises `CorruptObjectError` for damage, having
        given all that stands before it."""
        yield from self._batches(self._columns, on_rows)

    def to_arrow(self) -> ArrowTable:
        import pyarrow as pa

        from bucketlog.log_reader.columns import arrow_schema

        return pa.Table.from_batches(self.batches(), schema=arrow_schema(self._columns))

    def to_pandas(self) -> "pandas.DataFrame":
        """Raises `ConfigurationError` where pandas is missing."""
        needed("pandas", "pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """Raises `ConfigurationError` where polars is missing."""
        needed("polars", "polars")
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def records(self) -> Iterator[Record[K, V]]:
        """Typed records. Raises `InvalidDataError` for one that does not decode."""
        with closing(self.batches_of_records()) as batches:
            for records in batches:
                yield from records

    def batches_of_records(
        self, *, on_rows: Rows | None = None
    ) -> Generator[Iterator[Record[K, V]], None, None]:
        """`records`, in batches. `on_rows` is told of a batch when the next one is asked for."""
        from bucketlog.replaying.records import records_of

        with closing(self._batches(_RECORD_COLUMNS, on_rows)) as batches:
            for batch in batches:
                yield records_of(self.topic, batch)

    def __iter__(self) -> Iterator[Record[K, V]]:
        return self.records()

    def to_jsonl(
        self,
        target: str | Path | BinaryIO,
        *,
        overwrite: bool = False,
        on_rows: Rows | None = None,
    ) -> int:
        """A line a record, as `bucketlog consume -o jsonl` prints and `produce --jsonl` takes;
        returns how many. A file is there, under its name, once it is whole."""
        if not isinstance(target, str | Path):
            return self._write_lines(target, on_rows)
        path = Path(target)
        if path.exists() and not overwrite:
            raise ConfigurationError(
                f"{path} is there already",
                remedy="give another name, or overwrite it (--overwrite, overwrite=True)",
            )
        partial = path.with_name(f"{path.name}.partial")
        try:
            with partial.open("wb") as file:
                count = self._write_lines(file, on_rows)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return count

    def to_parquet(
        self,
        target: str | Path,
        *,
        partition_by: Sequence[str] = ("topic", "partition"),
        settings: "ParquetSettings | None" = None,
        overwrite: bool = False,
        target_s3: "S3Options | Mapping[str, Any] | None" = None,
        on_rows: Rows | None = None,
    ) -> "ReplayReport":
        """Parquet files under a folder or an S3 prefix, verified before `_SUCCESS` is written.

        `partition_by` names some of topic, partition, day and hour, in UTC. `settings` has the
        codec, rows of a row group and bytes of a file (its `partition_by` does not count). The
        files are those that the Spark job would write. Raises `ConfigurationError`.
        """
        from bucketlog.replaying.parquet import write_locally

        return write_locally(
            lambda: self.plan,
            self._parsed,
            str(target),
            self.chosen_columns,
            tuple(partition_by),
            settings,
            threads=self._threads,
            overwrite=overwrite,
            target_s3=as_s3_options(target_s3),
            on_rows=on_rows,
        )

    def _batches(
        self, columns: Sequence[str], on_rows: Rows | None
    ) -> Generator[ArrowBatch, None, None]:
        from bucketlog.log_reader.fetch import read_pieces
        from bucketlog.log_reader.replay_plan import smaller_tasks

        plan = self.plan
        with closing(plan.open_source()) as bucket:

            def read(task: "tuple[TaskPiece, ...]") -> Generator[ArrowBatch, None, None]:
                return read_pieces(
                    bucket,
                    task,
                    columns,
                    max_decompressed_bytes=plan.options.max_decompressed_bytes,
                    fail_on_unreadable=plan.options.fail_on_unreadable,
                )

            tasks = smaller_tasks(plan, STREAM_TASK_BYTES)
            with closing(
                in_order(tasks, read, threads=self._threads, ahead=BATCHES_AHEAD)
            ) as batches:
                for batch in batches:
                    yield batch
                    if on_rows is not None:
                        on_rows(batch.num_rows, batch.nbytes)

    def _write_lines(self, file: BinaryIO, on_rows: Rows | None) -> int:
        raw = Replay(Topic(self.topic.name), self._options, self._columns, self._threads)
        raw.plan = self.plan
        count = 0
        with closing(raw.batches_of_records(on_rows=on_rows)) as batches:
            for records in batches:
                lines = [to_json_line(record) for record in records]
                file.write("".join(f"{line}\n" for line in lines).encode())
                count += len(lines)
        return count


def as_s3_options(s3: "S3Options | Mapping[str, Any] | None") -> "S3Options | None":
    if s3 is None or not isinstance(s3, Mapping):
        return s3
    from bucketlog.tiered_storage.backends.location import parse_s3_options

    return parse_s3_options(s3)


def _s3_options(s3: "S3Options | Mapping[str, Any] | None") -> dict[str, str]:
    given = as_s3_options(s3)
    if given is None:
        return {}
    return {
        f"s3.{name}": str(value)
        for name, value in given.model_dump(exclude_unset=True).items()
        if value is not None
    }
