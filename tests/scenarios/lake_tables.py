"""Ingest into Iceberg tables on MinIO, while the processes are killed.

`make prove WHAT=tables` in the repository's root runs this scenario at full size. Three topics have
flights as JSON, Avro and Protobuf. One topic has nested changes, and one topic is skewed. The
command `bucketlog table run --follow` fills each table. Two tables have two such commands each.
Drivers, their tasks, brokers and the sequencer are killed at random. Meanwhile, Spark deletes rows,
rewrites files and expires snapshots. At the end, each table has the rows of all acknowledged
records, except the deleted rows. A Spark stream and an incremental read return each record once.
"""

import subprocess
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc

from bucketlog import SchemaRegistry
from tests.rigs.patience import PATIENCE_S, let_pass
from tests.rigs.shell import COMMAND
from tests.scenarios.lake_session import BUCKET, CATALOG, LakeSession, lake_session
from tests.scenarios.lake_topics import PARTITIONS, Acknowledged, LakeLoad, LakeTopic, lake_topics
from tests.scenarios.lake_upkeep import Upkeep
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster
from tests.servers.schema_registry import running_registry

TWICE = ("flights-json", "skewed")
"""Topics that two commands ingest at the same time."""
EVERY = "2s"
LOOK_S = 0.2
LAST_RECORDS = 100
"""Records of each topic after the last upkeep. The incremental read returns at least these."""
KINDS = ("driver", "task", "task", "broker", "sequencer")
PLACE = ("_log_partition", "_log_offset")


@dataclass(frozen=True, slots=True)
class TableFigures:
    """Result of the scenario. `kills` has the number of kills by kind of process. `failed_upkeep`
    is the number of Spark statements that failed because of other commits."""

    records: int
    rows: dict[str, int]
    batches: dict[str, int]
    kills: dict[str, int]
    restarts: int
    deleted: int
    rewrites: int
    maintained: int
    replaced_files: int
    expiries: int
    failed_upkeep: int
    streamed: int
    incremental: int
    seconds: float
    problems: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def table_of(topic: str) -> str:
    return f"db.{topic.replace('-', '_')}"


@dataclass
class Follower:
    """`bucketlog table run` for a topic. After a kill, the command is started again."""

    cluster: Cluster
    lake: LakeSession
    topic: LakeTopic
    number: int
    process: "subprocess.Popen[bytes] | None" = None
    was_killed: bool = False
    starts: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.cluster.folder / f"ingest-{self.topic.name}-{self.number}.log"

    def start(self, *flags: str) -> "subprocess.Popen[bytes]":
        properties = self.lake.catalog.properties.items()
        command = [
            *(*COMMAND, "table", "run", self.cluster.bucket_url, "--topics", self.topic.name),
            *(*self.topic.flags, "--into", f"{CATALOG}.{table_of(self.topic.name)}"),
            *(f"--catalog-property={name}={value}" for name, value in properties),
            *("--processes", "1", *flags),
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.starts += 1
        self.was_killed = False
        return self.process

    def follow(self) -> None:
        """Start the command if its process is not running. An end without a kill is a failure."""
        if self.process is not None and self.process.poll() is None:
            return
        if self.process is not None and not self.was_killed:
            self.failures.append(f"{self.log.name} ended: {self.last_lines()}")
        self.start("--follow", "--every", EVERY)

    def kill(self, kind: str, chance: Random) -> bool:
        """Kill the command, or one of its tasks. Return False if there is no such process."""
        if self.process is None or self.process.poll() is not None:
            return False
        driver = psutil.Process(self.process.pid)
        tasks = driver.children(recursive=True)
        if kind == "task" and not tasks:
            return False
        try:
            (driver if kind == "driver" else chance.choice(tasks)).kill()
        except psutil.NoSuchProcess:
            return False
        if kind == "driver":
            self.was_killed = True
            self.process.wait(PATIENCE_S)
        return True

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE_S)

    def last_lines(self) -> str:
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-5:])[-800:]


@dataclass
class Faults:
    """Kills random processes, one after the other."""

    cluster: Cluster
    followers: Sequence[Follower]
    chance: Random
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def kill_one(self) -> None:
        kind = self.chance.choice(KINDS)
        if kind == "broker":
            broker = self.chance.choice(self.cluster.brokers)
            broker.kill()
            broker.start()
        elif kind == "sequencer":
            self.cluster.valkey.kill()
            self.cluster.valkey.start()
        elif not self.chance.choice(self.followers).kill(kind, self.chance):
            return
        self.kills[kind] += 1


def lake_tables(
    folder: Path, *, seconds: float, records: int, pause_s: tuple[float, float], seed: int
) -> TableFigures:
    """Produce about `records` records, and kill processes for at least `seconds`.

    `pause_s` has the shortest and the longest pause between two kills. No process is left running.
    """
    began = time.perf_counter()
    settings = {"checkpoint_interval_ms": "3000", "flush_interval_ms": "100"}
    with ExitStack() as closing:
        cluster = closing.enter_context(running_cluster(2, store=Store.MINIO, settings=settings))
        assert cluster.store is not None
        cluster.store.make_bucket(BUCKET)
        registry = closing.enter_context(running_registry(folder / "registry.log"))
        topics = lake_topics(SchemaRegistry(registry.url))
        for topic in topics:
            create_topic(cluster.brokers[0].bootstrap, topic.name, PARTITIONS)
            topic.encode(0)  # registers the schema
        lake = closing.enter_context(lake_session(folder, cluster.store))
        followers = [Follower(cluster, lake, topic, 0) for topic in topics]
        followers += [Follower(cluster, lake, each, 1) for each in topics if each.name in TWICE]
        faults = Faults(cluster, followers, Random(seed))
        upkeep = Upkeep(lake, folder, [table_of(topic.name) for topic in topics])
        load = LakeLoad(
            cluster.bootstrap, topics, records_per_s=records / seconds, records_max=records
        )
        for follower in followers:
            closing.callback(follower.stop)
        stopped = threading.Event()
        with ThreadPoolExecutor(2) as pool:
            loading, caring = (pool.submit(each.run, stopped) for each in (load, upkeep))
            try:
                _disturb(faults, upkeep, loading, caring, until=began + seconds, pause_s=pause_s)
            finally:
                stopped.set()
            for done in (loading, caring):
                done.result()
        for follower in followers:
            follower.stop()
        load.send_last(LAST_RECORDS)
        return _figures(lake, topics, load, faults, upkeep, began)


