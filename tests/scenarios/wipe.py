"""The only Valkey of a cluster loses all it has, again and again, under all kinds of clients.

At full size, from the repository's root: `make prove WHAT=wipe`. It is emptied by FLUSHALL, or
killed with kill -9 and started again empty. No checkpoint is written: each new epoch has the whole
log behind it, `segments` and more. Producing works again at a broker when it acknowledges a record
that was sent after the fault; the time counts from the fault to the last of the brokers.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bucketlog.tiered_storage import keys
from tests.models.history import History
from tests.proofs.shortfall import Figures
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.scenarios.crowd import PARTITIONS, TOPIC, crowd
from tests.scenarios.failover import percentile
from tests.scenarios.pinned import Pinned
from tests.servers.cluster import Cluster, Store, running_cluster

BROKERS = 2
SETTINGS = {
    "checkpoint_interval_ms": "0",
    "flush_interval_ms": "0",
    "group_initial_rebalance_delay_ms": "0",
}
FILLERS = 4
"""A broker; a few PUTs are in flight at once."""
FILL_TIMEOUT_S = 2 * PATIENCE_S
SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class WipeFigures:
    store: str
    brokers: int
    wipes: int
    kills: int
    segments_before: int
    segments_in_the_end: int
    works_again_after_wipe_s: list[float]
    works_again_after_kill_s: list[float]
    wipe_p50_s: float
    kill_p50_s: float
    first_broker_p50_s: float
    """Until one of the brokers acknowledges again."""
    acknowledged: int
    in_log: int
    commits: int
    epochs: int
    broken_promises: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


def wipe(
    store: Store, wipes: int, kills: int, *, segments: int, java: bool, without_redis: bool = False
) -> WipeFigures:
    """Raises `AssertionError` where a promise is broken; nothing is left running. `without_redis`:
    the Valkey that a broker runs is killed; nobody can empty it, so `wipes` has to be 0."""
    assert not (wipes and without_redis), "a broker's Valkey has a password that nobody knows"
    began = time.perf_counter()
    with running_cluster(
        BROKERS, store=store, settings=SETTINGS, without_redis=without_redis
    ) as cluster:
        with crowd(cluster, java=java) as clients:
            clients.wait_for_progress()
            fill(cluster, clients.history, segments)
            before = count(cluster, keys.LOG)
            after_wipe: list[dict[str, float]] = []
            after_kill: list[dict[str, float]] = []

            def repeat(
                times: int, fault: Callable[[], float], found: list[dict[str, float]]
            ) -> None:
                for _ in range(times):
                    let_pass(SETTLE_S)  # the load goes on in the new epoch
                    found.append(clients.works_again_s(fault()))
                    clients.wait_for_progress()

            def kill_and_start() -> float:
                killed = time.monotonic()
                if without_redis:
                    kill_embedded(cluster)
                else:
                    cluster.valkey.kill()
                    cluster.valkey.start()
                return killed

            def flush() -> float:
                flushed = time.monotonic()
                cluster.valkey.wipe()
                return flushed

            repeat(wipes, flush, after_wipe)
            repeat(kills, kill_and_start, after_kill)
            complaints = clients.end()
        assert not complaints, "\n".join(complaints[:10])
        log = clients.judge()
        after, epochs = count(cluster, keys.LOG), count(cluster, keys.EPOCHS)
    assert epochs >= wipes + kills, f"{epochs} epochs: not every fault was noticed"
    wiped_s, killed_s = (
        [round(max(each.values()), 2) for each in found] for found in (after_wipe, after_kill)
    )
    first = [min(each.values()) for each in (*after_wipe, *after_kill)]
    return WipeFigures(
        store=store,
        brokers=BROKERS,
        wipes=wipes,
        kills=kills,
        segments_before=before,
        segments_in_the_end=after,
        works_again_after_wipe_s=wiped_s,
        works_again_after_kill_s=killed_s,
        wipe_p50_s=percentile(wiped_s, 0.5) if wiped_s else 0.0,
        kill_p50_s=percentile(killed_s, 0.5),
        first_broker_p50_s=round(percentile(first, 0.5), 2),
        acknowledged=len(clients.history.acknowledged),
        in_log=sum(map(len, log.values())),
        commits=len(clients.history.commits),
        epochs=epochs,
        broken_promises=0,
        seconds=round(time.perf_counter() - began, 1),
    )


def kill_embedded(cluster: Cluster) -> None:
    """Kill the one Valkey that a broker runs; the broker lives on."""
    (valkey,) = [found for broker in cluster.brokers if (found := broker.valkey()) is not None]
    valkey.kill()


def fill(cluster: Cluster, history: History, segments: int) -> None:
    """Until the log has so many, of one record each or a few."""
    fillers = [
        Pinned(
            f"filler-{broker.node_id}-{number}",
            broker.bootstrap,
            history,
            TOPIC,
            PARTITIONS,
            pause_s=0,
        )
        for broker in cluster.brokers
        for number in range(FILLERS)
    ]
    for filler in fillers:
        filler.start()
    try:
        eventually(
            lambda: count(cluster, keys.LOG) >= segments,
            "the log does not grow",
            bound_s=FILL_TIMEOUT_S,
            pause_s=SETTLE_S,
        )
    finally:
        for filler in fillers:
            filler.stop()


def count(cluster: Cluster, prefix: str) -> int:
    bucket = cluster.open_bucket()
    try:
        return sum(1 for _ in bucket.list(prefix))
    finally:
        bucket.close()
