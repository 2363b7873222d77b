"""Maintenance of Iceberg tables during ingests: deletes, rewrites and expiry, and two readers.

A Spark stream reads each table. Invariant: the snapshots at which the last batches of the stream
ended do not expire. Spark cannot continue the stream without them. With the trigger `availableNow`,
Spark would even need all snapshots since the stream began.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyiceberg.table.snapshots import Operation, Snapshot
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from bucketlog.log_reader.tables.iceberg_table import PROPERTY, ancestors_of
from bucketlog.log_reader.tables.maintenance.small_files import RewriteRule
from bucketlog.log_reader.tables.maintenance.table_maintenance import (
    MaintenanceRules,
    TableMaintenance,
)
from bucketlog.log_reader.tables.table_target import TableName
from tests.scenarios.lake_session import CATALOG, LakeSession

READ = ("_log_partition", "_log_offset", "id", "_ingest_batch")
DELETED_TOGETHER = 5
STREAM_EVERY = "3 seconds"
_SKIPPED = {
    "streaming-skip-delete-snapshots": "true",
    "streaming-skip-overwrite-snapshots": "true",
}
_RULES = MaintenanceRules(RewriteRule(files_min=3), timedelta(days=30), timedelta(days=1))
_PROPERTIES = "'write.delete.isolation-level'='snapshot', 'commit.retry.num-retries'='20'"
"""With snapshot isolation, a delete does not conflict with the appends of an ingest."""


@dataclass
class UpkeepFigures:
    """Counts of statements. `failed` has the errors of statements that failed."""

    deletes: int = 0
    rewrites: int = 0
    maintained: int = 0
    replaced_files: int = 0
    expiries: int = 0
    failed: list[str] = field(default_factory=list)


class Upkeep:
    """Maintains tables, one after the other."""

    def __init__(self, lake: LakeSession, folder: Path, tables: Sequence[str]) -> None:
        self._lake = lake
        self._folder = folder
        self._tables = tables
        self._prepared: set[str] = set()
        self._streams: dict[str, StreamingQuery] = {}
        self.deleted: dict[str, set[int]] = {table: set() for table in tables}
        self.figures = UpkeepFigures()

    def run(self, stopped: threading.Event) -> None:
        """Maintain the tables until `stopped` is set."""
        while not stopped.is_set():
            for table in self._tables:
                if not stopped.wait(0.5) and self._lake.catalog.table_exists(table):
                    self._care_for(table)

    def start_stream(self, table: str) -> StreamingQuery:
        """Start the stream of a table, if it does not run yet. Raises the error of a stream that
        has failed."""
        found = self._streams.get(table)
        if found is not None:
            error = found.exception()
            if error is not None:
                raise error
            return found
        source = self._lake.spark.readStream.format("iceberg").options(**_SKIPPED)
        sink = source.load(f"{CATALOG}.{table}").select(*READ).writeStream.format("parquet")
        sink = sink.option("checkpointLocation", str(self._folder / "checkpoints" / table))
        started = sink.trigger(processingTime=STREAM_EVERY).start(self._sink(table))
        self._streams[table] = started
        return started

    @property
    def has_failed_stream(self) -> bool:
        return any(each.exception() is not None for each in list(self._streams.values()))

    def end_stream(self, table: str) -> None:
        """Let the stream read all snapshots of a table that does not change, and end the stream."""
        query = self.start_stream(table)
        query.processAllAvailable()
        query.stop()

    def streamed(self, table: str) -> pa.Table:
        """Return the rows that the stream has read."""
        return self._lake.spark.read.parquet(self._sink(table)).toArrow()

    def increment(self, table: str) -> tuple[set[int], pa.Table]:
        """Read the appends after the oldest snapshot that the table still has. Return the batches
        and the rows of these appends."""
        self._lake.spark.catalog.refreshTable(f"{CATALOG}.{table}")
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
        self.start_stream(table)
        self._delete(table)
        self._rewrite(table)
        self._expire(table)

    def _rewrite(self, table: str) -> None:
        """Rewrite small files, in turn by Spark and by `bucketlog table maintain`."""
        if self.figures.rewrites > self.figures.maintained:
            name = TableName.parse(f"{CATALOG}.{table}")
            maintenance = TableMaintenance(
                name, lambda: self._lake.catalog, Random(), lambda: datetime.now(UTC)
            )
            report, *_ = maintenance.run(_RULES)
            self.figures.maintained += 1
            self.figures.replaced_files += report.small_files
            return
        self.figures.rewrites += self._statement(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{table}', "
            "options => map('min-input-files', '4'))"
        )

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

    def _expire(self, table: str) -> None:
        """Expire the snapshots before the stream's last two places."""
        snapshots = self._lake.catalog.load_table(table).metadata.snapshots
        places = self._stream_places(table)
        times = [each.timestamp_ms for each in snapshots if each.snapshot_id in places]
        if len(times) < len(places) or not times:
            return
        at = datetime.fromtimestamp(min(times) / 1_000, UTC)
        self.figures.expiries += self._statement(
            f"CALL {CATALOG}.system.expire_snapshots(table => '{table}', "
            f"older_than => TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f} UTC')"
        )

    def _stream_places(self, table: str) -> set[int]:
        """Return the ids of the snapshots at which the last two batches of the stream ended. The
        last batch may still be running. Until there are two, the result is empty, because the first
        batch begins at the oldest snapshot."""
        offsets = self._folder / "checkpoints" / table / "offsets"
        if not offsets.exists():
            return set()
        numbers = sorted(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
        if len(numbers) < 2:
            return set()
        return {place_in(offsets / str(number)) for number in numbers[-2:]}

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


def place_in(offset: Path) -> int:
    """Return the id of the snapshot that a file of a stream's checkpoint names."""
    found: int = json.loads(offset.read_text().splitlines()[-1])["snapshot_id"]
    return found
