"""A group whose members change from the classic protocol to the consumer protocol, and back.

Members change one after the other, while records come all the time: each leaves the group, and
comes back by the other protocol. A rebalance's time is that from the leave until the members have
all partitions again, the new one among them. Nobody may have what another has, and every record is
processed. A member commits before it gives partitions up, so a record is processed twice only if a
broker refuses such a commit. Members survive refusals, because Apache Kafka refuses commits.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from confluent_kafka import Producer

from tests.rigs.patience import PATIENCE_S
from tests.scenarios.failover import percentile
from tests.scenarios.group_members import (
    CLASSIC_CONFIG,
    CONSUMER_CONFIG,
    Ledger,
    Member,
    RunningMember,
    librdkafka_member,
)
from tests.scenarios.round_trip import create_topic

TOPIC, GROUP = "migrated", "migration"
PARTITIONS_A_MEMBER = 2
RECORDS_S = 200
PAUSE_S = 0.05
CLASSIC_MEMBER: Member = partial(
    librdkafka_member,
    config=CLASSIC_CONFIG | {"partition.assignment.strategy": "roundrobin"},
    survives_refusals=True,
)
CONSUMER_MEMBER: Member = partial(librdkafka_member, config=CONSUMER_CONFIG, survives_refusals=True)


@dataclass(frozen=True, slots=True)
class MigrationFigures:
    members: int
    partitions: int
    to_consumer_p50_s: float
    to_consumer_max_s: float
    to_classic_p50_s: float
    to_classic_max_s: float
    records: int
    twice: int
    refused: Mapping[str, int]
    """Commits and joins of members, by error."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Load:
    """Produces `RECORDS_S` a second until it is stopped; `sent` counts them."""

    def __init__(self, bootstrap: str, partitions: int) -> None:
        self.sent = 0
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._partitions = partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_S):
            for _ in range(round(RECORDS_S * PAUSE_S)):
                partition = self.sent % self._partitions
                self._producer.produce(TOPIC, b"record %d" % self.sent, partition=partition)
                self.sent += 1
            self._producer.poll(0)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0


def group_migration(bootstrap: str, members: int) -> MigrationFigures:
    """The topic is created. Raises `AssertionError`; every member is stopped."""
    began, partitions = time.perf_counter(), PARTITIONS_A_MEMBER * members
    create_topic(bootstrap.partition(",")[0], TOPIC, partitions)
    ledger, running = Ledger(), list[RunningMember]()

    def start(make: Member, name: str) -> None:
        running.append(RunningMember(make, (bootstrap, TOPIC, GROUP), name=name, ledger=ledger))

    def change(make: Member, kind: str) -> Sequence[float]:
        """Every member comes back by the other protocol. Returns the times of the rebalances."""
        times: list[float] = []
        for number in range(members):
            asked = time.perf_counter()
            running.pop(0).stop()
            start(make, f"{kind}-{number}")
            ledger.wait_for_owners([each.name for each in running], partitions)
            times.append(time.perf_counter() - asked)
        return times

    load = Load(bootstrap, partitions)
    try:
        for number in range(members):
            start(CLASSIC_MEMBER, f"first-{number}")
        ledger.wait_for_owners([each.name for each in running], partitions)
        to_consumer = change(CONSUMER_MEMBER, "consumer")
        to_classic = change(CLASSIC_MEMBER, "classic")
        load.stop()
        ledger.wait_for_records(load.sent)
    finally:
        load.stop()
        for member in running:
            member.stop()
    assert not ledger.wrong, "\n".join(ledger.wrong[:10])
    return MigrationFigures(
        members=members,
        partitions=partitions,
        to_consumer_p50_s=round(percentile(to_consumer, 0.5), 2),
        to_consumer_max_s=round(max(to_consumer), 2),
        to_classic_p50_s=round(percentile(to_classic, 0.5), 2),
        to_classic_max_s=round(max(to_classic), 2),
        records=load.sent,
        twice=sum(times > 1 for times in ledger.seen.values()),
        refused=dict(ledger.refused),
        seconds=round(time.perf_counter() - began, 1),
    )
