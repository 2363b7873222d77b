"""A broker is stopped in the middle of a PUT, taken for dead, sealed, and wakes up again.

At full size, from the repository's root: `make prove WHAT=zombie`. What becomes of the PUT differs
by round: it reaches the bucket before others seal the chain; after that, while the broker still
sleeps; or after it woke. Whatever the broker then acknowledges must be in the log, at its offset.
"""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.segment import is_seal
from localstack.slow_puts import constant
from tests.models.history import History
from tests.rigs.patience import PATIENCE_S, Deadline, let_pass
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.pinned import Pinned
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster

TOPIC = "zombie"
PARTITIONS = 4
ZOMBIE = 0
BROKERS = 2
PINNED = 3
SEALED_AFTER_S = 4.0
"""Heartbeats are missed by then, and the chain is sealed."""


@dataclass(frozen=True, slots=True)
class ZombieFigures:
    rounds: int
    stopped_s: float
    acknowledged: int
    acknowledged_by_zombie: int
    slowest_answer_of_zombie_s: float
    refused_by_zombie: dict[str, int]
    in_log: int
    seals: int
    broken_promises: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def zombie(rounds: int, *, stopped_s: float) -> ZombieFigures:
    """Raises `AssertionError` where a promise is broken, or no chain was sealed."""
    began = time.perf_counter()
    delays = {ZOMBIE: constant(0)}
    with running_cluster(BROKERS, store=Store.MINIO, delays=delays) as cluster:
        sleeper = cluster.brokers[ZOMBIE]
        create_topic(sleeper.bootstrap, TOPIC, PARTITIONS)
        history = History()
        load = Load("librdkafka", cluster.bootstrap, history, topic=TOPIC, partitions=PARTITIONS)
        pinned = [
            Pinned(f"pinned-{number}", sleeper.bootstrap, history, TOPIC, PARTITIONS)
            for number in range(PINNED)
        ]
        try:
            for thread in (load, *pinned):
                thread.start()
            for turn in range(rounds):
                _round(cluster, turn, stopped_s)
                load.wait_for(100)
                wait_for_progress(pinned)
        finally:
            if sleeper.stopped:
                sleeper.go_on()
            for thread in pinned:
                thread.stop()
            load.stop()
        log = judge(cluster, history, topic=TOPIC, partitions=PARTITIONS)
        seals = count_seals(cluster)
    assert not load.failures, load.failures[:5]
    assert seals >= rounds, f"{seals} chains were sealed in {rounds} rounds: nobody was a zombie"
    refusals = [reason for thread in pinned for reason in thread.refused]
    return ZombieFigures(
        rounds=rounds,
        stopped_s=stopped_s,
        acknowledged=len(history.acknowledged),
        acknowledged_by_zombie=sum(thread.acknowledged for thread in pinned),
        slowest_answer_of_zombie_s=round(max(thread.slowest_s for thread in pinned), 1),
        refused_by_zombie={reason: refusals.count(reason) for reason in set(refusals)},
        in_log=sum(map(len, log.values())),
        seals=seals,
        broken_promises=0,
        seconds=round(time.perf_counter() - began, 1),
    )


def _round(cluster: Cluster, turn: int, stopped_s: float) -> None:
    held_s = (1.0, SEALED_AFTER_S, stopped_s + 1.0)[turn % 3]
    proxy, sleeper = cluster.proxies[ZOMBIE], cluster.brokers[ZOMBIE]
    proxy.delay = constant(held_s)
    assert proxy.wait_for_held(PATIENCE_S), "the broker writes nothing"
    sleeper.stop_in_its_tracks()
    let_pass(stopped_s)
    proxy.delay = constant(0)
    sleeper.go_on()


def wait_for_progress(threads: Iterable[Pinned]) -> None:
    """Until each has more acknowledged."""
    for thread in threads:
        before = thread.acknowledged
        deadline = Deadline(f"{thread.name}: no progress")
        while thread.acknowledged == before:
            deadline.pause()


def count_seals(cluster: Cluster) -> int:
    bucket = cluster.open_bucket()
    try:
        return sum(is_seal(info.size_bytes) for info in bucket.list(keys.LOG))
    finally:
        bucket.close()
