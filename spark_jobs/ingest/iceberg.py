"""An Iceberg table as the target: rows and end offsets in one snapshot.

Batch n is written as an overwrite of `_ingest_batch = n`, validated serializably against the
snapshot that the ingest went on from: rows of batch n that another one has committed since are a
conflict. So no batch may be without rows (the job leaves such stretches to the next batch).

Where a table stands says the newest snapshot with the property `bucketlog.ingest` among the
ancestors of the current one: maintenance has no such property, and a rollback takes offsets back
together with rows. Where snapshots have expired, the rows' own offsets say it.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from py4j.protocol import Py4JJavaError

from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError
from bucketlog.spark_jobs.ingest.progress import Commit, IngestConflictError, TargetState, TopicEnds
from bucketlog.spark_jobs.ingest.rows import BATCH, DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PROPERTY = "bucketlog.ingest"
_WIDER = {"tinyint": "int", "smallint": "int"}
"""Types that Iceberg stores as another one."""
_READ_AGAIN = 3


class _Snapshot(NamedTuple):
    parent_id: int | None
    summary: Mapping[str, str]


class IcebergTarget:
    """`table` as Spark names it: catalog.database.table."""

    def __init__(self, spark: "SparkSession", table: str, *, new_id: Callable[[], str]) -> None:
        self._spark = spark
        self._table = table
        self._new_id = new_id
        self._added = 0
        self._base: int | None = None
        """The snapshot that `TargetState` is about: the current one, or the commit's own."""

    @property
    def name(self) -> str:
        return self._table

    def prepare(self, columns: "StructType") -> TargetState:
        from pyspark.sql.types import LongType, StructField, StructType

        wanted = StructType([*columns, StructField(BATCH, LongType())])
        if not self._spark.catalog.tableExists(self._table):
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self._table} ({wanted.toDDL()}) USING iceberg "
                f"PARTITIONED BY ({DAY}) "
                # the conflict check reads the bounds of this column, however wide the table is
                f"TBLPROPERTIES ('write.metadata.metrics.column.{BATCH}'='full')"
            )
        self._spark.catalog.refreshTable(self._table)
        self._check_columns(wanted)
        return self._standing()

    def write(
        self, rows: "DataFrame", standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> tuple[TargetState, int]:
        from pyspark.errors import PySparkException
        from pyspark.sql import functions

        batch = standing.next_batch
        commit = Commit(batch=batch, attempt=self._new_id(), topics=dict(topics))
        writer = (
            rows.withColumn(BATCH, functions.lit(batch).cast("bigint"))
            .writeTo(self._table)
            .option(f"snapshot-property.{PROPERTY}", commit.model_dump_json())
            .option("isolation-level", "serializable")
        )
        if self._base is not None:
            writer = writer.option("validate-from-snapshot-id", str(self._base))
        try:
            writer.overwrite(functions.col(BATCH) == batch)
        except (Py4JJavaError, PySparkException) as error:
            after = self._standing()
            if after.commit is None or after.commit.batch < batch:
                raise
            if after.commit.attempt != commit.attempt:
                raise IngestConflictError(self._table, batch) from error
            # an answer was lost: it is committed
        else:
            after = self._standing()
        if after.commit is None or after.commit.attempt != commit.attempt:
            raise IngestConflictError(self._table, batch + 1)
        return after, self._added

    def _check_columns(self, wanted: "StructType") -> None:
        stored = {
            field.name: field.dataType.simpleString()
            for field in self._spark.table(self._table).schema
        }
        asked = {
            field.name: _WIDER.get(kind := field.dataType.simpleString(), kind) for field in wanted
        }
        differing = sorted(
            name for name in {**stored, **asked} if stored.get(name) != asked.get(name)
        )
        if differing:
            listed = ", ".join(
                f"{name}: {stored.get(name, 'none')} in the table, {asked.get(name, 'none')} wanted"
                for name in differing
            )
            raise ConfigurationError(
                f"the columns of {self._table} are others: {listed}",
                remedy="give the schema that the table was made with, or another table",
            )

    def _standing(self) -> TargetState:
        current, snapshots = self._snapshots()
        self._base = current
        at = current
        while at is not None and at in snapshots:
            text = snapshots[at].summary.get(PROPERTY)
            if text is not None:
                self._base = at
                self._added = int(snapshots[at].summary.get("added-records", "0"))
                return TargetState(_parsed(self._table, text), "commit")
            at = snapshots[at].parent_id
        if current is None:
            return TargetState(None, "nothing")
        return TargetState(self._from_rows(current), "rows")

    def _snapshots(self) -> tuple[int | None, dict[int, _Snapshot]]:
        for _ in range(_READ_AGAIN):
            self._spark.catalog.refreshTable(self._table)
            found = {
                row["snapshot_id"]: _Snapshot(row["parent_id"], row["summary"])
                for row in self._spark.sql(
                    f"SELECT snapshot_id, parent_id, summary FROM {self._table}.snapshots"
                ).collect()
            }
            refs = self._spark.sql(
                f"SELECT snapshot_id FROM {self._table}.refs WHERE name = 'main'"
            ).collect()
            current = refs[0]["snapshot_id"] if refs else None
            if current is None or current in found:
                return current, found
        raise CorruptObjectError(
            self._table, 0, f"snapshot {current} of its branch main is not among its snapshots"
        )

    def _from_rows(self, snapshot: int) -> Commit:
        """Topic ids are not known then."""
        frame = self._spark.read.option("versionAsOf", snapshot).table(self._table)
        last = frame.groupBy("_log_topic", "_log_partition").max("_log_offset", BATCH)
        ends: dict[str, dict[int, int]] = {}
        batch = 0
        for row in last.toDF("topic", "partition", "last", "batch").collect():
            ends.setdefault(row["topic"], {})[row["partition"]] = row["last"] + 1
            batch = max(batch, row["batch"])
        if not ends:
            raise ConfigurationError(
                f"{self._table} has snapshots, but neither a row nor the offsets of an ingest",
                remedy="roll it back to a snapshot of an ingest, or ingest into a new table",
            )
        return Commit(
            batch=batch,
            attempt="",
            topics={
                topic: TopicEnds(topic_id="", ends=dict(sorted(by.items())))
                for topic, by in ends.items()
            },
        )


def _parsed(table: str, text: str) -> Commit:
    try:
        return Commit.model_validate_json(text)
    except ValueError as error:
        raise CorruptObjectError(
            table, 0, f"snapshot property {PROPERTY} does not parse: {error}"
        ) from error
