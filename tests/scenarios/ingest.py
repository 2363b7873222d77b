"""Topics with JSON values into an Iceberg table and into Parquet on MinIO, by jobs that are killed.

At full size, from the repository's root: `make prove WHAT=ingest`. Two jobs run at once, one for
each target, while an idempotent producer goes on; each is killed with kill -9, Python, Java and
all, after it made a random number of objects, and started again. In the end both targets hold what
was acknowledged, each record once; and Parquet never showed a record twice on the way.
"""

import json
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias
from uuid import uuid4

import psutil
import pyarrow.dataset
from confluent_kafka import KafkaError, Message, Producer
from pyarrow.fs import FileType, S3FileSystem
from pyspark.sql import SparkSession

from bucketlog.log_reader.tables.ingest_loop import IngestReport
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.spark_jobs.ingest.iceberg import IcebergTarget
from bucketlog.spark_jobs.ingest.job import ingest
from bucketlog.spark_jobs.ingest.parquet import ParquetTarget
from bucketlog.spark_jobs.ingest.rows import parse_shape
from bucketlog.spark_jobs.ingest.target import SparkTarget
from bucketlog.spark_jobs.session import local_session
from localstack.servers import ACCESS_KEY, REGION, SECRET_KEY, RunningStore
from localstack.spark_jars import (
    iceberg_settings,
    installed_jars,
    jar_settings,
    s3a_settings,
)
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.shell import COMMAND
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster

