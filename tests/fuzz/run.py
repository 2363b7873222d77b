"""A run of the fuzzer against one broker process, and its verdict.

The broker fails if its process ends, if its log has a line of level ERROR or a traceback, if an
answer breaks a rule of `tests.fuzz.judge`, or if a bystander is refused. Callers judge the memory.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import uvloop

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.fuzz.driver import Driver
from tests.fuzz.judge import FuzzFailureError
from tests.fuzz.requests import Frame, Generator
from tests.fuzz.shrinking import find_cause, shrunk
from tests.fuzz.values import World
from tests.rigs.wire_client import WireClient
from tests.scenarios.bystander import Bystander
from tests.servers.cluster import Cluster, running_cluster

TOPICS = {"fuzz-0": 4, "fuzz-1": 1, "fuzz-2": 2, "fuzz-compacted": 2}
NEIGHBOUR = "neighbour"
SETTINGS = {
    "log_format": "json",
    "fetch_wait_ms_max": "20",
    "view_wait_ms_max": "20",
    "produce_timeout_ms_max": "30000",
    "connections_per_address_per_s_max": "100000",
    "partitions_max": "16",
    "cluster_partitions_max": "1500",
    "group_initial_rebalance_delay_ms": "0",
    "group_session_timeout_ms_min": "100",
    "group_rebalance_timeout_ms_min": "50",
    "group_new_member_join_timeout_ms": "1000",
    "group_members_max": "12",
    "group_pending_members_max": "12",
    "groups_max": "200",
    "checkpoint_interval_ms": "2000",
    "compaction_check_interval_ms": "1000",
    "compaction_interval_ms": "5000",
    "compaction_age_ms_min": "1000",
    "log_retention_check_interval_ms": "2000",
    "transactions": "true",
    "transaction_wait_ms_max": "20",
    "transaction_request_ms_max": "1000",
    "transaction_abort_check_interval_ms": "100",
    "transaction_partitions_max": "6",
    "transaction_groups_max": "4",
    "transactional_ids_max": "200",
    "transactional_id_expiration_ms": "3000",
    "transactional_id_expiration_check_interval_ms": "1000",
}
"""Short waits and small numbers of members, so that few requests hold up a run; short intervals of
duties, so that a run meets them."""
WARM_UP_REQUESTS = 2000
MEMORY_GROWN_MIB_MAX = 100
MIB = 1 << 20
LOOK_S = 0.5
LINE_CHARS = 3000
HEX_BYTES = 4000
"""Longer frames are not printed; `--only` makes them again."""
BAD_LINES = ('"level": "ERROR"', '"level": "CRITICAL"', "Traceback", "never retrieved")


@dataclass(frozen=True, slots=True)
class FuzzFigures:
    requests: int
    seconds: float
    requests_per_s: float
    answered: int
    closed: int
    given_up: int
    bystander_produce_p99_ms: float
    bystander_api_versions_p99_ms: float
    memory_before_mib: float
    memory_after_mib: float
    broker_cpu_s: float

    @property
    def memory_grown_mib(self) -> float:
        return self.memory_after_mib - self.memory_before_mib

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class LogWatch:
    """The lines of a broker's log that show a defect."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._at = 0

    def bad_lines(self) -> list[str]:
        """The bad lines since the last call."""
        with self._log.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._at += end
        lines = data[:end].decode(errors="replace").splitlines()
        return [line for line in lines if any(word in line for word in BAD_LINES)]


@contextmanager
def fuzz_cluster() -> Iterator[Cluster]:
    with running_cluster(1, settings=SETTINGS) as cluster:
        yield cluster


def make_world(bootstrap: str) -> World:
    """Create the topics."""
    with WireClient(bootstrap) as client:
        rows = [_wanted(name, count) for name, count in {**TOPICS, NEIGHBOUR: 1}.items()]
        answer = client.call(ApiKey.CREATE_TOPICS, 7, topics=rows, timeout=20_000)
    assert not any(topic.error_code for topic in answer.topics), answer
    ids = {topic.name: topic.topic_id for topic in answer.topics if topic.name in TOPICS}
    return World(ids)


def _wanted(name: str, partitions: int) -> dict[str, Any]:
    policy = "compact" if "compacted" in name else "delete"
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": policy}],
    }