def _disturb(
    faults: Faults,
    upkeep: Upkeep,
    loading: "Future[None]",
    caring: "Future[None]",
    *,
    until: float,
    pause_s: tuple[float, float],
) -> None:
    """Kill and start again, until the time is over and all records are sent, or until an error of
    the upkeep or of a stream."""
    while not (caring.done() or upkeep.has_failed_stream) and (
        not loading.done() or time.perf_counter() < until
    ):
        pause_end = time.perf_counter() + faults.chance.uniform(*pause_s)
        while time.perf_counter() < pause_end:
            for follower in faults.followers:
                follower.follow()
            let_pass(LOOK_S)
        faults.kill_one()


def _figures(
    lake: LakeSession,
    topics: Sequence[LakeTopic],
    load: LakeLoad,
    faults: Faults,
    upkeep: Upkeep,
    began: float,
) -> TableFigures:
    problems = load.failures[:5]
    problems += [text for each in faults.followers for text in each.failures]
    rows: dict[str, int] = {}
    batches: dict[str, int] = {}
    streamed = incremental = 0
    for follower in faults.followers[: len(topics)]:
        topic, table = follower.topic, table_of(follower.topic.name)
        if follower.start().wait(PATIENCE_S):
            problems.append(f"the last run of {topic.name} failed: {follower.last_lines()}")
            continue
        expected = placed(load.acknowledged[topic.name])
        found = lake.catalog.load_table(table).scan().to_arrow()
        rows[topic.name], batches[topic.name] = (
            found.num_rows,
            pc.max(found["_ingest_batch"]).as_py(),
        )
        problems += table_problems(topic, expected, found, upkeep.deleted[table])
        upkeep.end_stream(table)
        stream = upkeep.streamed(table)
        problems += reader_problems(f"the stream of {topic.name}", expected, stream)
        newer, increment = upkeep.increment(table)
        wanted = pa.array(sorted(newer), stream.schema.field("_ingest_batch").type)
        appended = stream.filter(pc.is_in(stream["_ingest_batch"], wanted))
        problems += reader_problems(f"the increment of {topic.name}", appended, increment)
        streamed += stream.num_rows
        incremental += increment.num_rows
    return TableFigures(
        records=sum(map(len, load.acknowledged.values())),
        rows=rows,
        batches=batches,
        kills=faults.kills,
        restarts=sum(each.starts for each in faults.followers),
        deleted=sum(map(len, upkeep.deleted.values())),
        rewrites=upkeep.figures.rewrites,
        maintained=upkeep.figures.maintained,
        replaced_files=upkeep.figures.replaced_files,
        expiries=upkeep.figures.expiries,
        failed_upkeep=len(upkeep.figures.failed),
        streamed=streamed,
        incremental=incremental,
        seconds=round(time.perf_counter() - began, 1),
        problems=problems,
    )


def placed(acknowledged: Acknowledged) -> pa.Table:
    """Return the partitions, offsets and ids of records."""
    columns = (acknowledged.partitions, acknowledged.offsets, acknowledged.ids)
    arrays = [np.frombuffer(each, np.int64) for each in columns]
    return pa.table(dict(zip((*PLACE, "id"), arrays, strict=True)))


def in_order(rows: pa.Table) -> pa.Table:
    """Return the rows sorted by partition and offset. These columns and `id` become int64."""
    columns = {
        name: rows[name].cast(pa.int64()) if name in (*PLACE, "id") else rows[name]
        for name in rows.column_names
    }
    return pa.table(columns).sort_by([(name, "ascending") for name in PLACE]).combine_chunks()


def reader_problems(reader: str, expected: pa.Table, found: pa.Table) -> list[str]:
    """Compare partitions, offsets and ids, and return the differences. Pure."""
    wanted, seen = (in_order(each.select([*PLACE, "id"])) for each in (expected, found))
    if wanted.equals(seen):
        return []
    return [f"{reader}: {seen.num_rows} rows, not the {wanted.num_rows} expected rows"]


def table_problems(
    topic: LakeTopic, expected: pa.Table, found: pa.Table, deleted: set[int]
) -> list[str]:
    """Compare all fields, and return the differences. Deleted rows must be absent. Pure."""
    gone = pa.array(sorted(deleted), pa.int64())
    left = in_order(expected.filter(pc.invert(pc.is_in(expected["id"], gone))))
    rows = in_order(found)
    problems = reader_problems(f"the table of {topic.name}", left, rows)
    if not problems:
        fields = [name for name in found.column_names if not name.startswith("_")]
        fields = [name for name in fields if name != "day"]
        seen = rows.select(fields)
        if not topic.rows(left["id"].to_pylist(), seen.schema).combine_chunks().equals(seen):
            problems.append(f"the table of {topic.name} has other values")
    again = pc.sum(pc.is_in(rows["id"], gone)).as_py()
    return [*problems, *([f"{again} deleted rows of {topic.name} are back"] if again else [])]
