"""A table and its dead letters, as batches of an ingest leave them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from bucketlog.log_reader.tables.dead_letters import pending_files, publish_dead_letters
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.iceberg_table import IcebergTable
from bucketlog.log_reader.tables.progress import Commit, TopicEnds
from bucketlog.log_reader.tables.rows import BATCH, DAY, DEAD_LETTERS, RowMaker, RowShape, numbered
from bucketlog.log_reader.tables.table_target import TableName

OLD = RowShape(pa.schema([("id", pa.int32())]), bad_records="dead-letter")
NAME = TableName.parse("lake.db.orders")


class BatchedTable:
    """A table and its dead letters, as batches of an ingest leave them."""

    def __init__(self, folder: Path) -> None:
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
        self.catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
        rows = pa.schema([*OLD.columns, (BATCH, pa.int64())])
        prepared_table(self.catalog, NAME.table, rows, partition_by=DAY)
        letters = pa.schema([*DEAD_LETTERS, (BATCH, pa.int64())])
        prepared_table(self.catalog, NAME.letters, letters, partition_by=None)
        self.batches = 0
        self.offset = 0

    def load(self, table: str = NAME.table) -> Table:
        return self.catalog.load_table(table)

    def ingest(self, *values: bytes, timestamp_us: int = 0) -> None:
        """Commit a batch of an ingest, as `TableTarget` does."""
        self.batches += 1
        count = len(values)
        records = pa.record_batch(
            {
                "key": pa.array([b"k"] * count, pa.binary()),
                "value": pa.array(values, pa.binary()),
                "topic": ["orders"] * count,
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(self.offset, self.offset + count), pa.int64()),
                "timestamp": pa.array([timestamp_us] * count, pa.timestamp("us", tz="UTC")),
            }
        )
        self.offset += count
        made = RowMaker(OLD).rows(records)
        files = {}
        for name, batch in ((NAME.table, made.rows), (NAME.letters, made.dead)):
            writer = TableFiles.of(self.load(name)).writer()
            writer.add(numbered(batch, self.batches))
            files[name] = writer.finish()
        table = IcebergTable("lake.db.orders", self.load)
        letters = IcebergTable("lake.db.letters", lambda: self.load(NAME.letters))
        paths = [file.file_path for file in files[NAME.letters]]
        commit = Commit(
            batch=self.batches,
            attempt=f"attempt {self.batches}",
            topics={"orders": TopicEnds(topic_id="id", ends={0: self.offset})},
            dead_letters=pending_files(
                NAME.letters, paths, made.dead.num_rows, letters.base().standing
            ),
        )
        table.append(files[NAME.table], commit, table.base().standing)
        publish_dead_letters(letters, commit)

    def rows(self) -> list[tuple[int, int, Any]]:
        """Return offset, batch and id of each row."""
        found = self.load().scan().to_arrow().sort_by("_log_offset")
        return [tuple(found[name][at].as_py() for name in ("_log_offset", BATCH, "id"))
                for at in range(found.num_rows)]  # fmt: skip

    def letters(self) -> list[int]:
        return sorted(self.load(NAME.letters).scan().to_arrow()["_log_offset"].to_pylist())
