"""Rows become data files of an Iceberg table, in a task. Spark-free.

Invariants: each attempt of a task writes files with new names, and only files that a driver commits
belong to the table. So an attempt that fails, or runs twice, adds no row; its files are orphans,
which Iceberg's maintenance removes. Memory is bounded by `buffer_bytes_max`.
"""

import pickle
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table, TableProperties, WriteTask
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.utils.properties import property_as_int

BUFFER_BYTES_MAX = 128 * 1024 * 1024
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
        return cls(table.metadata.model_dump_json(), table.location(), dict(table.io.properties))

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
    partition = _only_partition(metadata, typed)
    if partition is None:
        files = _dataframe_to_data_files(
            table_metadata=metadata, df=typed, io=io, write_uuid=uuid.uuid4()
        )
    else:
        files = _files_of(metadata, typed, io, partition)
    return list(files)


def _only_partition(metadata: TableMetadata, rows: pa.Table) -> PartitionKey | None:
    """Return the partition of all rows. Return None if the rows have several partitions, or if the
    table has no partitions."""
    spec, schema = metadata.spec(), metadata.schema()
    values: list[PartitionFieldValue] = []
    for each in spec.fields:
        name = schema.find_column_name(each.source_id)
        if name not in rows.column_names:
            return None  # a field of a struct
        kind = schema.find_field(each.source_id).field_type
        found = pc.unique(each.transform.pyarrow_transform(kind)(rows.column(name)))
        if len(found) != 1:
            return None
        values.append(PartitionFieldValue(field=each, value=found[0].as_py()))
    return PartitionKey(values, spec, schema) if values else None


def _files_of(
    metadata: TableMetadata, rows: pa.Table, io: FileIO, partition: PartitionKey
) -> Iterable[DataFile]:
    """Write rows of one partition, without PyIceberg's split, which would copy the rows twice."""
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
    write_id = uuid.uuid4()
    tasks = (
        WriteTask(write_id, number, schema, batches, partition_key=partition)
        for number, batches in enumerate(bin_pack_arrow_table(rows, file_bytes))
    )
    return write_file(io, metadata, tasks)


def files_at(table: Table, paths: Sequence[str]) -> list[DataFile]:
    """Files that were written for `table` before, by their footers."""
    return [parquet_file_to_data_file(table.io, table.metadata, path) for path in paths]


def packed_file(file: DataFile) -> bytes:
    """For the way to the driver."""
    return pickle.dumps(file, protocol=5)


def unpacked_file(data: bytes) -> DataFile:
    """Read a file's description from a task. The driver trusts the tasks of its job."""
    file = pickle.loads(data)
    assert isinstance(file, DataFile)
    return file
