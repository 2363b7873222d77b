"""A cluster whose Redis goes away and comes back under a load: a broker runs a Valkey meanwhile.

At full size, from the repository's root: `make prove WHAT=no-redis`. A pause is the longest time
between two successive acknowledgements of any producer around a moment.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from tests.models.history import History
from tests.rigs.patience import Deadline, let_pass
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster

TOPIC = "outage"
PARTITIONS = 12
PRODUCERS = 2
BROKERS = 3
BURST_RECORDS = 12
AROUND_S = 20.0
"""The pause of a move is searched for in this time after the move."""
SETTLE_S = 2.0
RATE_S = 60.0
"""Limit of the time over which the rate before the outage is measured."""
OUT_OF_REACH_MS = 3500


@dataclass(frozen=True, slots=True)
class OutageFigures:
    store: str
    outage_s: float
    acknowledged: int
    in_log: int
    broken_promises: int
    pause_s: float
    """When Redis goes away."""
    return_pause_s: float
    """When the log moves back."""
    rate_before_per_s: float
    rate_during_per_s: float
    rate_share: float
    """Of the rate before, the rate while a broker runs the Valkey."""
    return_s: float
    """From Redis' start to the first epoch on it."""
    epochs: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def outage(store: Store, lasts_s: float) -> OutageFigures:
    """Raises `AssertionError` where a promise is broken; nothing is left running."""
    began = time.perf_counter()
    settings = {"sequencer_timeout_ms": str(OUT_OF_REACH_MS)}
    if store is Store.MINIO:
        settings["flush_interval_ms"] = "250"
    with running_cluster(BROKERS, store=store, settings=settings) as cluster:
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
        moments = _under_load(cluster, loads, lasts_s)
        failures = [text for load in loads for text in load.failures]
        assert not failures, "\n".join(failures[:10])
        log = judge(cluster, history, topic=TOPIC, partitions=PARTITIONS)
        epochs = max(_epochs(cluster))
    at = sorted(each.at for each in history.acknowledged)
    settled, went, replaced, back, returned, ended = moments
    before, during = rate(at, settled, went), rate(at, replaced, back)
    return OutageFigures(
        store=store,
        outage_s=round(back - went, 1),
        acknowledged=len(at),
        in_log=sum(len(rows) for rows in log.values()),
        broken_promises=0,
        pause_s=round(longest_pause(at, went, min(went + AROUND_S, back)), 2),
        return_pause_s=round(longest_pause(at, back, ended), 2),
        rate_before_per_s=round(before, 1),
        rate_during_per_s=round(during, 1),
        rate_share=round(during / before, 3),
        return_s=round(returned - back, 1),
        epochs=epochs,
        seconds=round(time.perf_counter() - began, 1),
    )


def _under_load(cluster: Cluster, loads: Sequence[Load], lasts_s: float) -> tuple[float, ...]:
    """When the load had settled, Redis went, a Valkey had replaced it, Redis was back, the log had
    moved back, and the end."""
    for load in loads:
        load.start()
    try:
        for load in loads:
            load.wait_for(PARTITIONS * 10)
        let_pass(SETTLE_S)
        settled = time.monotonic()
        let_pass(min(lasts_s, RATE_S))
        first = max(_epochs(cluster))
        went = time.monotonic()
        cluster.valkey.kill()
        _wait(cluster, lambda epochs: min(epochs) > first)
        for load in loads:
            load.wait_for(PARTITIONS)
        replaced = time.monotonic()
        assert sum(broker.valkey() is not None for broker in cluster.brokers) == 1
        let_pass(max(went + lasts_s - time.monotonic(), SETTLE_S))
        second = max(_epochs(cluster))
        back = time.monotonic()
        cluster.valkey.start()
        _wait(cluster, lambda epochs: min(epochs) > second)
        returned = time.monotonic()
        for load in loads:
            load.wait_for(PARTITIONS * 10)
        let_pass(SETTLE_S)
        assert all(broker.valkey() is None for broker in cluster.brokers)
        ended = time.monotonic()
    finally:
        for load in loads:
            load.stop()
    return settled, went, replaced, back, returned, ended


def _epochs(cluster: Cluster) -> list[int]:
    return [int(broker.running.metrics()["bucketlog_epoch"]) for broker in cluster.brokers]


def _wait(cluster: Cluster, are_right: Callable[[list[int]], bool]) -> None:
    deadline = Deadline(lambda: f"epochs {_epochs(cluster)}")
    while not are_right(_epochs(cluster)):
        deadline.pause(0.1)


def longest_pause(at: Sequence[float], begin: float, end: float) -> float:
    """The longest time without an acknowledgement that ends between `begin` and `end`, or would."""
    inside = [time for time in at if begin <= time <= end]
    before = max((time for time in at if time < begin), default=begin)
    return max(later - earlier for earlier, later in pairwise([before, *inside, end]))


def rate(at: Sequence[float], begin: float, end: float) -> float:
    """Acknowledgements a second."""
    return sum(begin <= time < end for time in at) / (end - begin)
