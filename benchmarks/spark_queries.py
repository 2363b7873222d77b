"""One way to read a topic into Spark, timed: a process of its own for `benchmarks.spark_replay`.

Takes a `Job` as JSON on standard input, gives `{"queries": {name: [Timing, ...]}, ...}` as JSON on
standard output. Every query runs on the small topic first, which warms Spark up and is checked
record by record (`checksum`), then on the large one. CPU seconds are those of this process, its
JVM and Python workers, and of the servers whose pids the job names, with all their children.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import psutil

from bucketlog.spark_jobs.parquet_lane import write_parquet
from bucketlog.spark_jobs.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ALL, PRUNED = "all columns", "pruned"
COUNT, AGGREGATE, PARQUET, REPLAY = "count", "aggregate", "parquet", "replay"
NEEDED = {COUNT: "offset long", AGGREGATE: "key binary"}
"""The columns that a query needs, as a schema."""


@dataclass(frozen=True, slots=True)
class Job:
    """`source` is a format with its `options`; `schema`: whether it takes one, to read less."""

    source: str
    options: dict[str, str]
    spark: dict[str, str]
    cores: int
    warm_topic: str
    topic: str
    queries: list[str]
    repetitions: int
    warm_up: int
    schema: bool
    target: str
    server_pids: list[int]


@dataclass(frozen=True, slots=True)
class Timing:
    seconds: float
    cpu_s: float


def cpu_seconds(pids: Sequence[int]) -> float:
    """Of all these processes, their children, and the children that they have waited for."""
    total = 0.0
    for pid in pids:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            try:
                total += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:  # it ended just now: its parent has its time
                continue
    return total


class Reading:
    """Runs queries over one source."""

    def __init__(self, spark: "SparkSession", job: Job) -> None:
        self._spark = spark
        self._job = job

    def frame(self, topic: str, schema: str | None = None) -> "DataFrame":
        reader = self._spark.read.format(self._job.source).options(**self._job.options)
        if schema:
            reader = reader.schema(schema)
        return reader.option("subscribe", topic).load()

    def checksum(self, topic: str) -> str:
        """Over key, value, partition and offset of every record, in any order."""
        found = self.frame(topic).selectExpr(
            "count(*) as records",
            "sum(cast(xxhash64(key, value, topic, partition, offset) as decimal(38, 0))) as hash",
            "sum(length(value)) as value_bytes",
        )
        return json.dumps({name: str(value) for name, value in found.collect()[0].asDict().items()})

    def count(self, topic: str, schema: str | None = None) -> Any:
        return self.frame(topic, schema).count()

    def aggregate(self, topic: str, schema: str | None = None) -> Any:
        rows = self.frame(topic, schema).groupBy("key").count().collect()
        return {bytes(row["key"]).decode(): row["count"] for row in rows}

    def parquet(self, topic: str) -> Any:
        self.frame(topic).write.mode("overwrite").parquet(self._job.target)

    def replay(self, topic: str) -> Any:
        options = self._job.options | {"subscribe": topic}
        write_parquet(self._spark, options, self._job.target, overwrite=True)

    def written(self) -> int:
        return int(self._spark.read.parquet(self._job.target).count())


def run(job: Job) -> dict[str, Any]:
    spark = local_session(cores=job.cores, name="bucketlog benchmark", config=job.spark)
    try:
        reading = Reading(spark, job)
        pids = [psutil.Process().pid, *job.server_pids]
        checksum = reading.checksum(job.warm_topic)
        queries: dict[str, list[dict[str, float]]] = {}
        answers: dict[str, Any] = {}
        for name, query in _queries(reading, job).items():
            for _ in range(job.warm_up):
                query(job.warm_topic)
            queries[name] = []
            for _ in range(job.repetitions):
                before, began = cpu_seconds(pids), time.perf_counter()
                answer = query(job.topic)
                seconds = time.perf_counter() - began
                queries[name].append(asdict(Timing(seconds, cpu_seconds(pids) - before)))
            answers[name] = reading.written() if answer is None else answer
            shutil.rmtree(job.target, ignore_errors=True)
        return {"queries": queries, "answers": answers, "checksum": checksum}
    finally:
        spark.stop()


def _queries(reading: Reading, job: Job) -> Mapping[str, Callable[[str], Any]]:
    found: dict[str, Callable[[str], Any]] = {}
    for name in job.queries:
        query = getattr(reading, name)
        found[f"{name}, {ALL}"] = query
        if job.schema and name in NEEDED:
            found[f"{name}, {PRUNED}"] = partial(query, schema=NEEDED[name])
    return found


def main() -> None:
    job = Job(**json.loads(sys.stdin.read()))
    print(json.dumps(run(job)))


if __name__ == "__main__":
    main()
