"""Rows become data files of an Iceberg table, in a task. Spark-free.

Invariants: each attempt of a task writes files with new names, and only files that a driver commits
belong to the table. So an attempt that fails, or runs twice, adds no row; its files are orphans,
which Iceberg's maintenance removes. Memory is bounded by `buffer_bytes_max`.
"""

import pickle
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import (
    _dataframe_to_data_files,
    bin_pack_arrow_table,
    parquet_file_to_data_file,
    pyarrow_to_schema,
    schema_to_pyarrow,
    write_file,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties, WriteTask
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.types import BinaryType, StringType
from pyiceberg.utils.properties import property_as_int

from bucketlog.log_reader.tables.partitioning import split_rows

TIMESTAMP = "_log_timestamp"
"""The column of the records' timestamps."""
BUFFER_BYTES_MAX = 128 * 1024 * 1024
PARQUET_BOUND_BYTES_MAX = 4_096
"""PyArrow writes no minimum and no maximum of a group of rows if one of them is longer."""
_NO_HISTORY: Mapping[str, Any] = {
    "snapshots": [],
    "snapshot_log": [],
    "metadata_log": [],
    "refs": {},
    "current_snapshot_id": None,
    "statistics": [],
    "partition_statistics": [],
}
"""Fields of a table's metadata that writers of files do not need. They grow with each commit."""
_METRICS_OF_COLUMN = f"{TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX}."


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The knowledge of a table that tasks need to write its files. The driver sends it to them.

    `io_properties` may have credentials. `buffer_bytes_max` is of rows as Arrow holds them.
    """

    metadata: str = field(repr=False)
    location: str
    io_properties: dict[str, Any] = field(repr=False)
    buffer_bytes_max: int = BUFFER_BYTES_MAX

    @classmethod
    def of(cls, table: Table) -> "TableFiles":
        without_history = table.metadata.model_copy(update=_NO_HISTORY)
        return cls(without_history.model_dump_json(), table.location(), dict(table.io.properties))

    def writer(self) -> "TableFileWriter":
        return TableFileWriter(self)


class TableFileWriter:
    """Takes rows, whose columns are the table's by name, and writes files."""

    def __init__(self, files: TableFiles) -> None:
        self._metadata = TableMetadataUtil.parse_raw(files.metadata)
        # large types, as Arrow's own writer has them: one chunk may pass 2 GiB of text
        self._schema = schema_to_pyarrow(self._metadata.schema())
        self._io = load_file_io(files.io_properties, files.location)
        self._buffer_bytes_max = files.buffer_bytes_max
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._files: list[DataFile] = []

    def add(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        self._waiting.append(rows)
        self._waiting_bytes += rows.get_total_buffer_size()
        if self._waiting_bytes >= self._buffer_bytes_max:
            self._write()

    def finish(self) -> list[DataFile]:
        if self._waiting:
            self._write()
        return self._files

    def _write(self) -> None:
        try:
            self._files += _written(self._metadata, self._schema, self._io, self._waiting)
        except UnicodeEncodeError:
            # PyIceberg makes an upper bound of a string's first letters: it replaces the last of
            # them by the next letter. The next letter after U+D7FF is half of a surrogate pair,
            # which UTF-8 cannot encode. The file of the failed attempt becomes an orphan.
            plain = _without_bounds(self._metadata)
            self._files += _written(plain, self._schema, self._io, self._waiting)
        self._waiting, self._waiting_bytes = [], 0


def _without_bounds(metadata: TableMetadata) -> TableMetadata:
    """The metadata, with the setting that columns have counts, but neither minima nor maxima."""
    kept = {
        name: value
        for name, value in metadata.properties.items()
        if not name.startswith(_METRICS_OF_COLUMN)
    }
    properties = {**kept, TableProperties.DEFAULT_WRITE_METRICS_MODE: "counts"}
    return metadata.model_copy(update={"properties": properties})


def _without_partial_bounds(metadata: TableMetadata, rows: pa.Table) -> TableMetadata:
    """The metadata, with the setting that columns with long values have no bounds. A group of rows
    of a Parquet file has no minimum and no maximum if one of them is long. PyIceberg then takes the
    bounds of the other groups for those of the file, and readers would miss rows."""
    group_rows = property_as_int(
        metadata.properties,
        TableProperties.PARQUET_ROW_GROUP_LIMIT,
        TableProperties.PARQUET_ROW_GROUP_LIMIT_DEFAULT,
    )
    if group_rows is not None and rows.num_rows <= group_rows:
        return metadata
    long = {
        f"{_METRICS_OF_COLUMN}{path}": "counts"
        for name in rows.column_names
        for chunk in rows.column(name).chunks
        for path in _long_columns(name, chunk)
    }
    if not long:
        return metadata
    return metadata.model_copy(update={"properties": {**metadata.properties, **long}})


def _long_columns(path: str, values: pa.Array) -> Iterator[str]:
    """Yield the paths of the columns and fields that have a long text or long bytes."""
    kind = values.type
    if pa.types.is_struct(kind):
        for at, member in enumerate(values.flatten()):
            yield from _long_columns(f"{path}.{kind.field(at).name}", member)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is not None and longest > PARQUET_BOUND_BYTES_MAX:
            yield path


def _written(
    metadata: TableMetadata, schema: pa.Schema, io: FileIO, batches: list[pa.RecordBatch]
) -> list[DataFile]:
    rows = pa.Table.from_batches(batches)
    named = pa.Table.from_arrays(
        [
            rows.column(column.name)
            if column.name in rows.column_names
            else pa.nulls(rows.num_rows, column.type)
            for column in schema
        ],
        names=schema.names,
    )
    typed = named.cast(schema)
    metadata = _without_partial_bounds(metadata, typed)
    if metadata.spec().is_unpartitioned():
        files = _dataframe_to_data_files(
            table_metadata=metadata, df=typed, io=io, write_uuid=uuid.uuid4()
        )
    else:
        files = _files_by_partition(metadata, typed, io)
    return list(files)


def _files_by_partition(metadata: TableMetadata, rows: pa.Table, io: FileIO) -> Iterable[DataFile]:
    """Write files by `split_rows`. PyIceberg's split filters all rows once for each partition."""
    schema = pyarrow_to_schema(
        rows.schema,
        name_mapping=metadata.schema().name_mapping,
        format_version=metadata.format_version,
    )
    file_bytes = property_as_int(
        metadata.properties,
        TableProperties.WRITE_TARGET_FILE_SIZE_BYTES,
        TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT,
    )
    assert file_bytes is not None
    write_id, number = uuid.uuid4(), count()
    tasks = (
        WriteTask(write_id, next(number), schema, batches, partition_key=partition)
        for partition, part in split_rows(metadata, rows)
        for batches in bin_pack_arrow_table(part, file_bytes)
    )
    return write_file(io, metadata, tasks)


def files_at(table: Table, paths: Sequence[str]) -> list[DataFile]:
    """Files that were written for `table` before, by their footers. Texts and bytes have no bounds:
    some footers lack them, and PyIceberg fails for bounds of some texts (see `_write`)."""
    without = {
        f"{_METRICS_OF_COLUMN}{field.name}": "counts"
        for field in table.schema().fields
        if isinstance(field.field_type, StringType | BinaryType)
    }
    properties = {**table.metadata.properties, **without}
    metadata = table.metadata.model_copy(update={"properties": properties})
    return [parquet_file_to_data_file(table.io, metadata, path) for path in paths]


def newest_timestamp_ms(table: Table, files: Iterable[DataFile]) -> int | None:
    """Return the highest timestamp of a record in new `files` of rows, in ms since 1970. None if
    the files have no bounds of timestamps, or the table has no such column."""
    if TIMESTAMP not in table.schema().column_names:
        return None
    field = table.schema().find_field(TIMESTAMP)
    bounds = ((each.upper_bounds or {}).get(field.field_id) for each in files)
    found = [int.from_bytes(each, "little", signed=True) for each in bounds if each is not None]
    return max(found) // 1000 if found else None


def packed_file(file: DataFile) -> bytes:
    """For the way to the driver."""
    return pickle.dumps(file, protocol=5)


def unpacked_file(data: bytes) -> DataFile:
    """Read a file's description from a task. The driver trusts the tasks of its job."""
    file = pickle.loads(data)
    assert isinstance(file, DataFile)
    return file