LAKE = "lake"
TOPICS = {"orders": 3, "refunds": 1}
SCHEMA = "id string, amount double"
TABLE = "lake.db.records"
PARQUET = f"s3a://{LAKE}/parquet"
SETTINGS = {"flush_interval_ms": "250", "checkpoint_interval_ms": "3000"}
PREFIXES = {"iceberg": "warehouse/", "parquet": "parquet/"}
COLUMNS = ["_log_topic", "_log_partition", "_log_offset", "id"]
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PACE_S = 0.02
PACE_RECORDS = 10
TRIES_A_KILL = 4

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class IngestFigures:
    """Of both targets: runs that were killed and that ended, the batches that all runs and those
    killed committed, and what was there in the end."""

    produced: int
    kills: dict[str, int]
    ended: dict[str, int]
    batches: dict[str, int]
    batches_of_killed: dict[str, int]
    rows: dict[str, int]
    twice: dict[str, int]
    missing: dict[str, int]
    resumed_files: int
    """Of Parquet batches that a kill had left committed and not published."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class JsonLoad(threading.Thread):
    """An idempotent producer; `acknowledged` has a row for every record that the log took."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="json-load")
        self.acknowledged: Counter[Row] = Counter()
        self.failures: list[str] = []
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "log_level": 0,
            }
        )
        self._sent = 0

    def send(self, many: int) -> None:
        for number in range(self._sent, self._sent + many):
            topic = "refunds" if number % 5 == 0 else "orders"
            value = json.dumps({"id": f"{topic}-{number}", "amount": number / 2})
            partition = number % TOPICS[topic]
            self._producer.produce(topic, value, partition=partition, on_delivery=self._settled)
            self._producer.poll(0)
        self._sent += many

    def flush(self) -> None:
        left = self._producer.flush(PATIENCE_S)
        assert not left, f"{left} records are neither acknowledged nor refused"
        assert not self.failures, self.failures[:3]

    def run(self) -> None:
        while not self._stopping.wait(PACE_S):
            self.send(PACE_RECORDS)

    def stop(self) -> None:
        self._stopping.set()
        self.join()
        self.flush()

    def _settled(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        value = message.value()
        assert isinstance(value, bytes)
        place = (message.topic(), message.partition(), message.offset())
        self.acknowledged[*place, json.loads(value)["id"]] += 1


@dataclass
class Jobs:
    """The runs of one target's job."""

    cluster: Cluster
    kind: str
    max_batch_offsets: int
    objects_before_kill: tuple[int, int]
    seed: int
    kills: int = 0
    ended: int = 0
    batches: int = 0
    resumed_files: int = 0

    def kill(self, times: int) -> None:
        chance = random.Random(self.seed)
        for _ in range(times * TRIES_A_KILL):
            if self.kills == times:
                return
            self._run(chance.randint(*self.objects_before_kill))
        raise AssertionError(f"{self.kind}: {self.kills} of {times} kills, the runs are too short")

    def _run(self, objects: int) -> None:
        before = self._objects()
        made: set[str] = set()
        with self._started() as process:
            deadline = Deadline(lambda: f"{self.kind}: {len(made)} objects were made")
            while process.poll() is None and len(made) < objects:
                deadline.pause()
                made |= self._objects() - before
            if process.poll() is None:
                _kill(process)
                self.kills += 1
            else:
                self._was_ended(process)
        if self.kind == "parquet":
            twice = [row for row, many in parquet_rows(_store(self.cluster)).items() if many > 1]
            assert not twice, f"seen twice after kill {self.kills}: {twice[:3]}"

    def _was_ended(self, process: "subprocess.Popen[str]") -> None:
        output, errors = process.communicate()
        assert process.returncode == 0, f"{self.kind}: {errors[-3000:]}"
        report = json.loads(output.splitlines()[-1])
        self.ended += 1
        self.batches += report["batches"]
        self.resumed_files += report["resumed_files"]

    @contextmanager
    def _started(self) -> Iterator["subprocess.Popen[str]"]:
        target = TABLE if self.kind == "iceberg" else PARQUET
        command = [*COMMAND, "spark", "ingest", "--cores", "1"]
        command += ["--bucket", self.cluster.bucket_url, "--topics", ",".join(TOPICS)]
        command += ["--schema", SCHEMA, f"--{self.kind}", target]
        command += ["--max-batch-offsets", str(self.max_batch_offsets)]
        for name, value in settings(self.cluster).items():
            command += ["--conf", f"{name}={value}"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    _kill(process)

    def _objects(self) -> set[str]:
        with _store(self.cluster).client() as client:
            pages = client.get_paginator("list_objects_v2").paginate(
                Bucket=LAKE, Prefix=PREFIXES[self.kind]
            )
            return {item["Key"] for page in pages for item in page.get("Contents", [])}


def settings(cluster: Cluster) -> dict[str, str]:
    """Of a session that has both targets."""
    return {
        **jar_settings(installed_jars()),
        **s3a_settings(_store(cluster)),
        **iceberg_settings("lake", cluster.folder / "catalog.db", f"s3a://{LAKE}/warehouse"),
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.log.level": "ERROR",
    }


def _store(cluster: Cluster) -> RunningStore:
    assert cluster.store is not None
    return cluster.store


def _kill(process: "subprocess.Popen[str]") -> None:
    """kill -9 of the job and every process under it."""
    top = psutil.Process(process.pid)
    family = [top, *top.children(recursive=True)]
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass  # it ended with one that was killed before
    psutil.wait_procs(family[1:], 30)
    process.wait(PATIENCE_S)


def ingest_killed(
    kills: int,
    records: int,
    *,
    max_batch_offsets: int,
    objects_before_kill: tuple[int, int],
    seed: int = 11,
) -> IngestFigures:
    """`objects_before_kill`: the fewest and the most that a run makes. Raises `AssertionError`;
    nothing is left running."""
    began = time.perf_counter()
    with running_cluster(1, store=Store.MINIO, settings=SETTINGS) as cluster:
        _store(cluster).make_bucket(LAKE)
        for topic, partitions in TOPICS.items():
            create_topic(cluster.bootstrap, topic, partitions)
        load = JsonLoad(cluster.bootstrap)
        load.send(records)
        load.flush()
        load.start()
        jobs = [
            Jobs(cluster, kind, max_batch_offsets, objects_before_kill, seed + at)
            for at, kind in enumerate(("iceberg", "parquet"))
        ]
        try:
            with ThreadPoolExecutor(len(jobs)) as pool:
                for done in [pool.submit(job.kill, kills) for job in jobs]:
                    done.result()
        finally:
            load.stop()
        reports, rows = _finish(cluster)
    expected = load.acknowledged
    return IngestFigures(
        produced=expected.total(),
        kills={job.kind: job.kills for job in jobs},
        ended={job.kind: job.ended for job in jobs},
        batches={kind: report.last_batch or 0 for kind, report in reports.items()},
        batches_of_killed={
            job.kind: (reports[job.kind].last_batch or 0) - reports[job.kind].batches - job.batches
            for job in jobs
        },
        rows={kind: found.total() for kind, found in rows.items()},
        twice={kind: (found - expected).total() for kind, found in rows.items()},
        missing={kind: (expected - found).total() for kind, found in rows.items()},
        resumed_files=sum(job.resumed_files for job in jobs) + reports["parquet"].resumed_files,
        seconds=round(time.perf_counter() - began, 1),
    )


def _finish(cluster: Cluster) -> tuple[dict[str, IngestReport], dict[str, Counter[Row]]]:
    """Each target is ingested into until there is nothing new, and read."""
    spark = local_session(config=settings(cluster))
    try:
        targets: dict[str, SparkTarget] = {
            "iceberg": IcebergTarget(spark, TABLE, new_id=_new_id),
            "parquet": ParquetTarget(spark, PARQUET, source=cluster.bucket_url, new_id=_new_id),
        }
        reports = {kind: _ingest(spark, cluster, target) for kind, target in targets.items()}
        for target in targets.values():
            assert _ingest(spark, cluster, target).batches == 0
        iceberg = spark.table(TABLE).select(*COLUMNS).collect()
        rows = {"iceberg": Counter(map(tuple, iceberg)), "parquet": parquet_rows(_store(cluster))}
    finally:
        spark.stop()
    return reports, rows


def _ingest(spark: SparkSession, cluster: Cluster, target: SparkTarget) -> IngestReport:
    log = IngestedLog(cluster.bucket_url, list(TOPICS), {})
    return ingest(spark, log, target, parse_shape(SCHEMA, None))


def _new_id() -> str:
    return uuid4().hex


def parquet_rows(store: RunningStore) -> Counter[Row]:
    """As a reader that knows nothing of ingests sees them."""
    files = S3FileSystem(
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
        region=REGION,
        endpoint_override=store.endpoint_url,
    )
    folder = f"{LAKE}/{PREFIXES['parquet'].rstrip('/')}"
    if files.get_file_info(folder).type is not FileType.Directory:
        return Counter()
    found = pyarrow.dataset.dataset(folder, filesystem=files, partitioning="hive")
    if not found.files:
        return Counter()
    table = found.to_table(columns=COLUMNS)
    columns: Sequence[list[Any]] = [table[name].to_pylist() for name in COLUMNS]
    return Counter(zip(*columns, strict=True))
