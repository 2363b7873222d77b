"""Ingests of a log of many small segments, with compressed values in many partitions.

At full size, from the repository's root: `make prove WHAT=small-segments`. The log is made by hand,
and brokers have not split it. `bucketlog table run` and the ingest on Spark read it, each in a
separate process whose memory and CPU time are watched.
"""

import json
import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import psutil

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from localstack.servers import RunningStore, StoreName, running
from localstack.spark_jars import iceberg_settings, installed_jars, jar_settings, s3a_settings
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.group_log import IDENTITY
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import COMMAND
from tests.rigs.written_log import START_MS, WrittenLog
from tests.scenarios.lake_session import BUCKET, QUICK_START
from tests.scenarios.large_logs import to_bucket

TOPIC = "wide"
BATCHES, RECORDS = 8, 4
"""The number of batches of a segment, and of records of a batch."""
SCHEMA = "id bigint, text string"
TEXT = "the same words in all records of a batch, as logs of programs have them; " * 13
MIB = 1 << 20
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """`busy` is the mean number of cores that the engine used while tasks ran. `wanted` adds the
    threads that were ready to run, but waited for a core: the store needs cores, too. `memory_mib`
    is the largest sum of the resident memory of all processes of the engine."""

    rows: int
    tasks: int
    seconds: float
    task_s: float
    cpu_s: float
    busy: float
    wanted: float
    memory_mib: int


@dataclass(frozen=True, slots=True)
class SegmentFigures:
    """`ratio` is the size of the values by that of the stored batches."""

    segments: int
    partitions: int
    records: int
    value_mib: int
    stored_mib: int
    ratio: float
    engines: dict[str, EngineFigures]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def made_log(segments: int, partitions: int) -> tuple[MemoryBucket, int, int]:
    """Return a log, the number of its records, and the size of their values. A checkpoint covers
    most of the segments."""
    log = WrittenLog(MemoryBucket())
    assert log.bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log.create_topic(TOPIC, partitions)
    chance, number, size = Random(3), 0, 0
    for segment in range(segments):
        for partition in chance.sample(range(partitions), BATCHES):
            records = []
            for _ in range(RECORDS):
                value = json.dumps({"id": number, "text": TEXT}).encode()
                records.append(DecodedRecord(0, START_MS + segment, None, value))
                number += 1
                size += len(value)
            log.append(TOPIC, partition, records, codec=Codec.ZSTD)
        log.flush()
        if segment == segments * 9 // 10:
            write_checkpoint(log.bucket)
    assert isinstance(log.bucket, MemoryBucket)
    return log.bucket, number, size


class ProcessWatch:
    """Adds up memory and CPU time of a process and its children, until the process ends.
    `is_task` is True for processes that run tasks."""

    def __init__(self, pid: int, task_name: str) -> None:
        self._process = psutil.Process(pid)
        self._task_name = task_name
        self._cpu_s: dict[int, float] = {}
        self._waited_s: dict[int, float] = {}
        self.memory = 0
        self.task_s = 0.0
        self.task_cpu_s = 0.0
        self.task_waited_s = 0.0

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu_s.values())

    def run(self, stopped: threading.Event) -> None:
        while not stopped.wait(LOOK_S):
            before, tasks, memory, waited = self.cpu_s, 0.0, 0, 0.0
            for process in (self._process, *self._children()):
                try:
                    with process.oneshot():
                        memory += process.memory_info().rss
                        cpu_s = sum(process.cpu_times()[:2])
                        is_task = self._task_name in " ".join(process.cmdline())
                except psutil.NoSuchProcess:
                    continue
                if is_task:
                    tasks += cpu_s - self._cpu_s.get(process.pid, 0.0)
                self._cpu_s[process.pid] = cpu_s
                waited += self._newly_waited_s(process.pid)
            self.memory = max(self.memory, memory)
            if tasks > LOOK_S / 10:
                self.task_s += LOOK_S
                self.task_cpu_s += self.cpu_s - before
                self.task_waited_s += waited

    def _newly_waited_s(self, pid: int) -> float:
        """Return the time that threads of the process have waited for a core since the last look.
        Source: Documentation/scheduler/sched-stats.rst of Linux."""
        waited_ns = 0
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                waited_ns += int(path.read_text().split()[1])
            except (OSError, IndexError):
                continue  # the thread has ended
        before_s, self._waited_s[pid] = self._waited_s.get(pid, 0.0), waited_ns / 1e9
        return max(self._waited_s[pid] - before_s, 0.0)

    def _children(self) -> list[psutil.Process]:
        try:
            return self._process.children(recursive=True)
        except psutil.NoSuchProcess:
            return []


