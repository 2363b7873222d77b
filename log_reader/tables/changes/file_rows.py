"""Rows of a data file of an Iceberg table, batch by batch.

Invariants: rows that positional deletes or deletion vectors delete are left out. The rows of a file
have the same order in each read. Memory does not depend on the size of the file: PyArrow reads some
batches ahead, each with up to 131,072 rows. A table with equality deletes cannot be read.
"""

from collections.abc import Generator, Iterable, Sequence

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files, schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table

from bucketlog.log_format.errors import ConfigurationError


def live_files(table: Table) -> Iterable[FileScanTask]:
    """Return the data files of the table, each with its deletes. Raises `ConfigurationError` if
    the deletes cannot be read."""
    try:
        return table.scan().plan_files()
    except (ValueError, NotImplementedError) as error:
        raise ConfigurationError(
            f"the files of {'.'.join(table.name())} cannot be read: {error}",
            remedy="let the engine that deleted rows rewrite these files, such as Spark by "
            "rewrite_data_files; then run the ingest again",
        ) from error


def file_rows(
    table: Table, task: FileScanTask, columns: Sequence[str] | None = None
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a file, with the columns of the table, or with these `columns` only."""
    schema = table.schema() if columns is None else table.schema().select(*columns)
    scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
    deletes = _read_all_delete_files(table.io, [task])
    arrow = schema_to_pyarrow(schema, include_field_ids=False)
    for batch in scan._record_batches_from_scan_tasks_and_deletes([task], deletes):
        yield batch.select(arrow.names).cast(arrow)  # other engines have other types of Arrow
