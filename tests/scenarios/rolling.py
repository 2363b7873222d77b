"""A cluster is restarted broker by broker, again and again, under load, and no client notices.

At full size, from the repository's root: `make prove WHAT=rolling`. Three kinds of producers send
at a steady pace, all kinds of clients of `tests.scenarios.crowd` write and read beside them; each
broker is told to stop by SIGTERM, ends by itself, and is started again when it is gone. Nothing may
be given up by any client; what was acknowledged is in the log once, in order.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tests.proofs.shortfall import Figures
from tests.rigs.patience import let_pass
from tests.scenarios.crowd import crowd
from tests.scenarios.failover import percentile
from tests.scenarios.paced import RECORD_BYTES, Paced, PacedAiokafka, PacedJava, PacedLibrdkafka
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster

BROKERS = 3
BALLAST, BALLAST_PARTITIONS = "ballast", 12
SETTINGS = {"group_initial_rebalance_delay_ms": "0", "handover_ms": "1000"}
SETTLE_S = 2.0


@dataclass(frozen=True, slots=True)
class RollingFigures:
    """Seconds are from when a record was due to its acknowledgement. `java_slowest_s`: the longest
    of each second, for which Java's tool tells no quantiles."""

    store: str
    rounds: int
    restarts: int
    bytes_per_s: float
    steady_p50_s: dict[str, float]
    steady_p99_s: dict[str, float]
    rolling_p50_s: dict[str, float]
    rolling_p99_s: dict[str, float]
    java_slowest_steady_s: float
    java_slowest_rolling_s: float
    stop_s: list[float]
    """How long brokers took to end."""
    acknowledged: dict[str, int]
    judged: int
    """Records whose place in the log was looked at."""
    errors: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


def rolling(
    store: Store, rounds: int, *, bytes_per_s: float, steady_s: float, java: bool
) -> RollingFigures:
    """Raises `AssertionError` where a client notices or a promise is broken; nothing is left
    running. Raises `ConfigurationError` where `java` is wanted and not installed."""
    began = time.perf_counter()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it warns of each retry
    flush = {"flush_interval_ms": "250"} if store is Store.MINIO else {}  # as by default there
    with running_cluster(BROKERS, store=store, settings=SETTINGS | flush) as cluster:
        create_topic(cluster.brokers[0].bootstrap, BALLAST, BALLAST_PARTITIONS)
        ballast = _ballast(cluster, bytes_per_s, java=java)
        with crowd(cluster, java=java) as clients:
            for each in ballast:
                each.start()
            try:
                clients.wait_for_progress()
                let_pass(SETTLE_S)
                steady = time.monotonic()
                let_pass(steady_s)
                rolled = time.monotonic()
                stop_s = [_restart(cluster, at % BROKERS) for at in range(rounds * BROKERS)]
                over = time.monotonic()
                clients.wait_for_progress()
            finally:
                for each in ballast:
                    each.stop()
            complaints = clients.end()
        complaints += [f"{each.name}: {text}" for each in ballast for text in each.failures[:5]]
        assert not complaints, "\n".join(complaints[:20])
        log = clients.judge()
    (steady_p50, steady_p99), (rolling_p50, rolling_p99) = (
        tuple(_quantile(ballast, share, *span) for share in (0.5, 0.99))
        for span in ((steady, rolled), (rolled, over))
    )
    return RollingFigures(
        store=store,
        rounds=rounds,
        restarts=len(stop_s),
        bytes_per_s=bytes_per_s,
        steady_p50_s=steady_p50,
        steady_p99_s=steady_p99,
        rolling_p50_s=rolling_p50,
        rolling_p99_s=rolling_p99,
        java_slowest_steady_s=_slowest(ballast, steady, rolled),
        java_slowest_rolling_s=_slowest(ballast, rolled, over),
        stop_s=stop_s,
        acknowledged={each.name: each.acknowledged for each in ballast},
        judged=sum(map(len, log.values())),
        errors=len(complaints),
        seconds=round(time.perf_counter() - began, 1),
    )


def _ballast(cluster: Cluster, bytes_per_s: float, *, java: bool) -> list[Paced]:
    share = bytes_per_s / (3 if java else 2)
    assert share >= RECORD_BYTES
    where = cluster.bootstrap
    found: list[Paced] = [
        PacedLibrdkafka("librdkafka", where, BALLAST, bytes_per_s=share),
        PacedAiokafka("aiokafka", where, BALLAST, bytes_per_s=share),
    ]
    if java:
        found.append(
            PacedJava("java", where, BALLAST, bytes_per_s=share, folder=cluster.folder),
        )
    return found


def _restart(cluster: Cluster, at: int) -> float:
    """How long the broker took to end, from SIGTERM on."""
    broker = cluster.brokers[at]
    told = time.monotonic()
    broker.end()
    ended = time.monotonic()
    broker.start()
    cluster.wait_until_all_are_members()
    let_pass(SETTLE_S)
    return round(ended - told, 2)


def _quantile(
    ballast: Sequence[Paced], share: float, first: float, last: float
) -> dict[str, float]:
    """Of what was acknowledged between the two points in time, by producer."""
    found = {}
    for each in ballast:
        if within := [seconds for at, seconds in each.seconds if first <= at < last]:
            found[each.name] = round(percentile(within, share), 3)
    return found


def _slowest(ballast: Sequence[Paced], first: float, last: float) -> float:
    return max(
        (
            seconds
            for each in ballast
            if isinstance(each, PacedJava)
            for at, seconds in each.windows
            if first <= at < last
        ),
        default=0.0,
    )
