"""The faults of a cluster, each with its beginning and its end: for single faults and for chaos.

Brokers reach MinIO and Valkey through ways (tests/servers/way.py); faults of networks and servers
are faults of these. `end` leaves the cluster as it was; brokers that it starts may not be ready.
"""

import re
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import psutil

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.fault_plan import ONE_BROKER, Target
from tests.rigs.wire_client import WireClient
from tests.servers.chaos_broker import CLOCK, set_clock
from tests.servers.cluster import Cluster, ClusterBroker
from tests.servers.put_faults import PutFate
from tests.servers.replicated_valkey import ReplicatedValkey
from tests.servers.way import State, Way

LASTS_S = 12.0
"""Duration of a fault that does not end by itself."""
SLOW_S = 0.2
"""Ten times the latency of MinIO on this kind of machine."""
SLOW_REDIS_S = 0.05
PUT_SHARE = 0.5
"""The share of PUTs that a faulty store answers wrongly. Senders try again."""
CLOCK_JUMP_S = 600
LAG_S = 1.0
_ACTIVE = re.compile(r"epoch (\d+) is active")
_CHECKPOINTS = "bucketlog_checkpoints_total"

Step = Callable[[Cluster, ClusterBroker], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """`begin` and `end` get the cluster and the affected broker; for a fault of the whole cluster
    (ALL), it is the last broker. `needs` says which cluster can have the fault."""

    name: str
    begin: Step
    end: Step
    targets: Sequence[Target] = ONE_BROKER
    lasts_s: float = LASTS_S
    bound_s: float = 3.0
    """Limit of a pause."""
    needs: Callable[[Cluster], bool] = lambda cluster: True


def _nothing(cluster: Cluster, broker: ClusterBroker) -> None:
    pass


def _has_store(cluster: Cluster) -> bool:
    return cluster.store is not None


def _has_folder(cluster: Cluster) -> bool:
    return cluster.store is None


def _has_put_faults(cluster: Cluster) -> bool:
    return all(ways.puts is not None for ways in cluster.ways.values())


def _has_client_ways(cluster: Cluster) -> bool:
    return all(ways.clients is not None for ways in cluster.ways.values())


def _has_replica(cluster: Cluster) -> bool:
    return isinstance(cluster.valkey, ReplicatedValkey)


def _has_clocks(cluster: Cluster) -> bool:
    return all(CLOCK in broker.store for broker in cluster.brokers)


def _begin(cluster: Cluster, broker: ClusterBroker) -> None:
    broker.begin()


def _kill_two(cluster: Cluster, broker: ClusterBroker) -> None:
    for each in cluster.brokers[1:]:
        each.kill()


def _start_two(cluster: Cluster, broker: ClusterBroker) -> None:
    for each in cluster.brokers[1:]:
        each.begin()


def _to_store(cluster: Cluster, broker: ClusterBroker) -> Way:
    return cluster.ways[broker.node_id].to_store


def _to_redis(cluster: Cluster, broker: ClusterBroker) -> Way:
    return cluster.ways[broker.node_id].to_redis


def _from_clients(cluster: Cluster, broker: ClusterBroker) -> Way:
    return cluster.ways[broker.node_id].from_clients


WayOf = Callable[[Cluster, ClusterBroker], Way]


def _becomes(way: WayOf, state: State) -> Step:
    return lambda cluster, broker: way(cluster, broker).be(state)


def _heals(way: WayOf) -> Step:
    """What was held is lost."""

    def heal(cluster: Cluster, broker: ClusterBroker) -> None:
        way(cluster, broker).break_connections()
        way(cluster, broker).be(State.OPEN)

    return heal


def _answers_late(way: WayOf, seconds: float) -> Step:
    def delay(cluster: Cluster, broker: ClusterBroker) -> None:
        way(cluster, broker).delay_s = seconds

    return delay


def _half_open(way: WayOf) -> Step:
    return lambda cluster, broker: way(cluster, broker).half_open()


def _breaks(way: WayOf) -> Step:
    return lambda cluster, broker: way(cluster, broker).break_connections()


def _both(*steps: Step) -> Step:
    def run(cluster: Cluster, broker: ClusterBroker) -> None:
        for step in steps:
            step(cluster, broker)

    return run


def _puts_are(fate: PutFate) -> Step:
    def begin(cluster: Cluster, broker: ClusterBroker) -> None:
        puts, source = cluster.ways[broker.node_id].puts, Random(broker.node_id)
        assert puts is not None
        puts.fate = lambda path: fate if source.random() < PUT_SHARE else PutFate.PASSED

    return begin


def _puts_pass(cluster: Cluster, broker: ClusterBroker) -> None:
    puts = cluster.ways[broker.node_id].puts
    assert puts is not None
    puts.fate = lambda path: PutFate.PASSED


def _restart_valkey(cluster: Cluster, broker: ClusterBroker) -> None:
    cluster.valkey.kill()
    cluster.valkey.start()


def _replicated(cluster: Cluster) -> ReplicatedValkey:
    assert isinstance(cluster.valkey, ReplicatedValkey)
    return cluster.valkey


def _fail_over(cluster: Cluster, broker: ClusterBroker) -> None:
    _replicated(cluster).fail_over(LAG_S)


def _leave_behind(cluster: Cluster, broker: ClusterBroker) -> None:
    _replicated(cluster).fail_over(LAG_S, left_behind=[_to_redis(cluster, broker)])


def _bring_back(cluster: Cluster, broker: ClusterBroker) -> None:
    _replicated(cluster).bring_back()


def _clock_jumps(seconds: float) -> Step:
    return lambda cluster, broker: set_clock(broker.store[CLOCK], broker.node_id, seconds)


def _file_limit(broker: ClusterBroker, soft: int) -> None:
    if broker.process is None or broker.process.process.poll() is not None:
        return
    psutil.Process(broker.running.process.pid).rlimit(
        psutil.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY)
    )


