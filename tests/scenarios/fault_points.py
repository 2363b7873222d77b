"""Brokers that die by SIGKILL at each step of the commit path, one point after the other.

At full size, from the repository's root: `make prove WHAT=faultpoints`. Three brokers are at work
under all kinds of clients. A point is armed, and what leads to it is done: nothing (the load comes
to it), another broker is killed (its chain is sealed), Redis is wiped (a new epoch is claimed). One
broker dies there; those that are left carry on, then the dead are started again.
"""

import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.shortfall import Figures
from tests.rigs.patience import Deadline
from tests.scenarios.crowd import Crowd, crowd
from tests.servers.cluster import Cluster, ClusterBroker, Store, running_cluster
from tests.servers.mortal_broker import FOLDER, Point

BROKERS = 3
SETTINGS = {
    "checkpoint_interval_ms": "1000",
    "heartbeat_interval_ms": "300",
    "session_timeout_ms": "1500",
    "flush_interval_ms": "0",
    "group_initial_rebalance_delay_ms": "0",
}
OTHER_DIES = {Point.BEFORE_SEAL, Point.SEALED, Point.FENCED}
REDIS_IS_WIPED = {
    Point.NONCE,
    Point.CLAIMED,
    Point.BEFORE_ACTIVATION,
    Point.ACTIVATED,
    Point.REGISTERED,
    Point.KNOWN,
}


@dataclass(frozen=True, slots=True)
class FaultPointFigures:
    store: str
    points: int
    rounds: int
    deaths: int
    works_again_s: dict[str, float]
    """By point, from the death until the brokers that are left acknowledged again; the slowest."""
    acknowledged: int
    in_log: int
    broken_promises: int
    seconds: float

    def as_json(self) -> Figures:
        return asdict(self)


def fault_points(store: Store, points: Sequence[Point], rounds: int) -> FaultPointFigures:
    """Raises `AssertionError` where a promise is broken; nothing is left running."""
    began, deaths = time.perf_counter(), 0
    slowest: dict[str, float] = {}
    with TemporaryDirectory(prefix="bucketlog-points-") as folder:
        armed = Path(folder)
        with running_cluster(
            BROKERS,
            store=store,
            settings=SETTINGS,
            module="tests.servers.mortal_broker",
            environment={FOLDER: folder},
        ) as cluster:
            with crowd(cluster, java=False) as clients:
                clients.wait_for_progress()
                for turn in range(rounds):
                    for point in points:
                        seconds = _die_at(point, turn, armed, cluster, clients)
                        slowest[point] = max(slowest.get(point, 0.0), round(seconds, 2))
                        deaths += 1
                complaints = clients.end()
            assert not complaints, "\n".join(complaints[:10])
            log = clients.judge()
    return FaultPointFigures(
        store=store,
        points=len(points),
        rounds=rounds,
        deaths=deaths,
        works_again_s=slowest,
        acknowledged=len(clients.history.acknowledged),
        in_log=sum(map(len, log.values())),
        broken_promises=0,
        seconds=round(time.perf_counter() - began, 1),
    )


def _die_at(point: Point, turn: int, armed: Path, cluster: Cluster, clients: Crowd) -> float:
    """Until all brokers are back and all clients get on; the seconds until those left worked."""
    (armed / point).touch()
    if point in OTHER_DIES:
        cluster.brokers[turn % BROKERS].kill()
    elif point in REDIS_IS_WIPED:
        cluster.valkey.wipe()
    dead = wait_for_death(cluster, point)
    died = time.monotonic()
    left = [probe for probe in clients.probes if _runs(cluster, probe.name)]
    works_again = max(probe.works_again(died) for probe in left) - died
    for broker in cluster.brokers:
        if broker.process is None:
            broker.start()
    clients.wait_for_progress(5)
    assert not (armed / point).exists(), f"{point}: nobody came to it"
    assert dead.process is not None
    return works_again


def _runs(cluster: Cluster, probe: str) -> bool:
    return any(
        broker.process is not None and probe == f"probe-{broker.node_id}"
        for broker in cluster.brokers
    )


def wait_for_death(cluster: Cluster, point: Point) -> ClusterBroker:
    """The broker that died at the point, without its process. Raises `AssertionError`."""
    deadline = Deadline(f"nobody died {point}")
    while True:
        for broker in cluster.brokers:
            if broker.process is not None and broker.process.process.poll() is not None:
                code = broker.process.wait()
                assert code == -signal.SIGKILL, f"broker {broker.node_id} ended with {code}"
                broker.process = None
                return broker
        deadline.pause()
