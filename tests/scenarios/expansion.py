"""A cluster grows from one broker to three under load, and shrinks again, and no client is told of
an error (when it shrinks: but for connections that are closed).

At full size, from the repository's root: `make prove WHAT=expansion`. Idempotent producers send all
the while, the members of a group read and commit; then each broker has its part of the work, and
all that was acknowledged is in the log once and in order, and was processed once by the group.
"""

import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

import confluent_kafka

from tests.models.history import History
from tests.scenarios.group_members import Ledger, RunningMember, confluent_member
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, ClusterBroker, running_cluster

TOPIC, GROUP = "expansion", "readers"
PARTITIONS = 12
BROKERS = 3
PRODUCERS = 2
READERS = 2
BURST_RECORDS = 12
SETTINGS = {"group_initial_rebalance_delay_ms": "0", "handover_ms": "1000"}


@dataclass(frozen=True, slots=True)
class ExpansionFigures:
    acknowledged: int
    in_log: int
    processed: int
    errors: int
    produce_requests: dict[int, float]
    """By broker, in the last part."""
    fetch_requests: dict[int, float]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class StrictLoad(Load):
    """Takes anything that its client is told for a failure; when the cluster `shrinks`, not that a
    connection was closed or that nobody listens where it was."""

    shrinks = False

    def _noticed(self, error: confluent_kafka.KafkaError) -> None:
        if not (self.shrinks and error.code() == confluent_kafka.KafkaError._TRANSPORT):
            self.failed(f"told of {error}")


def expansion(*, between_s: float) -> ExpansionFigures:
    """Raises `AssertionError`; nothing is left running."""
    began = time.perf_counter()
    with running_cluster(1, settings=SETTINGS, late=BROKERS - 1) as cluster:
        first = cluster.brokers[0].bootstrap
        create_topic(first, TOPIC, PARTITIONS)
        ledger, history = Ledger(), History()
        loads = StrictLoad.several(
            PRODUCERS,
            first,
            history,
            topic=TOPIC,
            partitions=PARTITIONS,
            burst_records=BURST_RECORDS,
        )
        readers = [
            RunningMember(
                confluent_member, (first, TOPIC, GROUP), name=f"reader-{number}", ledger=ledger
            )
            for number in range(READERS)
        ]
        try:
            produced, fetched = _grow_and_shrink(cluster, loads, ledger, between_s)
            ledger.wait_for_records(len(history.acknowledged))
        finally:
            for reader in readers:
                reader.stop()
        log = judge(cluster, history, topic=TOPIC, partitions=PARTITIONS)
    complaints = [*ledger.wrong, *(text for load in loads for text in load.failures)]
    complaints += [f"{each} was processed {n} times" for each, n in ledger.seen.items() if n > 1]
    for counts in (produced, fetched):
        if not all(counts.values()):
            complaints.append(f"not every broker took part: {counts}")
    assert not complaints, "\n".join(complaints[:20])
    return ExpansionFigures(
        acknowledged=len(history.acknowledged),
        in_log=sum(len(rows) for rows in log.values()),
        processed=len(ledger.seen),
        errors=len(complaints),
        produce_requests=produced,
        fetch_requests=fetched,
        seconds=round(time.perf_counter() - began, 1),
    )


def _grow_and_shrink(
    cluster: Cluster, loads: list[StrictLoad], ledger: Ledger, between_s: float
) -> tuple[dict[int, float], dict[int, float]]:
    """And shrink. Requests by broker after the last had come: Produce, Fetch."""
    for load in loads:
        load.start()
    try:
        for broker in cluster.brokers:
            if broker.process is None:
                broker.start()
            cluster.wait_until_all_are_members()
            _go_on(loads, ledger, between_s)
        counts = (
            {broker.node_id: _requests(broker, "Produce") for broker in cluster.brokers},
            {broker.node_id: _requests(broker, "Fetch") for broker in cluster.brokers},
        )
        for load in loads:
            load.shrinks = True
        for broker in reversed(cluster.brokers[1:]):
            broker.end()
            cluster.wait_until_all_are_members()
            _go_on(loads, ledger, between_s)
        return counts
    finally:
        for load in loads:
            load.stop()


def _go_on(loads: list[StrictLoad], ledger: Ledger, seconds: float) -> None:
    threading.Event().wait(seconds)
    for load in loads:
        load.wait_for(PARTITIONS * 10)
    ledger.wait_for_records(len(ledger.seen) + PARTITIONS * 10)


def _requests(broker: ClusterBroker, api: str) -> float:
    name = f'bucketlog_request_seconds_count{{api="{api}"}}'
    return broker.running.metrics().get(name, 0.0)
