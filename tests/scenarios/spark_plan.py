"""How long Spark's driver plans a log of many segments, and what planning and reading ask of the
bucket.

At full size, from the repository's root: `make prove WHAT=spark-plan`.
"""

import os
import pickle
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from pyspark.sql import DataFrame, SparkSession

from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.spark_jobs.session import local_session
from bucketlog.spark_jobs.task import Task
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket, parse_location
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import SyncBucket
from localstack.servers import StoreName, running
from tests.proofs.shortfall import Figures
from tests.scenarios.large_logs import (
    MIB,
    TOPIC,
    large_batches,
    many_segments,
    tiered_segments,
    to_bucket,
    to_folder,
)
from tests.servers.cluster import Store

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Planned:
    """`seconds` are the user's: from `.load()` until Spark knows its tasks. The rest is what the
    source says: its own part of that, and what it asked."""

    seconds: float
    planner_seconds: float
    gets: int
    lists: int
    bytes: int
    tasks: int
    task_bytes: int

    def as_json(self) -> Figures:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Read:
    gets: int
    bytes: int
    records: int
    gets_per_gib: float


@dataclass(frozen=True, slots=True)
class PlannedLog:
    """`pickled_bytes` are those of all tasks together, which name `batches`."""

    with_checkpoint: Planned
    bare: Planned
    batches: int
    pickled_bytes: int


@dataclass(frozen=True, slots=True)
class LargeRead:
    planned: Planned
    read: Read

    def as_json(self) -> Figures:
        return {"planned": asdict(self.planned), "read": asdict(self.read)}


@contextmanager
def session() -> Iterator[SparkSession]:
    """Of which the sources' own lines can be asked."""
    spark = local_session(
        config={
            "spark.log.level": "FATAL",
            "spark.sql.pyspark.worker.logging.enabled": "true",
        }
    )
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def urls(store: Store) -> Iterator[Iterator[str]]:
    """A place for each log. To be entered before `session`, whose processes inherit what finds the
    store."""
    with TemporaryDirectory(prefix="bucketlog-large-") as folder, ExitStack() as closing:
        root = f"file://{folder}"
        if store is Store.MINIO:
            server = closing.enter_context(running(StoreName.MINIO, Path(folder)))
            server.make_bucket("large")
            closing.enter_context(mock.patch.dict(os.environ, server.environment()))
            root = "s3://large"
        yield (f"{root}/log{number}" for number in count())


def stored(made: MemoryBucket, url: str) -> None:
    location = parse_location(url)
    if location.scheme == "file":
        to_folder(made, Path(location.path) / "0")
        return
    bucket = open_sync_bucket(url)
    to_bucket(made, bucket)
    bucket.close()


def plan(spark: SparkSession, url: str) -> tuple[Planned, DataFrame]:
    began = time.perf_counter()
    frame = spark.read.format("bucketlog").option("subscribe", TOPIC).load(url)
    tasks = frame.rdd.getNumPartitions()
    seconds = time.perf_counter() - began
    told = _told(spark, f"planned {url}")[-1]
    assert told["tasks"] == tasks
    names = ("gets", "lists", "bytes", "tasks", "task_bytes")
    asked = (told[name] for name in names)
    return Planned(round(seconds, 2), round(told["milliseconds"] / 1000, 2), *asked), frame


def read(spark: SparkSession, url: str, frame: DataFrame) -> Read:
    before = len(_told(spark, f"read {url}"))
    records = frame.count()
    told = _told(spark, f"read {url}")[before:]
    assert records == sum(each["records"] for each in told)
    gets, size = (sum(each[name] for each in told) for name in ("gets", "bytes"))
    return Read(gets, size, records, round(gets / (size / GIB), 1))


def _told(spark: SparkSession, what: str) -> list[dict[str, int]]:
    rows = spark.sql(
        "SELECT context FROM python_worker_logs() "
        f"WHERE logger = 'bucketlog.spark' AND startswith(msg, '{what}:') ORDER BY ts"
    ).collect()
    return [
        {name: int(value) for name, value in row["context"].items() if value.isdigit()}
        for row in rows
    ]


def pickled_bytes(bucket: SyncBucket, url: str) -> tuple[int, int]:
    """What the tasks of a plan weigh on their way, and how many batches they name."""
    tasks = planned_tasks(bucket, parse_options({"path": url, "subscribe": TOPIC}))
    batches = sum(
        len(run.rows) for task in tasks for piece in task for run in getattr(piece, "runs", ())
    )
    return sum(len(pickle.dumps(Task.of(pieces))) for pieces in tasks), batches


def without_checkpoint(url: str) -> None:
    bucket = open_sync_bucket(url)
    bucket.delete([info.key for info in bucket.list(keys.CHECKPOINTS)])
    bucket.close()


def plan_many(spark: SparkSession, url: str, segments: int, tail: int) -> PlannedLog:
    """With a checkpoint, then without it."""
    stored(many_segments(segments, tail), url)
    with_checkpoint, _ = plan(spark, url)
    bucket = open_sync_bucket(url)
    weight, batches = pickled_bytes(bucket, url)
    bucket.close()
    without_checkpoint(url)
    bare, _ = plan(spark, url)
    return PlannedLog(with_checkpoint, bare, batches, weight)


def plan_tiers(
    spark: SparkSession, url: str, segments: int, tail: int, batches_an_object: int
) -> Planned:
    stored(tiered_segments(segments, tail, batches_an_object), url)
    return plan(spark, url)[0]


def read_large(
    spark: SparkSession, url: str, segments: int, objects: int, object_mib: int
) -> LargeRead:
    stored(large_batches(segments, objects, object_mib * MIB), url)
    planned, frame = plan(spark, url)
    return LargeRead(planned, read(spark, url, frame))