FAULTS = (
    Fault("kill", lambda _, broker: broker.kill(), _begin, lasts_s=0),
    Fault("pause", lambda _, broker: broker.stop_in_its_tracks(), lambda _, broker: broker.go_on()),
    Fault("bucket-stalls", _becomes(_to_store, State.BLACK_HOLE), _heals(_to_store)),
    Fault("bucket-refuses", _becomes(_to_store, State.CLOSED), _becomes(_to_store, State.OPEN)),
    Fault("bucket-slow", _answers_late(_to_store, SLOW_S), _answers_late(_to_store, 0)),
    Fault("bucket-answers-lost", _becomes(_to_store, State.DEAF), _heals(_to_store)),
    Fault("redis-stalls", _becomes(_to_redis, State.BLACK_HOLE), _becomes(_to_redis, State.OPEN)),
    Fault(
        "cut-off",
        _both(_becomes(_to_store, State.BLACK_HOLE), _becomes(_to_redis, State.BLACK_HOLE)),
        _both(_becomes(_to_redis, State.OPEN), _heals(_to_store)),
    ),
    Fault("zone-loss", _kill_two, _start_two, targets=(Target.ALL,)),
    Fault("valkey-restart", _restart_valkey, _nothing, (Target.ALL,), lasts_s=0, bound_s=5.0),
    Fault(
        "valkey-wipe",
        lambda cluster, _: cluster.valkey.wipe(),
        _nothing,
        (Target.ALL,),
        lasts_s=0,
        bound_s=5.0,
    ),
    Fault(
        "valkey-pause",
        lambda cluster, _: cluster.valkey.pause(),
        lambda cluster, _: cluster.valkey.go_on(),
        (Target.ALL,),
        bound_s=5.0,
    ),
)
"""The first faults of `single-faults` and `chaos`."""

