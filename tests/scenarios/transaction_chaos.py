"""Transactional clients under chaos, and the history of their transactions.

At full size, from the repository's root: `make prove WHAT=transaction-history`. The plan of faults
is made as for `make chaos`. Three clients move records between the partitions of one topic. At each
broker, a reader notes the committed records and the last stable offsets.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from confluent_kafka import Producer

import bucketlog
from bucketlog.inspect.verify import verify_log
from tests.models.fault_plan import plan_faults
from tests.models.history import History
from tests.models.transaction_history import (
    Item,
    OffsetSeen,
    Partition,
    Rows,
    TransactionHistory,
    anomalies,
)
from tests.proofs.shortfall import Figures
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.scenarios.committed_watch import committed_log
from tests.scenarios.fault_slots import ALONE, BROKERS, carry_out, fragile_cluster
from tests.scenarios.faults import faults_for
from tests.scenarios.movers import IsolatedReader, Mover, item_of, value_of
from tests.scenarios.onlookers import CommittedWatch
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store

TOPIC, GROUP = "ring", "movers"
PARTITIONS = 6
MOVERS = 3
SEEDS = 120
"""The number of records that are moved."""
LAST_QUIET_S = 4.0
MOST_COMPLAINTS = 5


@dataclass(slots=True)
class HistoryFigures:
    store: str
    seed: int
    faults: dict[str, int] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    """The number of transactions by outcome, as their clients know it."""
    producers_stuck: int = 0
    """librdkafka's producers that were replaced: see tests/scenarios/copier.py."""
    producers_ended: int = 0
    """By a fatal error, which is not judged here: see tests/scenarios/movers.py."""
    records: int = 0
    polls: int = 0
    offsets_seen: int = 0
    stable_seen: int = 0
    anomalies: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> Figures:
        return asdict(self)


class _Notes:
    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()

    def fault_begins(self, name: str, broker: int | None) -> None:
        self.faults[name] += 1

    def fault_ended(self, name: str, broker: int | None) -> None:
        pass


def transaction_chaos(
    folder: Path,
    store: Store,
    seconds: float,
    seed: int,
    told: Callable[[str], None],
    *,
    broken_rule: str | None = None,
) -> HistoryFigures:
    """What is wrong is in `anomalies` and `problems`. Raises `AssertionError` if the clients come
    to a halt; nothing is left running. If the brokers break a rule, nothing else is done to them.
    """
    began = time.perf_counter()
    figures = HistoryFigures(store, seed)
    history = TransactionHistory()
    notes = _Notes()
    folder.mkdir(parents=True, exist_ok=True)
    with fragile_cluster(folder, store, broken_rule, transactions="true") as cluster:
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        _seed(cluster)
        faults = faults_for(cluster)
        kinds = {name: fault.targets for name, fault in faults.items()}
        plan = plan_faults(seed, seconds, kinds, brokers=BROKERS, alone=ALONE)
        with _clients(cluster, history, seed, figures) as movers:
            if broken_rule is None:
                figures.problems += carry_out(
                    cluster, plan, faults, notes, told, topic=TOPIC, group=GROUP
                )
            else:
                let_pass(seconds)
            let_pass(LAST_QUIET_S)
            _all_go_on(movers)
        history.final = _final(cluster, figures)
        if broken_rule is not None:
            for broker in cluster.brokers:
                broker.kill()  # it may never end at SIGTERM
    figures.faults = dict(notes.faults)
    figures.transactions = dict(Counter(str(each.outcome) for each in history.transactions))
    figures.records = sum(map(len, history.final.values()))
    figures.polls = len(history.polls)
    figures.offsets_seen = len(history.offsets_seen)
    figures.stable_seen = len(history.stable_seen)
    found = anomalies(history)
    figures.anomalies = dict(Counter(str(each.anomaly) for each in found))
    figures.examples = [str(each) for each in found[:MOST_COMPLAINTS]]
    figures.seconds = round(time.perf_counter() - began, 1)
    return figures


def _seed(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(SEEDS):
        value = value_of(Item("seed", number))
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


@contextmanager
def _clients(
    cluster: Cluster, history: TransactionHistory, seed: int, figures: HistoryFigures
) -> Iterator[list[Mover]]:
    """Run movers and readers during the block. At its end, all readers reach the same position."""
    where = [(broker.node_id, broker.bootstrap) for broker in cluster.brokers]
    readers = [IsolatedReader(*each, history, topic=TOPIC, partitions=PARTITIONS) for each in where]
    offsets = History()
    watch = CommittedWatch([address for _, address in where], offsets, group=GROUP)
    with ExitStack() as closing:
        onlookers: list[IsolatedReader | CommittedWatch] = [*readers, watch]
        for onlooker in onlookers:
            onlooker.start()
            closing.callback(onlooker.stop)
        movers = [
            Mover(
                f"mover-{number}",
                cluster.bootstrap,
                history,
                group=GROUP,
                topic=TOPIC,
                partitions=PARTITIONS,
                source=Random(f"{seed} {number}"),
            )
            for number in range(MOVERS)
        ]
        for mover in movers:
            mover.start()
            closing.callback(mover.stop)
        _all_go_on(movers)
        yield movers
        for mover in movers:
            mover.stop()
        eventually(
            lambda: all(each.positions == readers[0].positions for each in readers),
            lambda: f"readers differ: {[each.positions for each in readers]}",
        )
    clients: list[Mover | IsolatedReader] = [*movers, *readers]
    figures.problems += [text for client in clients for text in client.failures]
    figures.producers_stuck = sum(mover.stuck for mover in movers)
    figures.producers_ended = sum(len(mover.fatal) for mover in movers)
    history.offsets_seen += [
        OffsetSeen(row.group, (TOPIC, row.partition), row.offset, row.began)
        for row in offsets.committed_seen
    ]


def _all_go_on(movers: list[Mover]) -> None:
    """Wait until the movers have committed ten more transactions each, on average. A mover that has
    no partitions commits nothing, so the sum counts."""
    before = sum(mover.committed for mover in movers)
    eventually(
        lambda: sum(mover.committed for mover in movers) >= before + 10 * MOVERS,
        lambda: (
            f"transactions make no progress: {[mover.fatal + mover.failures for mover in movers]}"
        ),
    )


def _final(cluster: Cluster, figures: HistoryFigures) -> dict[Partition, Rows]:
    """The committed records, read from the bucket. Checks that a new consumer gets the same."""
    found: dict[Partition, list[tuple[int, Item]]] = {}
    for record in bucketlog.replay(cluster.bucket_url, TOPIC):
        row = record.offset, item_of(record.value)
        found.setdefault((TOPIC, record.partition), []).append(row)
    final = {place: sorted(rows) for place, rows in found.items()}
    shown = committed_log(cluster.bootstrap, [TOPIC], PARTITIONS)
    for place, texts in shown.items():
        if final.get(place, []) != [(offset, item_of(text)) for offset, text in texts]:
            figures.problems.append(f"{place}: consumers and the bucket differ")
    bucket = cluster.open_bucket()
    try:
        damage = verify_log(bucket).damage
    finally:
        bucket.close()
    figures.problems += [f"damage: {each}" for each in damage[:MOST_COMPLAINTS]]
    return {**final}
