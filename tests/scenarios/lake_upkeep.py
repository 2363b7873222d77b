"""Maintenance of Iceberg tables during ingests: deletes, rewrites and expiry, and two readers.

A stream of Spark reads each table. Invariant: the append that the stream has read last does not
expire, and neither do later snapshots. Spark keeps its place in the stream as such a snapshot.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyiceberg.table.snapshots import Operation, Snapshot
from pyspark.errors import PySparkException

from bucketlog.log_reader.tables.iceberg_table import PROPERTY, ancestors_of
from tests.scenarios.lake_session import CATALOG, LakeSession

READ = ("_log_partition", "_log_offset", "id", "_ingest_batch")
DELETED_TOGETHER = 5
_SKIPPED = {
    "streaming-skip-delete-snapshots": "true",
    "streaming-skip-overwrite-snapshots": "true",
}
_PROPERTIES = "'write.delete.isolation-level'='snapshot', 'commit.retry.num-retries'='20'"
"""With snapshot isolation, a delete does not conflict with the appends of an ingest."""


@dataclass
class UpkeepFigures:
    """Counts of statements. `failed` has the errors of statements that failed."""

    deletes: int = 0
    rewrites: int = 0
    expiries: int = 0
    failed: list[str] = field(default_factory=list)


class Upkeep:
    """Maintains tables, one after the other."""

    def __init__(self, lake: LakeSession, folder: Path, tables: Sequence[str]) -> None:
        self._lake = lake
        self._folder = folder
        self._tables = tables
        self._prepared: set[str] = set()
        self.deleted: dict[str, set[int]] = {table: set() for table in tables}
        self.figures = UpkeepFigures()

    def run(self, stopped: threading.Event) -> None:
        """Maintain the tables until `stopped` is set."""
        while not stopped.is_set():
            for table in self._tables:
                if not stopped.wait(0.5) and self._lake.catalog.table_exists(table):
                    self._care_for(table)

    def read_stream(self, table: str) -> None:
        """Let the stream read all snapshots that the table has now."""
        self._lake.spark.catalog.refreshTable(f"{CATALOG}.{table}")
        source = self._lake.spark.readStream.format("iceberg").options(**_SKIPPED)
        sink = source.load(f"{CATALOG}.{table}").select(*READ).writeStream.format("parquet")
        sink = sink.option("checkpointLocation", str(self._folder / "checkpoints" / table))
        query = sink.trigger(availableNow=True).start(self._sink(table))
        query.awaitTermination()

    def streamed(self, table: str) -> pa.Table:
        """Return the rows that the stream has read."""
        return self._lake.spark.read.parquet(self._sink(table)).toArrow()

    def increment(self, table: str) -> tuple[set[int], pa.Table]:
        """Read the appends after the oldest snapshot that the table still has. Return the batches
        and the rows of these appends."""
        loaded = self._lake.catalog.load_table(table)
        newest, *_, oldest = ancestors_of(loaded.metadata)
        batches = {
            json.loads(each.summary[PROPERTY] or "")["batch"]
            for each in ancestors_of(loaded.metadata)
            if each is not oldest and is_append(each) and each.summary is not None
        }
        reader = self._lake.spark.read.format("iceberg")
        reader = reader.option("start-snapshot-id", oldest.snapshot_id)
        reader = reader.option("end-snapshot-id", newest.snapshot_id)
        return batches, reader.load(f"{CATALOG}.{table}").select(*READ).toArrow()

    def _sink(self, table: str) -> str:
        return f"file://{self._folder}/streamed/{table}"

    def _care_for(self, table: str) -> None:
        name = f"{CATALOG}.{table}"
        if table not in self._prepared:
            self._statement(f"ALTER TABLE {name} SET TBLPROPERTIES ({_PROPERTIES})")
            self._prepared.add(table)
        ancestors = ancestors_of(self._lake.catalog.load_table(table).metadata)
        read = next(filter(is_append, ancestors), None)
        self.read_stream(table)
        self._delete(table)
        self.figures.rewrites += self._statement(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', "
            "options => map('min-input-files', '4'))"
        )
        if read is not None:
            self._expire(table, read)

    def _delete(self, table: str) -> None:
        """Delete some rows. If the statement fails, a query shows whether the rows are deleted."""
        name = f"{CATALOG}.{table}"
        rows = self._lake.spark.sql(
            f"SELECT id FROM {name} ORDER BY rand() LIMIT {DELETED_TOGETHER}"
        ).collect()
        ids = {row["id"] for row in rows}
        if not ids:
            return
        these = f"id IN ({', '.join(map(str, ids))})"
        if not self._statement(f"DELETE FROM {name} WHERE {these}"):
            self._lake.spark.catalog.refreshTable(name)
            left = self._lake.spark.sql(f"SELECT count(*) FROM {name} WHERE {these}").collect()
            if left[0][0]:
                return
        self.deleted[table] |= ids
        self.figures.deletes += 1

    def _expire(self, table: str, read: Snapshot) -> None:
        """Expire the snapshots before `read`, which the stream has read."""
        at = datetime.fromtimestamp(read.timestamp_ms / 1_000, UTC)
        self.figures.expiries += self._statement(
            f"CALL {CATALOG}.system.expire_snapshots(table => '{table}', "
            f"older_than => TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f} UTC')"
        )

    def _statement(self, statement: str) -> bool:
        """Run a statement. Return False after an error, such as a conflict with another commit."""
        try:
            self._lake.spark.sql(statement).collect()
        except (Py4JJavaError, PySparkException) as error:
            self.figures.failed.append(f"{statement[:40]}: {str(error).splitlines()[0][:200]}")
            return False
        return True


def is_append(snapshot: Snapshot) -> bool:
    """Return True for a snapshot that only added files: here, always that of an ingest."""
    return snapshot.summary is not None and snapshot.summary.operation is Operation.APPEND
