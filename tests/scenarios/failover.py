"""Brokers of a cluster of three are killed with kill -9, one after the other, under a load.

At full size, from the repository's root: `make prove WHAT=failover`. A killed broker is started
again at once, on its port and with its node id. The visibility gap of a partition is the time
between two successive increases of its high watermark, as whoever asks all brokers sees it, while
records for it are produced all the time.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.history import EndSeen, History, Seen
from tests.rigs.patience import let_pass
from tests.rigs.wire_client import WireClient
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, ClusterBroker, Store, running_cluster

TOPIC = "failover"
PARTITIONS = 12
PRODUCERS = 2
BROKERS = 3
BURST_RECORDS = 12
LATEST = -1
POLL_PAUSE_S = 0.02
ASK_TIMEOUT_S = 0.5
"""A broker that is stopped answers nobody."""
SETTLE_S = 2.0


@dataclass(frozen=True, slots=True)
class FailoverFigures:
    store: str
    kills: int
    acknowledged: int
    in_log: int
    broken_promises: int
    longest_gap_s: dict[int, float]
    """By partition."""
    gap_p99_s: float
    """Of the longest gap of each partition after each kill."""
    gap_p50_s: float
    slowest_restart_s: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Watch:
    """When each partition's high watermark was seen to rise, and what each broker said of it.
    Start it with `with`."""

    brokers: Sequence[ClusterBroker]
    history: History
    topic: str = TOPIC
    partitions: int = PARTITIONS
    rises: dict[int, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask_on, args=(broker,), name=f"watch-{broker.node_id}")
            for broker in self.brokers
        ]
        self._lock = threading.Lock()
        self._highest = dict.fromkeys(range(self.partitions), 0)
        self.rises = {partition: [] for partition in self._highest}

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _ask_on(self, broker: ClusterBroker) -> None:
        while not self._stopping.is_set():
            try:
                with WireClient(broker.bootstrap, timeout_s=ASK_TIMEOUT_S) as client:
                    while not self._stopping.wait(POLL_PAUSE_S):
                        began = time.monotonic()
                        self._take(broker, self._ask(client), began)
            except OSError:  # it is dead, or does not answer
                self._stopping.wait(POLL_PAUSE_S)

    def _ask(self, client: WireClient) -> list[tuple[int, int]]:
        rows = [{"partition_index": number, "timestamp": LATEST} for number in self._highest]
        answer = client.call(
            ApiKey.LIST_OFFSETS,
            4,
            replica_id=-1,
            isolation_level=0,
            topics=[{"name": self.topic, "partitions": rows}],
        )
        return [
            (row.partition_index, row.offset)
            for row in answer.topics[0].partitions
            if row.error_code == 0
        ]

    def _take(self, broker: ClusterBroker, seen: list[tuple[int, int]], began: float) -> None:
        now, observer = time.monotonic(), f"the watch of broker {broker.node_id}"
        self.history.ends += [EndSeen(observer, *row, began) for row in seen]
        self.history.high_watermarks += [Seen(observer, *row) for row in seen]
        with self._lock:
            for partition, offset in seen:
                if offset > self._highest[partition]:
                    self._highest[partition] = offset
                    self.rises[partition].append(now)


def longest_gaps(
    rises: dict[int, list[float]], began: Sequence[float], ended: float
) -> dict[int, list[float]]:
    """By partition, the longest gap that ends in each of the spans that begin at `began`. A gap
    that has not ended when the watch does counts as if it did."""
    found: dict[int, list[float]] = {}
    bounds = [*began, ended]
    for partition, times in rises.items():
        longest = [0.0] * len(began)
        for one, following in zip(times, [*times[1:], ended], strict=True):
            for number in range(len(began)):
                last = number == len(began) - 1
                if bounds[number] < following and (last or following <= bounds[number + 1]):
                    longest[number] = max(longest[number], following - one)
        found[partition] = longest if times else [ended - began[0]] * len(began)
    return found


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def failover(
    store: Store, kills: int, *, between_s: float, without_redis: bool = False
) -> FailoverFigures:
    """Raises `AssertionError` where a promise is broken; nothing is left running. `without_redis`:
    the brokers run the sequencer's Valkey, one at a time."""
    began = time.perf_counter()
    settings = {"flush_interval_ms": "250"} if store is Store.MINIO else {}
    with running_cluster(
        BROKERS, store=store, settings=settings, without_redis=without_redis
    ) as cluster:
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        history = History()
        loads = Load.several(
            PRODUCERS,
            cluster.bootstrap,
            history,
            topic=TOPIC,
            partitions=PARTITIONS,
            burst_records=BURST_RECORDS,
        )
        gaps, slowest = _under_load(cluster, loads, kills, between_s)
        failures = [text for load in loads for text in load.failures]
        assert not failures, "\n".join(failures[:10])
        log = judge(cluster, history, topic=TOPIC, partitions=PARTITIONS)
    samples = [gap for mine in gaps.values() for gap in mine]
    return FailoverFigures(
        store=store,
        kills=kills,
        acknowledged=len(history.acknowledged),
        in_log=sum(len(rows) for rows in log.values()),
        broken_promises=0,
        longest_gap_s={partition: round(max(mine), 2) for partition, mine in gaps.items()},
        gap_p99_s=round(percentile(samples, 0.99), 2),
        gap_p50_s=round(percentile(samples, 0.5), 2),
        slowest_restart_s=round(slowest, 2),
        seconds=round(time.perf_counter() - began, 1),
    )


def _under_load(
    cluster: Cluster, loads: Sequence[Load], kills: int, between_s: float
) -> tuple[dict[int, list[float]], float]:
    """The gaps after each kill, and the seconds of the slowest restart."""
    began, slowest = [], 0.0
    for load in loads:
        load.start()
    try:
        for load in loads:
            load.wait_for(PARTITIONS * 10)
        with Watch(cluster.brokers, loads[0].history) as watch:
            let_pass(SETTLE_S)
            for turn in range(kills):
                victim = cluster.brokers[turn % len(cluster.brokers)]
                began.append(time.monotonic())
                victim.kill()
                victim.start()
                slowest = max(slowest, time.monotonic() - began[-1])
                let_pass(began[-1] + between_s - time.monotonic())
            ended = time.monotonic()
            for load in loads:
                load.wait_for(PARTITIONS * 10)
    finally:
        for load in loads:
            load.stop()
    return longest_gaps(watch.rises, began, ended), slowest
