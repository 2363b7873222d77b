"""Records are produced at a steady rate, and `bucketlog table run --follow` ingests them.

At full size, from the repository's root: `make prove WHAT=freshness`. A record is fresh when a
reader that loads the table has its row. The end offsets in the table's property say this, and the
rows are compared at the end.
"""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Any, TypeAlias

import psutil
from confluent_kafka import KafkaError, Message, Producer
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError

from bucketlog.log_reader.tables.catalog import open_catalog
from bucketlog.log_reader.tables.iceberg_table import PROPERTY
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.rigs.shell import COMMAND
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster

TOPIC, PARTITIONS = "records", 4
TABLE = "db.records"
SCHEMA = "id bigint, amount double, text string"
RECORD_BYTES = 1_000
TICK_S = 0.02
LOOK_S = 0.1
GB = 1e9
Place: TypeAlias = tuple[int, int]
"""Partition and offset."""
Ends: TypeAlias = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class FreshnessFigures:
    """Times in seconds from the acknowledgement of a record until a reader has its row.
    `cpu_s_per_gb` is that of all processes of the ingest, for produced values."""

    records: int
    rows: int
    commits: int
    bytes_per_s: float
    fresh_s_p50: float
    fresh_s_p99: float
    fresh_s_max: float
    cpu_s_per_gb: float
    problems: list[str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class SteadyProducer:
    """Sends `bytes_per_s` of JSON values for `seconds`."""

    def __init__(self, bootstrap: str) -> None:
        self._client = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        self.acknowledged: dict[Place, float] = {}
        self.failures: list[str] = []
        self.value_bytes = 0

    def send(self, bytes_per_s: float, seconds: float) -> None:
        began = time.monotonic()
        sent = 0
        while (passed_s := time.monotonic() - began) < seconds:
            due = int(passed_s * bytes_per_s / RECORD_BYTES)
            for number in range(sent, due):
                self._send(number)
            sent = max(sent, due)
            self._client.poll(0)
            let_pass(TICK_S)
        left = self._client.flush(PATIENCE_S)
        if left:
            self.failures.append(f"{left} records were not acknowledged")

    def _send(self, number: int) -> None:
        value = json.dumps({"id": number, "amount": number / 2, "text": "x" * (RECORD_BYTES - 60)})
        self.value_bytes += len(value)
        self._client.produce(TOPIC, value.encode(), on_delivery=self._delivered)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        self.acknowledged[_place(message)] = time.monotonic()


def _place(message: Message) -> Place:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


class TableWatch:
    """Loads the table again and again, and notes when which offsets were in it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch")
        self.seen: list[tuple[float, Ends]] = []

    @contextmanager
    def running(self) -> Iterator["TableWatch"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            self._thread.join()

    def covers(self, places: Mapping[Place, float]) -> bool:
        last: Ends = self.seen[-1][1] if self.seen else {}
        return all(offset < last.get(partition, 0) for partition, offset in places)

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_S):
            with suppress(NoSuchTableError):
                table = self._catalog.load_table(TABLE)
                stored = json.loads(table.properties.get(PROPERTY, '{"topics": {}}'))
                found = stored["topics"].get(TOPIC, {"ends": {}})["ends"]
                ends = {int(partition): end for partition, end in found.items()}
                if ends and (not self.seen or self.seen[-1][1] != ends):
                    self.seen.append((time.monotonic(), ends))


def fresh_after_s(
    acknowledged: Mapping[Place, float], seen: Sequence[tuple[float, Ends]]
) -> list[float]:
    """For each record, the time until the table had its row. Pure."""
    found = []
    for (partition, offset), at in acknowledged.items():
        when = next((when for when, ends in seen if ends.get(partition, 0) > offset), None)
        assert when is not None, "a row that the table never had"
        found.append(max(0.0, when - at))
    return found


def row_problems(acknowledged: Mapping[Place, float], rows: Counter[Place]) -> list[str]:
    """Each record is one row, and no other row is there. Pure."""
    missing = sum(1 for place in acknowledged if place not in rows)
    twice = sum(1 for count in rows.values() if count > 1)
    strange = sum(1 for place in rows if place not in acknowledged)
    return [
        f"{count} rows {text}"
        for count, text in ((missing, "missing"), (twice, "twice"), (strange, "of no record"))
        if count
    ]


def freshness(store: Store, *, bytes_per_s: float, seconds: float, every: str) -> FreshnessFigures:
    """`every` is the time between commits."""
    settings = {"checkpoint_interval_ms": "3000"}
    with running_cluster(2, store=store, settings=settings) as cluster:
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        properties = catalog_properties(cluster)
        catalog = open_catalog("lake", properties)
        producer = SteadyProducer(cluster.bootstrap)
        with (
            following(cluster, properties, every=every) as ingest,
            TableWatch(catalog).running() as watch,
        ):
            producer.send(bytes_per_s, seconds)
            eventually(lambda: watch.covers(producer.acknowledged))
            cpu_s = cpu_seconds(ingest)
        times = fresh_after_s(producer.acknowledged, watch.seen)
        rows = rows_of(catalog)
    cuts = quantiles(times, n=100)
    return FreshnessFigures(
        records=len(producer.acknowledged),
        rows=sum(rows.values()),
        commits=len(watch.seen),
        bytes_per_s=round(producer.value_bytes / seconds),
        fresh_s_p50=round(cuts[49], 2),
        fresh_s_p99=round(cuts[98], 2),
        fresh_s_max=round(max(times), 2),
        cpu_s_per_gb=round(cpu_s / (producer.value_bytes / GB), 2),
        problems=[*producer.failures[:5], *row_problems(producer.acknowledged, rows)],
    )


def catalog_properties(cluster: Cluster) -> dict[str, str]:
    """A catalog in SQLite. The files are on the cluster's store, or in its folder."""
    files = {"warehouse": f"file://{cluster.folder}/warehouse"}
    if cluster.store is not None:
        files = {
            "warehouse": f"{cluster.bucket_url}-lake",
            **cluster.store.iceberg_properties(),
        }
        cluster.store.make_bucket(files["warehouse"].removeprefix("s3://").partition("/")[0])
    return {"type": "sql", "uri": f"sqlite:///{cluster.folder}/catalog.db", **files}


@contextmanager
def following(
    cluster: Cluster, properties: Mapping[str, str], *, every: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """`bucketlog table run --follow`."""
    flags = [f"--catalog-property={name}={value}" for name, value in properties.items()]
    command = [
        *(*COMMAND, "table", "run", cluster.bucket_url, "--topics", TOPIC, "--schema", SCHEMA),
        *("--into", f"lake.{TABLE}", "--follow", "--every", every, *flags),
    ]
    log_file = cluster.folder / "ingest.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
        assert process.poll() is None, log_file.read_text()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def cpu_seconds(process: "subprocess.Popen[bytes]") -> float:
    """Of the process and its children."""
    parent = psutil.Process(process.pid)
    every = [parent, *parent.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in every)


def rows_of(catalog: Catalog) -> Counter[Place]:
    fields = ("_log_partition", "_log_offset")
    found = catalog.load_table(TABLE).scan(selected_fields=fields).to_arrow()
    return Counter(zip(*(found.column(name).to_pylist() for name in fields), strict=True))
