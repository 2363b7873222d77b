"""`bucketlog.replay`: a topic as Arrow, pandas, polars, records, Parquet or JSON lines.

    bucketlog.replay("s3://logs/prod", "orders", since="7d").to_pandas()

Read from the bucket alone, in this process. Invariant: what is replayed is decided once, at the
first use, so that everything that is asked of one `Replay` tells of the same records.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Literal, TypeAlias, TypeVar, overload

from bucketlog.client.lines import to_json_line
from bucketlog.client.topic import Record, Topic
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import check_installed, needed
from bucketlog.log_format.model import WallClock
from bucketlog.replaying.record_bar import Rows
from bucketlog.replaying.selection import Moment, OffsetRange, Selection
from bucketlog.replaying.store_options import as_s3_options, source_options
from bucketlog.replaying.streaming import decoding_threads
from bucketlog.replaying.whole_file import whole_file

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

    from bucketlog.log_reader.parquet_target import ReplayReport
    from bucketlog.log_reader.parquet_writing import ParquetSettings
    from bucketlog.log_reader.replay_plan import ReplayPlan
    from bucketlog.replaying.typed_table import Layout, TypedTable
    from bucketlog.tiered_storage.backends.location import S3Options

K = TypeVar("K")
V = TypeVar("V")

Isolation = Literal["read_committed", "read_uncommitted"]
ArrowTable: TypeAlias = Any
ArrowBatch: TypeAlias = Any
ArrowReader: TypeAlias = Any
ArrowSchema: TypeAlias = Any
"""pyarrow's `Table`, `RecordBatch`, `RecordBatchReader` and `Schema`. Its wheel has no types: its
names would be unknown to a strict type checker, here and in every program that calls us. Annotate
where there are stubs."""

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
    layout: "Layout" = "flat",
    isolation: Isolation = "read_committed",
    s3: "S3Options | Mapping[str, Any] | None" = None,
    encryption_key_file: str | Path | None = None,
    threads: int | None = None,
    progress: bool = False,
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
    layout: "Layout" = "flat",
    isolation: Isolation = "read_committed",
    s3: "S3Options | Mapping[str, Any] | None" = None,
    encryption_key_file: str | Path | None = None,
    threads: int | None = None,
    progress: bool = False,
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
    layout: "Layout" = "flat",
    isolation: Isolation = "read_committed",
    s3: "S3Options | Mapping[str, Any] | None" = None,
    encryption_key_file: str | Path | None = None,
    threads: int | None = None,
    progress: bool = False,
    options: Mapping[str, str] | None = None,
    clock: WallClock = _now_ms,
) -> "Replay[Any, Any]":
    """Read a topic from its bucket, without a broker. Nothing is read before you iterate.

    A typed topic gives tables with the columns of its type. Their other columns are `_partition`,
    `_offset`, `_timestamp` and `_key`, and if you choose them `_topic`, `_headers` and
    `_tombstone`. Fields that are not chosen are not decoded. A topic given by name has the columns
    of the log.

    Args:
        url: Address of the bucket, as in `s3://bucket/prefix` or `file:///folder`.
        topic: Name of the topic, or a `Topic` with types.
        since: Earliest time of records: a datetime, a date, text such as "2026-01-31", or a
            duration back from now such as "7d". None means from the first record.
        until: Time before which reading stops, as for `since`; None means the present end.
        offsets: By partition, the first offset, or a pair of the first offset and the offset before
            which reading stops; None means all offsets.
        partitions: Numbers of the partitions; None means all partitions.
        columns: Names of the columns of batches and tables; None means all columns by default.
        layout: "flat" for a column for each field of the value, "struct" for a column `value`.
        isolation: "read_committed" leaves out records of aborted and open transactions,
            "read_uncommitted" does not.
        s3: Options of the store, such as `endpoint_url` and `region`; None means those of the
            environment, as for AWS's tools.
        encryption_key_file: File with the keys of encrypted topics; None means
            BUCKETLOG_ENCRYPTION_KEY_FILE of the environment.
        threads: Number of threads that decode; None means one for each processor, but at least 2
            and at most 8.
        progress: Whether to show a bar while records are read, on a terminal (stderr) or in a
            notebook. The bar needs `bucketlog[cli]`.
        options: Further options of the Spark source, such as `failOnDataLoss`; None means no
            further ones.
        clock: Function that returns the present time, in milliseconds since 1970 UTC; by default
            the system's clock.

    Returns:
        A replay, which you iterate over, or turn into tables and files.

    Raises:
        ConfigurationError: If an argument is not valid, if the bucket has no log, or if the topic
            does not exist.

    Examples:
        >>> [record.value.amount for record in bucketlog.replay("s3://bucket/prefix", orders)]
        [9.5, 20.0]
        >>> bucketlog.replay("s3://bucket/prefix", orders, columns=["id", "amount"]).to_pandas()
        id  amount
        0  1     9.5
        1  2    20.0
    """
    named: Topic[Any, Any] = Topic(topic) if isinstance(topic, str) else topic
    check_installed("replay")
    chosen_threads = decoding_threads() if threads is None else threads
    if chosen_threads < 1:
        raise ConfigurationError(f"threads {threads}", remedy="give 1 or more")
    if columns is not None and not columns:
        raise ConfigurationError("no column is asked for", remedy="choose one, such as value")
    if progress:
        needed("rich", "cli")
    chosen = Selection(named.name, since, until, offsets, partitions).options(clock)
    given = {
        "path": url,
        "includeHeaders": "true",
        "isolation.level": isolation,
        **source_options(s3),
        **({} if encryption_key_file is None else {"encryption.keyFile": str(encryption_key_file)}),
        **chosen,
        **(options or {}),
    }
    names = None if columns is None else tuple(columns)
    return Replay(named, given, names, chosen_threads, layout, progress=progress)


class Replay(DisplayedObject, Generic[K, V]):
    """Records of a topic in its bucket. Made by `replay`.

    Iterating returns typed records, as `records` does. All methods except `to_arrow`, `to_pandas`
    and `to_polars` need a bounded amount of memory. Offsets of a partition are in order. Partitions
    alternate as they were written.

    Examples:
        >>> found = bucketlog.replay("s3://bucket/prefix", orders)
        >>> found.to_arrow().num_rows
        2
        >>> found.to_jsonl("orders.jsonl")
        2
    """

    def __init__(
        self,
        topic: Topic[K, V],
        options: Mapping[str, str],
        columns: tuple[str, ...] | None,
        threads: int,
        layout: "Layout" = "flat",
        *,
        progress: bool = False,
    ) -> None:
        from bucketlog.log_reader.replay_plan import replay_options

        self.topic = topic
        self._options = dict(options)
        self._parsed = replay_options(options)
        self._columns = columns
        self._threads = threads
        self._layout = layout
        self._progress = progress
        if columns is not None or layout != "flat":
            _ = self._table  # raises now for a wrong name

    def _description(self) -> Description:
        plan: ReplayPlan | None = self.__dict__.get("plan")
        found = Description({}) if plan is None else plan._description()
        return found._replace(
            facts={
                "topic": self.topic.name,
                "url": self._options["path"],
                "columns": None if self._columns is None else ", ".join(self._columns[:20]),
                **(found.facts or {"plan": "not made yet"}),
            }
        )

    @cached_property
    def _table(self) -> "TypedTable | None":
        """Typed columns; None for the columns of the log."""
        from bucketlog.replaying.typed_table import TypedTable, check_columns, is_typed

        if is_typed(self.topic):
            return TypedTable(self.topic, self._layout, self._columns)
        check_columns(self._columns or (), COLUMNS)
        return None

    @property
    def chosen_columns(self) -> tuple[str, ...] | None:
        """Names of the columns of batches and tables; None means all columns."""
        return self._columns

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
        """Return the id of the cluster whose bucket is read.

        Returns:
            The id of the cluster.

        Raises:
            BucketlogError: If the bucket has no log, or cannot be read.
        """
        from bucketlog.tiered_storage.identity import read_cluster_sync

        with closing(self.plan.open_source()) as bucket:
            return str(read_cluster_sync(bucket).cluster_id)

    def batches(self, *, on_rows: Rows | None = None) -> Generator[ArrowBatch, None, None]:
        """Iterate over Arrow batches of about 1 MiB.

        Args:
            on_rows: Function that is called with the numbers of rows and bytes of each batch; None
                means no function.

        Yields:
            A `pyarrow.RecordBatch` of the columns of `schema`.

        Raises:
            CorruptObjectError: If an object is damaged. All rows before the damage were returned.
            InvalidDataError: If a record of a typed topic does not decode.
        """
        if self._table is None:
            yield from self._batches(self._columns or COLUMNS, on_rows)
        else:
            yield from self._batches(self._table.stored_columns, on_rows, self._table.typed)

    @property
    def schema(self) -> ArrowSchema:
        """Columns of batches and tables, as a `pyarrow.Schema`."""
        from bucketlog.log_reader.columns import arrow_schema

        return arrow_schema(self._columns or COLUMNS) if self._table is None else self._table.schema

    def reader(self, *, on_rows: Rows | None = None) -> ArrowReader:
        """Return the batches as a reader, for one pass in bounded memory.

        Args:
            on_rows: Function that is called with the numbers of rows and bytes of each batch; None
                means no function.

        Returns:
            A `pyarrow.RecordBatchReader`.

        Raises:
            CorruptObjectError: If an object is damaged. All rows before the damage were returned.
            InvalidDataError: If a record of a typed topic does not decode.
        """
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self.batches(on_rows=on_rows))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: polars, DuckDB, pandas and others take a `Replay` as a
        table. Each call reads the bucket again, in bounded memory."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> ArrowTable:
        """Read all rows into a table of Arrow.

        Returns:
            A `pyarrow.Table`.

        Raises:
            CorruptObjectError: If an object is damaged.
            InvalidDataError: If a record of a typed topic does not decode.
        """
        return self.reader().read_all()

    def to_duckdb(
        self, connection: "duckdb.DuckDBPyConnection | None" = None
    ) -> "duckdb.DuckDBPyRelation":
        """Return a relation of DuckDB, which reads the bucket during each query, in bounded memory.

        To query the same rows often, store them with `relation.create("name")`.

        Args:
            connection: Connection of DuckDB; None means its default connection.

        Returns:
            A `duckdb.DuckDBPyRelation`.

        Raises:
            ConfigurationError: If duckdb is not installed.
        """
        needed("duckdb", "duckdb")
        import duckdb

        chosen = duckdb.default_connection() if connection is None else connection
        return chosen.from_arrow(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """Read all rows into a frame of pandas.

        Returns:
            A `pandas.DataFrame`.

        Raises:
            ConfigurationError: If pandas is not installed.
            CorruptObjectError: If an object is damaged.
            InvalidDataError: If a record of a typed topic does not decode.
        """
        needed("pandas", "pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """Read all rows into a frame of Polars.

        Returns:
            A `polars.DataFrame`.

        Raises:
            ConfigurationError: If polars is not installed.
            CorruptObjectError: If an object is damaged.
            InvalidDataError: If a record of a typed topic does not decode.
        """
        needed("polars", "polars")
        import polars

        frame = polars.from_arrow(self.reader())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def records(self) -> Iterator[Record[K, V]]:
        """Iterate over typed records.

        Yields:
            A `Record`.

        Raises:
            CorruptObjectError: If an object is damaged. All records before the damage were
                returned.
            InvalidDataError: If a record does not decode.
        """
        with closing(self.batches_of_records()) as batches:
            for records in batches:
                yield from records

    def batches_of_records(
        self, *, on_rows: Rows | None = None
    ) -> Generator[Iterator[Record[K, V]], None, None]:
        """Iterate over batches of typed records.

        Args:
            on_rows: Function that is called with the numbers of rows and bytes of a batch when the
                next batch is asked for; None means no function.

        Yields:
            An iterator over the records of a batch.

        Raises:
            CorruptObjectError: If an object is damaged. All records before the damage were
                returned.
            InvalidDataError: If a record does not decode.
        """
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
        """Write records as lines of JSON, as `bucketlog consume -o jsonl` prints them.

        A file gets its name once it is complete.

        Args:
            target: Path of a file, or a binary file.
            overwrite: Whether to replace an existing file.
            on_rows: Function that is called with the numbers of rows and bytes of each batch; None
                means no function.

        Returns:
            The number of records.

        Raises:
            ConfigurationError: If the file exists and `overwrite` is False.
            CorruptObjectError: If an object is damaged.
        """
        if not isinstance(target, str | Path):
            return self._write_lines(target, on_rows)
        with whole_file(Path(target), overwrite=overwrite) as file:
            return self._write_lines(file, on_rows)

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
        """Write records as Parquet files, and verify them before `_SUCCESS` is written.

        The files are those that the Spark job writes.

        Args:
            target: Path of a folder, or a prefix as in `s3://bucket/prefix`.
            partition_by: Names of the columns that folders are named after: some of topic,
                partition, day and hour, in UTC.
            settings: Codec, rows of a row group and bytes of a file; None means the defaults.
            overwrite: Whether to replace existing files.
            target_s3: Options of the store to write to; None means those of the environment.
            on_rows: Function that is called with the numbers of rows and bytes of each batch; None
                means no function.

        Returns:
            A report of the files, with numbers of records.

        Raises:
            ConfigurationError: If an argument is not valid, or if the target has files and
                `overwrite` is False.
            CorruptObjectError: If an object is damaged.
        """
        from bucketlog.replaying.parquet import write_locally

        if self._table is not None and self._columns is not None:
            raise ConfigurationError(
                "to_parquet with columns of a typed topic: it writes columns of the log",
                remedy="replay the topic by its name, or write the table of to_arrow()",
            )
        with self._watched(on_rows) as passed:
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
                on_rows=passed,
            )

    def _batches(
        self,
        columns: Sequence[str],
        on_rows: Rows | None,
        converted: Callable[[ArrowBatch], ArrowBatch] | None = None,
    ) -> Generator[ArrowBatch, None, None]:
        from bucketlog.replaying.plan_batches import read_plan

        plan = self.plan
        with (
            self._watched(on_rows) as passed,
            closing(read_plan(plan, columns, converted, threads=self._threads)) as batches,
        ):
            for batch in batches:
                yield batch
                if passed is not None:
                    passed(batch.num_rows, batch.nbytes)

    def _watched(self, on_rows: Rows | None) -> AbstractContextManager[Rows | None]:
        """`on_rows`, beside a bar if one was asked for."""
        if not self._progress:
            return nullcontext(on_rows)
        from bucketlog.replaying.record_bar import record_bar_beside

        return record_bar_beside(on_rows, self.topic.name, self.plan)

    def _write_lines(self, file: BinaryIO, on_rows: Rows | None) -> int:
        raw = Replay(
            Topic(self.topic.name), self._options, None, self._threads, progress=self._progress
        )
        raw.plan = self.plan
        count = 0
        with closing(raw.batches_of_records(on_rows=on_rows)) as batches:
            for records in batches:
                lines = [to_json_line(record) for record in records]
                file.write("".join(f"{line}\n" for line in lines).encode())
                count += len(lines)
        return count