class FuzzRun:
    """One run on one cluster; `seed` and `requests` make it again."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        (self._broker,) = cluster.brokers
        self._process = psutil.Process(self._broker.running.process.pid)
        self._log = LogWatch(self._broker.log)
        self.bootstrap = self._broker.bootstrap
        host, _, port = self.bootstrap.rpartition(":")
        self.address = host, int(port)
        self.generator = Generator(make_world(self.bootstrap), seed)
        self._seed = seed

    def send(self, requests: int, *, first: int = 0) -> Driver:
        """Raises `FuzzFailureError`, whose text has the seed and the shrunk frame."""
        driver = Driver(self.address, self.generator, requests, first=first)
        try:
            uvloop.run(self._watched(driver))
        except FuzzFailureError as failure:
            raise self._explained(failure, driver) from failure
        return driver

    def check(self) -> None:
        if not self._process.is_running() or self._process.status() == psutil.STATUS_ZOMBIE:
            raise FuzzFailureError("the broker's process has ended")
        if lines := self._log.bad_lines():
            raise FuzzFailureError(
                "\n".join(["in the broker's log:", *(line[:LINE_CHARS] for line in lines[:3])])
            )

    async def _watched(self, driver: Driver) -> None:
        sending = asyncio.ensure_future(driver.run())
        try:
            while not sending.done():
                await asyncio.wait([sending], timeout=LOOK_S)
                self.check()
            sending.result()
        finally:
            sending.cancel()
            await asyncio.wait([sending])

    def _explained(self, failure: FuzzFailureError, driver: Driver) -> FuzzFailureError:
        frame = failure.frame or find_cause(driver.tally.recent, self._does_harm)
        text = f"seed {self._seed}, after {driver.tally.requests} requests: {failure}"
        if frame is None:
            return FuzzFailureError(f"{text}\nno single request reproduces the failure")
        small = shrunk(frame, self._does_harm)
        of = f"{frame.key.message_name} v{frame.version}, {frame.kind}"
        text += f"\nrequest {frame.number} ({of}): {_hex(frame)}\nshrunk: {_hex(small)}"
        return FuzzFailureError(text, frame)

    def _does_harm(self, frame: Frame) -> bool:
        """Whether this request alone makes the broker fail."""
        try:
            self.send_alone(frame)
        except FuzzFailureError:
            self._log.bad_lines()  # skip these, so that they do not count against the next request
            return True
        return False

    def send_alone(self, frame: Frame) -> str:
        """The outcome of the request. Raises `FuzzFailureError` if the broker failed."""
        driver = Driver(self.address, self.generator, 1)
        uvloop.run(driver.send_alone(frame))
        self.check()
        ((_, outcome),) = driver.tally.outcomes
        return outcome

    @property
    def rss_mib(self) -> float:
        return round(self._process.memory_info().rss / MIB, 1)

    @property
    def cpu_s(self) -> float:
        used = self._process.cpu_times()
        return round(used.user + used.system, 2)


def _hex(frame: Frame) -> str:
    if len(frame.data) > HEX_BYTES:
        return f"{len(frame.data)} bytes: python -m tests.fuzz --seed SEED --only {frame.number}"
    return frame.data.hex()


def fuzz(cluster: Cluster, requests: int, *, seed: int) -> FuzzFigures:
    """Send `requests` after a warm-up, beside a bystander. Raises `FuzzFailureError`."""
    run = FuzzRun(cluster, seed)
    with Bystander([run.bootstrap], NEIGHBOUR) as bystander:
        run.send(WARM_UP_REQUESTS, first=1 << 30)
        bystander.phase()
        before_mib, cpu_s, began = run.rss_mib, run.cpu_s, time.perf_counter()
        driver = run.send(requests)
        seconds = time.perf_counter() - began
        run.check()
        seen = bystander.phase()
    if seen.failures:
        raise FuzzFailureError(f"seed {seed}: a bystander was refused: {seen.failures[:3]}")
    outcomes = driver.tally.by_outcome()
    return FuzzFigures(
        requests=driver.tally.requests,
        seconds=round(seconds, 1),
        requests_per_s=round(driver.tally.requests / seconds),
        answered=outcomes["answered"],
        closed=outcomes["closed"],
        given_up=outcomes["given up"],
        bystander_produce_p99_ms=seen.produce_p99_ms,
        bystander_api_versions_p99_ms=seen.api_versions_p99_ms,
        memory_before_mib=before_mib,
        memory_after_mib=run.rss_mib,
        broker_cpu_s=round(run.cpu_s - cpu_s, 2),
    )