_ONE = ONE_BROKER
MORE_FAULTS = (
    Fault("bucket-requests-lost", _becomes(_to_store, State.MUTE), _heals(_to_store)),
    Fault("bucket-half-open", _half_open(_to_store), _breaks(_to_store)),
    Fault("redis-refuses", _becomes(_to_redis, State.CLOSED), _becomes(_to_redis, State.OPEN)),
    Fault("redis-slow", _answers_late(_to_redis, SLOW_REDIS_S), _answers_late(_to_redis, 0)),
    Fault("redis-answers-lost", _becomes(_to_redis, State.DEAF), _heals(_to_redis)),
    Fault("redis-requests-lost", _becomes(_to_redis, State.MUTE), _heals(_to_redis)),
    Fault("redis-half-open", _half_open(_to_redis), _breaks(_to_redis)),
    *(
        Fault(f"clients-{name}", begin, end, _ONE, needs=_has_client_ways)
        for name, begin, end in (
            ("stall", _becomes(_from_clients, State.BLACK_HOLE), _heals(_from_clients)),
            ("answers-lost", _becomes(_from_clients, State.DEAF), _heals(_from_clients)),
            ("half-open", _half_open(_from_clients), _breaks(_from_clients)),
        )
    ),
    *(
        Fault(f"puts-{fate}", _puts_are(fate), _puts_pass, _ONE, needs=_has_put_faults)
        for fate in (PutFate.LOST, PutFate.DELIVERED, PutFate.LATE, PutFate.TWICE)
    ),
    Fault(
        "redis-failover",
        _fail_over,
        _bring_back,
        (Target.ALL,),
        bound_s=5.0,
        needs=_has_replica,
    ),
    Fault("redis-left-behind", _leave_behind, _bring_back, _ONE, bound_s=5.0, needs=_has_replica),
    Fault("clock-ahead", _clock_jumps(CLOCK_JUMP_S), _clock_jumps(0), _ONE, needs=_has_clocks),
    Fault("clock-behind", _clock_jumps(-CLOCK_JUMP_S), _clock_jumps(0), _ONE, needs=_has_clocks),
    Fault(
        "disk-full",
        lambda _, broker: _file_limit(broker, 0),
        lambda _, broker: _file_limit(broker, resource.RLIM_INFINITY),
        _ONE,
        needs=_has_folder,
    ),
)
"""The further faults of `chaos`."""

_ALSO_SINGLE = ("redis-failover", "redis-left-behind", "clock-ahead", "clock-behind")
SINGLE_FAULTS = (*FAULTS, *(fault for fault in MORE_FAULTS if fault.name in _ALSO_SINGLE))
"""The faults of `single-faults`."""


def faults_for(cluster: Cluster) -> dict[str, Fault]:
    """All faults that the cluster can have, by name."""
    with_store = ("bucket-", "cut-off")
    return {
        fault.name: fault
        for fault in (*FAULTS, *MORE_FAULTS)
        if fault.needs(cluster) and (_has_store(cluster) or not fault.name.startswith(with_store))
    }


def broker_of(
    cluster: Cluster, target: Target, *, topic: str, group: str, otherwise: ClusterBroker
) -> ClusterBroker:
    """The broker with the role, according to the first running broker. `otherwise` for ANY and ALL,
    and if no broker has the role or nothing is known. The returned broker is running."""
    running = [broker for broker in cluster.brokers if broker.process is not None]
    by_id = {broker.node_id: broker for broker in running}
    found: ClusterBroker | None = otherwise
    match target:
        case Target.LEADER | Target.COORDINATOR:
            try:
                with WireClient(running[0].bootstrap, timeout_s=5) as client:
                    ask = _leader if target is Target.LEADER else _coordinator
                    found = by_id.get(ask(client, topic if target is Target.LEADER else group))
            except OSError:
                found = None
        case Target.CLAIMANT:
            found = max(running, key=_activated)
        case Target.CHECKPOINTER:
            found = max(running, key=_checkpoints)
    found = found or otherwise
    return found if found.process is not None else running[0]


def _leader(client: WireClient, topic: str) -> int:
    """The leader of partition 0."""
    found = client.call(ApiKey.METADATA, 1, topics=[{"name": topic}]).topics[0]
    return next((p.leader_id for p in found.partitions if p.partition_index == 0), -1)


def _coordinator(client: WireClient, group: str) -> int:
    answer = client.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[group])
    return int(answer.coordinators[0].node_id)


def _activated(broker: ClusterBroker) -> int:
    """The highest epoch that the broker has activated, according to its log."""
    text = broker.log.read_text(errors="replace")
    return max(map(int, _ACTIVE.findall(text)), default=0)


def _checkpoints(broker: ClusterBroker) -> float:
    """How many checkpoints the broker has written."""
    try:
        return broker.running.metrics().get(_CHECKPOINTS, 0.0)
    except OSError:
        return 0.0
