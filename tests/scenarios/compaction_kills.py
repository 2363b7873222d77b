"""Broker and Valkey die by SIGKILL in the middle of compaction, at random moments, and come back,
Valkey empty: whoever reads finds what was written. Part of `make prove WHAT=compaction`."""

import random
import time
from dataclasses import asdict, dataclass

from tests.proofs.shortfall import Figures
from tests.rigs.patience import let_pass
from tests.scenarios.compaction import (
    IDLE,
    check_fetched,
    check_producers_go_on,
    check_same,
    find,
    is_compacted,
    read_state,
    wait_until,
)
from tests.scenarios.small_batches import write_small_batches
from tests.servers.cluster import Cluster, running_cluster

KILLED_AFTER_S = (0.5, 2.5)
"""From when the broker is ready."""
SECONDS_A_KILL = 4
SLOW = IDLE | {
    "checkpoint_interval_ms": "500",
    "compaction_check_interval_ms": "20",
    "compaction_interval_ms": "1",
    "compaction_age_ms_min": "0",
}
"""A broker that starts takes what a checkpoint covers for as young as the checkpoint."""
FETCHED = 5
"""Partitions that are read by fetches after each kill."""


@dataclass(frozen=True, slots=True)
class KillFigures:
    segments: int
    partitions: int
    kills: int
    kills_while_splitting: int
    """When some log segments were split, or partition segments written, but not all."""
    waiting_segments: list[int]
    """Log segments that were not split yet, after each kill."""
    epochs: int
    referenced: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


def compaction_kills(segments: int, partitions: int, kills: int, seed: int = 1) -> KillFigures:
    """So slow that it takes longer than all kills do. Raises `AssertionError` where something is
    not what was written; nothing is left running."""
    began = time.perf_counter()
    chance = random.Random(seed)
    with running_cluster(0, late=1) as cluster:
        bucket = cluster.open_bucket()
        wrote = write_small_batches(bucket, segments, partitions)
        before = read_state(bucket)
        (broker,) = cluster.brokers
        pace = wrote.log_bytes // (kills * SECONDS_A_KILL)
        window = max(pace // 4, wrote.partition_bytes * partitions // 50)
        broker.settings |= SLOW | {
            "compaction_bytes_per_s": str(pace),
            "compaction_window_bytes": str(window),
        }
        waiting = []
        for turn in range(kills):
            broker.start()
            let_pass(chance.uniform(*KILLED_AFTER_S))
            _kill_both(cluster, first=turn % 2)
            found = find(bucket, wrote)
            check_same(found, wrote, before)
            waiting.append(found.waiting_segments)
            cluster.valkey.start()
        broker.settings |= IDLE
        broker.start()
        numbers = chance.sample(range(partitions), FETCHED)
        check_fetched(broker, wrote, iter(numbers))
        broker.end()
        broker.settings |= SLOW | {"compaction_bytes_per_s": str(64 << 20)}
        broker.start()
        wait_until("the log is not compacted", lambda: is_compacted(bucket, wrote))
        found = find(bucket, wrote)
        check_same(found, wrote, before)
        check_fetched(broker, wrote, iter(range(partitions)))
        check_producers_go_on(broker, wrote, segments)
        epochs = len(list(bucket.list("epochs/")))
        bucket.close()
    return KillFigures(
        segments=segments,
        partitions=partitions,
        kills=kills,
        kills_while_splitting=sum(0 < count < segments for count in waiting),
        waiting_segments=waiting,
        epochs=epochs,
        referenced=found.referenced,
        seconds=round(time.perf_counter() - began, 1),
    )


def _kill_both(cluster: Cluster, first: int) -> None:
    (broker,) = cluster.brokers
    dying = [broker.kill, cluster.valkey.kill]
    for kill in (dying[first], dying[1 - first]):
        kill()
