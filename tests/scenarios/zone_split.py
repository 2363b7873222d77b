"""For minutes, one broker of three keeps to the old Redis primary, and two follow a failover.

At full size, from the repository's root: `make prove WHAT=zone-split`. Each broker reaches Redis
through a separate proxy. A probe writes to each broker. An idempotent producer writes to the two
that follow.

1. The replica is promoted, and two brokers are sent to it. The third stays with the old primary,
   which keeps working as a primary.
2. When the split ends, the third is sent to the new primary, too.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from tests.models.history import History
from tests.proofs.shortfall import Figures
from tests.rigs.patience import eventually, let_pass
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.pinned import Pinned
from tests.scenarios.round_trip import create_topic
from tests.scenarios.split import highest_epoch
from tests.servers.cluster import Cluster, Store, running_cluster
from tests.servers.valkey_pair import ValkeyPair
from tests.servers.way import ANY_PORT, Way

TOPIC, PARTITIONS = "zone-split", 6
BROKERS = 3
LEFT_BEHIND = 0
OLD, NEW = 0, 1
PROBE_PAUSE_S = 0.02
PROBE_ANSWER_S = 10.0
SETTINGS = {"checkpoint_interval_ms": "5000", "log_retention_ms": "-1"}
"""The probes' records have old timestamps, so retention would delete them after five minutes."""
BEFORE_RECORDS = 50


@dataclass(frozen=True, slots=True)
class ZoneSplitFigures:
    store: str
    split_s: int
    lost_s: int
    """Number of windows of 1 s in which the majority acknowledged nothing."""
    lost_s_by_broker: dict[str, int]
    minority_acknowledged: int
    """Seconds of the split with an acknowledgement, without the first 5 s."""
    minority_reason: str
    together_s: float
    """Time from the end of the split until all brokers were in one epoch."""
    epochs: int
    """Number of epochs that were claimed in the split and after it."""
    acknowledged: int
    in_log: int
    broken_promises: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


def zone_split(store: Store, *, split_s: int) -> ZoneSplitFigures:
    """Raises `AssertionError` if a promise is broken. Leaves nothing running."""
    began = time.perf_counter()
    with ExitStack() as closing:
        pair = closing.enter_context(ValkeyPair().running())
        pair.replicate(OLD)
        ways = [closing.enter_context(Way(pair.address(OLD), ANY_PORT)) for _ in range(BROKERS)]
        ports = [way.port for way in ways]
        cluster = closing.enter_context(
            running_cluster(BROKERS, store=store, settings=SETTINGS, redis_ports=ports)
        )
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        history = History()
        threads = _writers(cluster, history)
        for thread in threads:
            thread.start()
            closing.callback(thread.stop)
        eventually(
            lambda: all(thread.acknowledged >= BEFORE_RECORDS for thread in threads),
            "not all writers are acknowledged",
        )
        epoch = highest_epoch(cluster)
        split_at = time.monotonic()
        pair.promote(NEW)
        for number, way in enumerate(ways):
            if number != LEFT_BEHIND:
                way.lead_to(pair.address(NEW))
        let_pass(split_s)
        reason = cluster.brokers[LEFT_BEHIND].running.readiness()[1].get("joining", "")
        healed_at = time.monotonic()
        ways[LEFT_BEHIND].lead_to(pair.address(NEW))
        eventually(lambda: len(_epochs(cluster)) == 1, "the brokers are in several epochs")
        together_s = time.monotonic() - healed_at
        for thread in threads:
            if isinstance(thread, Pinned):
                thread.works_again(healed_at)
        for thread in threads:
            thread.stop()
        load = next(thread for thread in threads if isinstance(thread, Load))
        assert not load.failures, load.failures[:3]
        epochs = highest_epoch(cluster) - epoch
        log = judge(cluster, history, topic=TOPIC, partitions=PARTITIONS)
    seconds = _seconds(history, split_at, split_s)
    majority = [f"probe-{number}" for number in range(BROKERS) if number != LEFT_BEHIND]
    return ZoneSplitFigures(
        store=store,
        split_s=split_s,
        lost_s=split_s - len(set().union(*(seconds[name] for name in majority))),
        lost_s_by_broker={name: split_s - len(seconds[name]) for name in majority},
        minority_acknowledged=sum(at >= 5 for at in seconds[f"probe-{LEFT_BEHIND}"]),
        minority_reason=reason,
        together_s=round(together_s, 2),
        epochs=epochs,
        acknowledged=len(history.acknowledged),
        in_log=sum(map(len, log.values())),
        broken_promises=0,
        seconds=round(time.perf_counter() - began, 1),
    )


def _writers(cluster: Cluster, history: History) -> Sequence[Pinned | Load]:
    followers = [broker.bootstrap for broker in cluster.brokers if broker.node_id != LEFT_BEHIND]
    probes = [
        Pinned(
            f"probe-{broker.node_id}",
            broker.bootstrap,
            history,
            TOPIC,
            PARTITIONS,
            pause_s=PROBE_PAUSE_S,
            answer_timeout_s=PROBE_ANSWER_S,
        )
        for broker in cluster.brokers
    ]
    load = Load(
        "librdkafka",
        ",".join(followers),
        history,
        topic=TOPIC,
        partitions=PARTITIONS,
        burst_records=1,
    )
    return [*probes, load]


def _epochs(cluster: Cluster) -> set[float]:
    """The epochs of ready brokers, and 0 if a broker is not ready."""
    found = set()
    for broker in cluster.brokers:
        status, _ = broker.running.readiness()
        found.add(broker.running.metrics()["bucketlog_epoch"] if status == 200 else 0.0)
    return found


def _seconds(history: History, split_at: float, split_s: int) -> dict[str, set[int]]:
    """By producer, the seconds of the split with an acknowledgement."""
    found: dict[str, set[int]] = {f"probe-{number}": set() for number in range(BROKERS)}
    for acknowledged in history.acknowledged:
        second = int(acknowledged.at - split_at)
        if acknowledged.at >= split_at and second < split_s:
            found.setdefault(acknowledged.sent.producer, set()).add(second)
    return found
