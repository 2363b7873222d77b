"""What tests of the ingest write and read: JSON values, and targets of both kinds."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader.tables.ingest_loop import IngestReport
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.progress import IngestConflictError
from bucketlog.log_reader.tables.rows import BadRecords
from bucketlog.spark_jobs.ingest.iceberg import IcebergTarget
from bucketlog.spark_jobs.ingest.job import ingest
from bucketlog.spark_jobs.ingest.parquet import ParquetTarget
from bucketlog.spark_jobs.ingest.rows import IngestShape, parse_shape
from bucketlog.tiered_storage.backends.location import S3Options
from localstack.spark_jars import iceberg_settings
from tests.rigs.patience import PATIENCE_S
from tests.rigs.written_log import START_MS
from tests.spark.conftest import Stored

SCHEMA = "id string, amount double"
DAY_MS = 24 * 60 * 60 * 1000
Kind: TypeAlias = Literal["iceberg", "parquet"]
Row: TypeAlias = tuple[str, int, int, str]
"""Topic, partition, offset, id."""
_numbers = count()


@dataclass
class Lake:
    """A log, and one target that it is ingested into."""

    spark: SparkSession
    stored: Stored
    kind: Kind
    name: str
    produced: Counter[Row] = field(default_factory=Counter)
    attempts: int = 0
    s3: S3Options | None = None

    @classmethod
    def of(cls, spark: SparkSession, stored: Stored, kind: Kind, folder: Path) -> "Lake":
        if kind == "parquet":
            return cls(spark, stored, kind, f"{folder}/lake")
        catalog = f"ingest{next(_numbers)}"
        settings = iceberg_settings(catalog, folder / "catalog.db", f"file://{folder}/warehouse")
        for name, value in settings.items():
            spark.conf.set(name, value)
        return cls(spark, stored, kind, f"{catalog}.db.orders")

    def produce(self, topic: str, partition: int, many: int) -> None:
        """In a segment of their own; a day later from record to record."""
        first = self.stored.log.next_offset.get(self.stored.log.partition(topic, partition), 0)
        values = [
            json.dumps({"id": f"{topic}/{partition}/{at}", "amount": at / 2})
            for at in range(first, first + many)
        ]
        self.put(topic, partition, *(value.encode() for value in values))
        for at in range(first, first + many):
            self.produced[topic, partition, at, f"{topic}/{partition}/{at}"] += 1

    def put(self, topic: str, partition: int, *values: bytes | None) -> None:
        records = [
            DecodedRecord(0, START_MS + at % 3 * DAY_MS, b"key", value)
            for at, value in enumerate(values)
        ]
        self.stored.log.append(topic, partition, records)
        self.stored.log.flush()

    def target(self) -> IcebergTarget | ParquetTarget:
        if self.kind == "iceberg":
            return IcebergTarget(self.spark, self.name, new_id=self.new_id)
        return ParquetTarget(
            self.spark, self.name, source=self.stored.url, new_id=self.new_id, s3=self.s3
        )

    def new_id(self) -> str:
        self.attempts += 1
        return f"{self.attempts:032x}"

    def ingest(
        self,
        target: IcebergTarget | ParquetTarget | None = None,
        *,
        topics: str = "orders",
        schema: str = SCHEMA,
        day_from: str | None = None,
        bad_records: BadRecords = "fail",
        max_batch_offsets: int = 1000,
        fail_on_data_loss: bool = True,
        shape: IngestShape | None = None,
        **options: str,
    ) -> IngestReport:
        """`shape` replaces the shape of `schema`, `day_from` and `bad_records`."""
        return ingest(
            self.spark,
            IngestedLog(self.stored.url, topics.split(","), options),
            target or self.target(),
            shape or parse_shape(schema, day_from, bad_records=bad_records),
            max_batch_offsets=max_batch_offsets,
            fail_on_data_loss=fail_on_data_loss,
        )

    def table(self) -> DataFrame:
        if self.kind == "iceberg":
            self.spark.catalog.refreshTable(self.name)
            return self.spark.table(self.name)
        return self.spark.read.parquet(self.name)

    def race(self) -> list[str]:
        """Two that begin to write the same batch at once: what each ended with, sorted."""
        both = Barrier(2)

        def at_once() -> str:
            target = self.target()
            write = target.write

            def late(*arguments: object) -> object:
                both.wait(PATIENCE_S)
                return write(*arguments)  # type: ignore[arg-type] # as it was called

            target.write = late  # type: ignore[method-assign,assignment] # to begin together
            try:
                return str(self.ingest(target).records)
            except IngestConflictError as error:
                return error.code
            except BrokenBarrierError:
                return "the other one did not begin to write"
            except BaseException:
                both.abort()
                raise

        with ThreadPoolExecutor(2) as pool:
            ended = [pool.submit(at_once) for _ in range(2)]
            return sorted(each.result() for each in ended)

    def rows(self) -> Counter[Row]:
        rows = self.table().select("_log_topic", "_log_partition", "_log_offset", "id").collect()
        return Counter(tuple(row) for row in rows)
