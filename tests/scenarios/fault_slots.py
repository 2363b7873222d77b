"""A cluster that supports all faults, and the execution of a plan of faults."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from tests.models.fault_plan import PlannedFault, Target
from tests.rigs.patience import let_pass
from tests.scenarios.faults import Fault, broker_of
from tests.servers.chaos_broker import BREAK, CLOCK
from tests.servers.cluster import Cluster, ClusterBroker, Store, running_cluster
from tests.servers.replicated_valkey import ReplicatedValkey

BROKERS = 3
ALONE = frozenset({"zone-loss", "redis-left-behind", "redis-failover", "valkey-pause"})
"""Faults that come alone, because no other fault can begin or end at the same time."""
SETTINGS = {
    "checkpoint_interval_ms": "5000",
    "flush_interval_ms": "20",
    "group_initial_rebalance_delay_ms": "0",
}


class FaultNotes(Protocol):
    """Notes when faults begin and end. `broker` is None for a fault of all brokers."""

    def fault_begins(self, name: str, broker: int | None) -> None: ...
    def fault_ended(self, name: str, broker: int | None) -> None: ...


@contextmanager
def fragile_cluster(
    folder: Path, store: Store, broken_rule: str | None = None, **settings: str
) -> Iterator[Cluster]:
    """A running cluster. `folder` holds the clock files. `broken_rule`: see `ChaosOptions`."""
    with ExitStack() as closing:
        valkey = closing.enter_context(ReplicatedValkey().running())
        clocks = folder / "clocks"
        clocks.mkdir(exist_ok=True)
        environment = {CLOCK: str(clocks)}
        if broken_rule is not None:
            environment[BREAK] = broken_rule
        yield closing.enter_context(
            running_cluster(
                BROKERS,
                store=store,
                settings=SETTINGS | settings,
                module="tests.servers.chaos_broker",
                environment=environment,
                by_ways=True,
                more_ways=True,
                replicated=valkey,
            )
        )


def carry_out(
    cluster: Cluster,
    plan: Sequence[PlannedFault],
    faults: Mapping[str, Fault],
    notes: FaultNotes,
    told: Callable[[str], None],
    *,
    topic: str,
    group: str,
) -> list[str]:
    """Carry out the plan. Returns a message for each broker that ended by itself.

    Faults of a leader hit the leader of `topic`, and faults of a coordinator that of `group`. If a
    slot ends late because brokers start slowly, all later slots are late, too.
    """
    began, problems = time.monotonic(), []
    slots: dict[float, list[PlannedFault]] = {}
    for planned in plan:
        slots.setdefault(planned.begins_s, []).append(planned)
    for begins_s, slot in slots.items():
        let_pass(began + begins_s - time.monotonic())
        met = _victims(cluster, slot, topic, group)
        for planned, broker in met:
            number = None if planned.target is Target.ALL else broker.node_id
            told(f"{planned.fault} of {planned.target}: broker {number}")
            notes.fault_begins(planned.fault, number)
            faults[planned.fault].begin(cluster, broker)
        let_pass(began + slot[0].ends_s - time.monotonic())
        ends_at = time.monotonic()
        problems += _revive(cluster)
        for planned, broker in met:
            faults[planned.fault].end(cluster, broker)
        cluster.wait_until_ready()
        for planned, broker in met:
            number = None if planned.target is Target.ALL else broker.node_id
            notes.fault_ended(planned.fault, number)
        began += time.monotonic() - ends_at
    return problems


def _victims(
    cluster: Cluster, slot: Sequence[PlannedFault], topic: str, group: str
) -> list[tuple[PlannedFault, ClusterBroker]]:
    """Choose a broker for each fault. If the broker already has a fault, use the plan's broker."""
    found: list[tuple[PlannedFault, ClusterBroker]] = []
    for planned in slot:
        planned_broker = cluster.brokers[planned.broker]
        broker = broker_of(
            cluster, planned.target, topic=topic, group=group, otherwise=planned_broker
        )
        if any(broker is other for _, other in found):
            broker = planned_broker
        found.append((planned, broker))
    return found


def _revive(cluster: Cluster) -> list[str]:
    """Start the brokers that ended by themselves. Returns a message for each."""
    problems = []
    for broker in cluster.brokers:
        if broker.process is not None and broker.process.process.poll() is not None:
            code = broker.process.wait()
            problems.append(f"broker {broker.node_id} ended by itself with exit code {code}")
            broker.begin()
    return problems
