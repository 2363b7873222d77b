"""Brokers that have served, and have nothing to do: they ask nothing of the bucket.

At full size, from the repository's root: `make prove WHAT=idle`.
"""

from dataclasses import asdict, dataclass
from typing import Any

from tests.models.history import History
from tests.rigs.patience import let_pass
from tests.scenarios.pinned import Pinned
from tests.scenarios.round_trip import create_topic
from tests.scenarios.zombie import wait_for_progress
from tests.servers.cluster import Store, running_cluster

TOPIC = "idle"
SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class IdleFigures:
    store: str
    brokers: int
    idle_s: float
    requests_before: float
    requests_while_idle: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def idle(store: Store, seconds: float) -> IdleFigures:
    """Requests to the bucket of two brokers while nobody wants anything of them."""
    with running_cluster(2, store=store) as cluster:
        create_topic(cluster.brokers[0].bootstrap, TOPIC, 1)
        producers = [
            Pinned(f"through-{broker.node_id}", broker.bootstrap, History(), TOPIC)
            for broker in cluster.brokers
        ]
        try:
            for producer in producers:
                producer.start()
            wait_for_progress(producers)
        finally:
            for producer in producers:
                producer.stop()
        let_pass(SETTLE_S)
        before = cluster.requests()
        let_pass(seconds)
        after = cluster.requests()
    assert before > 0, "the brokers count nothing"
    return IdleFigures(store, len(cluster.brokers), seconds, before, after - before)