def engine_run(command: Sequence[str], task_name: str) -> EngineFigures:
    """Run an ingest to its end. Raises `AssertionError` if the ingest fails."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = ProcessWatch(process.pid, task_name)
    stopped = threading.Event()
    thread = threading.Thread(target=watch.run, args=(stopped,), name="watch")
    thread.start()
    try:
        output, errors = process.communicate(timeout=12 * PATIENCE_S)
    finally:
        stopped.set()
        thread.join()
        process.kill()
        process.wait(PATIENCE_S)
    assert process.returncode == 0, errors[-3_000:]
    report = json.loads(output.splitlines()[-1])
    return EngineFigures(
        rows=report["records"],
        tasks=report["tasks"],
        seconds=report["seconds"],
        task_s=round(watch.task_s, 1),
        cpu_s=round(watch.cpu_s, 1),
        busy=round(watch.task_cpu_s / max(watch.task_s, LOOK_S), 2),
        wanted=round((watch.task_cpu_s + watch.task_waited_s) / max(watch.task_s, LOOK_S), 2),
        memory_mib=watch.memory // MIB,
    )


def small_segments(folder: Path, *, minio: bool, segments: int, partitions: int) -> SegmentFigures:
    """Make the log, and ingest it with both engines. Nothing is left running."""
    made, records, value_bytes = made_log(segments, partitions)
    stored_bytes = sum(info.size_bytes for info in made.list("log/"))
    with ExitStack() as open_things:
        store = None
        url, warehouse = f"file://{folder}/log", f"file://{folder}/warehouse"
        if minio:
            store = open_things.enter_context(running(StoreName.MINIO, folder / "minio"))
            store.make_bucket(BUCKET)
            open_things.enter_context(mock.patch.dict(os.environ, store.environment()))
            url, warehouse = f"s3://{BUCKET}/log", f"s3a://{BUCKET}/warehouse"
        with closing(open_sync_bucket(url)) as bucket:
            to_bucket(made, bucket)
        del made
        engines = {
            "table run": engine_run(local_command(folder, url, warehouse, store), "forkserver"),
            "Spark": engine_run(spark_command(folder, url, warehouse, store), "pyspark.daemon"),
        }
    return SegmentFigures(
        segments=segments,
        partitions=partitions,
        records=records,
        value_mib=value_bytes // MIB,
        stored_mib=stored_bytes // MIB,
        ratio=round(value_bytes / stored_bytes, 1),
        engines=engines,
    )


def local_command(
    folder: Path, url: str, warehouse: str, store: RunningStore | None
) -> Sequence[str]:
    """Return the command of `bucketlog table run`."""
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/local.db",
        "warehouse": warehouse.replace("s3a://", "s3://"),
        **(store.iceberg_properties() if store else {}),
    }
    flags = [f"--catalog-property={name}={value}" for name, value in properties.items()]
    return [
        *(*COMMAND, "table", "run", url, "--topics", TOPIC, "--schema", SCHEMA),
        *("--into", "lake.db.local", "--output", "json", *flags),
    ]


def spark_command(
    folder: Path, url: str, warehouse: str, store: RunningStore | None
) -> Sequence[str]:
    """Return the command of the ingest on Spark, with as many tasks at a time as cores."""
    settings = {
        **jar_settings(installed_jars()),
        **(s3a_settings(store) if store else {}),
        **iceberg_settings("lake", folder / "spark.db", warehouse),
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.log.level": "ERROR",
    }
    conf = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    return [
        *(*COMMAND, "spark", "ingest", "--cores", str(os.cpu_count() or 1), "--bucket", url),
        *("--topics", TOPIC, "--schema", SCHEMA, "--iceberg", "lake.db.spark", *conf),
    ]
