"""A streaming query reads a cluster's bucket while brokers and Redis are killed and emptied, and
while the query itself is killed.

At full size, from the repository's root: `make prove WHAT=spark-stream`. In the end everything is
compared: each record once, in order by partition.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path

from tests.models.history import History
from tests.proofs.shortfall import Figures
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.scenarios.stream_query import batches_in, differences, rows_in
from tests.servers.cluster import Cluster, Store, running_cluster

BROKERS = 2
PARTITIONS = 6
TOPIC = "streamed"
BURST_RECORDS = 10
SETTINGS = {
    "flush_interval_ms": "100",
    "compaction_check_interval_ms": "2000",
    "compaction_interval_ms": "5000",
    "checkpoint_interval_ms": "10000",
}


@dataclass(frozen=True, slots=True)
class StreamingFigures:
    store: str
    seconds_of_faults: float
    broker_kills: int
    redis_kills: int
    redis_wipes: int
    query_kills: int
    micro_batches: int
    records: int
    acknowledged: int
    missing_or_twice: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


class Query:
    """The process with the driver; it is killed with its JVM and its workers."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.lake = folder / "lake"
        self._arguments = [cluster.bucket_url, TOPIC, str(self.lake), str(folder / "checkpoint")]
        self._log = folder / "query.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        command = [sys.executable, "-m", "tests.scenarios.stream_query", *self._arguments, *more]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def wait_for_batches(self, more: int) -> None:
        wanted = self.batches() + more
        deadline = Deadline(self._tail)
        while self.batches() < wanted:
            self._check()
            deadline.pause(0.2)

    def _check(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, f"the query ended by itself: {self._tail()}"

    def finish(self) -> None:
        """All that is there by now."""
        self.kill()
        self.start("available-now")
        assert self._process is not None
        assert self._process.wait(PATIENCE_S) == 0, self._tail()
        self._process = None

    def batches(self) -> int:
        return sum(1 for _ in batches_in(self.lake))

    def _tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])


@contextmanager
def _query(cluster: Cluster) -> Iterator[Query]:
    query = Query(cluster, cluster.folder)
    query.start()
    try:
        yield query
    finally:
        query.kill()


def streaming(store: Store, seconds: float, *, query_kills: int) -> StreamingFigures:
    """Raises `AssertionError` where a record is missing or there twice; nothing is left running."""
    began = time.perf_counter()
    counts = dict.fromkeys(("broker", "redis", "wipe", "query"), 0)
    with running_cluster(BROKERS, store=store, settings=SETTINGS) as cluster:
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        history = History()
        load = Load(
            "producer",
            cluster.bootstrap,
            history,
            topic=TOPIC,
            partitions=PARTITIONS,
            burst_records=BURST_RECORDS,
        )
        load.start()
        try:
            with _query(cluster) as query:
                query.wait_for_batches(2)
                faults_s = _faults(cluster, query, seconds, query_kills, counts)
                load.stop()
                assert not load.failures, load.failures[:3]
                log = judge(cluster, history, topic=TOPIC, partitions=PARTITIONS)
                query.finish()
        finally:
            load.stop()
        sink, complaints = rows_in(query.lake)
        complaints += differences(sink, log)
        batches = query.batches()
    assert not complaints, "\n".join([f"{len(complaints)} complaints", *complaints[:10]])
    return StreamingFigures(
        store=store,
        seconds_of_faults=round(faults_s, 1),
        broker_kills=counts["broker"],
        redis_kills=counts["redis"],
        redis_wipes=counts["wipe"],
        query_kills=counts["query"],
        micro_batches=batches,
        records=sum(map(len, sink.values())),
        acknowledged=len(history.acknowledged),
        missing_or_twice=0,
        seconds=round(time.perf_counter() - began, 1),
    )


def _faults(
    cluster: Cluster, query: Query, seconds: float, query_kills: int, counts: dict[str, int]
) -> float:
    """One after the other until the time is over; the query goes on after each."""
    began = time.monotonic()
    victims = cycle(cluster.brokers)
    for kind in cycle(("broker", "wipe", "redis", "query")):
        if time.monotonic() - began > seconds and all(counts.values()):
            break
        match kind:
            case "broker":
                victim = next(victims)
                victim.kill()
                query.wait_for_batches(1)
                victim.start()
            case "wipe":
                cluster.valkey.wipe()
            case "redis":
                cluster.valkey.kill()
                cluster.valkey.start()
            case _ if counts["query"] >= query_kills:
                continue
            case _:
                query.kill()
                query.start()
        counts[kind] += 1
        query.wait_for_batches(2)
    return time.monotonic() - began
