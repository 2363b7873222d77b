"""The coordinator of live groups is killed: they go on as they were, nothing goes back.

At full size, from the repository's root: `make prove WHAT=coordinator`.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import confluent_kafka
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.wire_client import WireClient
from tests.scenarios.group_members import CLASSIC_CONFIG, leave
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import ClusterBroker, running_cluster

TOPIC, PARTITIONS, MEMBERS = "t", 4, 2
NAMES = 200
"""Of groups, to choose from those that one broker coordinates."""
BURST_RECORDS = 400
SETTINGS = {
    "group_initial_rebalance_delay_ms": "0",
    "group_consumer_heartbeat_interval_ms": "300",
    "group_consumer_assignment_interval_ms": "0",
}


@dataclass(frozen=True, slots=True)
class CoordinatorFigures:
    brokers: int
    groups: int
    members: int
    kills: int
    rebalances_after_kills: int
    records_read: int
    longest_commit_gap_s: float
    """From a kill until every group had committed again."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Consumer:
    """`rebalances` counts what its client was told."""

    def __init__(
        self, bootstrap: str, group: str, protocol: Mapping[str, str | int | bool]
    ) -> None:
        self.group = group
        self.rebalances = 0
        self.read = 0
        self.positions: dict[int, int] = {}
        self._client = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **protocol,
            }
        )
        self._client.subscribe([TOPIC], on_assign=self._assigned)

    def _assigned(self, _: object, partitions: Sequence[confluent_kafka.TopicPartition]) -> None:
        self.rebalances += 1

    @property
    def assigned(self) -> set[int]:
        return {each.partition for each in self._client.assignment()}

    def work(self) -> None:
        """Read what is there and commit it; a commit that finds no coordinator is made again."""
        found = self._client.consume(200, 0.02)
        for message in found:
            if message.error() is None:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                assert offset >= self.positions.get(partition, 0), "read again"
                self.positions[partition] = offset + 1
                self.read += 1
        if found:
            self._client.commit(asynchronous=True)

    def close(self) -> None:
        leave(self._client)


@contextmanager
def consumers(
    bootstrap: str, groups: Sequence[str], protocol: Mapping[str, str | int | bool]
) -> Iterator[list[Consumer]]:
    with ExitStack() as closing:
        found = [Consumer(bootstrap, group, protocol) for group in groups for _ in range(MEMBERS)]
        for each in found:
            closing.callback(each.close)
        yield found


def produce(bootstrap: str, records: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(records):
        producer.produce(TOPIC, b"x", partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def coordinated_by(broker: ClusterBroker) -> list[str]:
    names = [f"group-{number}" for number in range(NAMES)]
    with WireClient(broker.bootstrap) as client:
        found = client.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=names)
    return [each.key for each in found.coordinators if each.node_id == broker.node_id]


def committed(broker: ClusterBroker, group: str) -> dict[int, int] | None:
    """By partition; None where this broker cannot tell."""
    with WireClient(broker.bootstrap) as client:
        wanted = {"group_id": group, "topics": None}
        found = client.call(ApiKey.OFFSET_FETCH, 8, groups=[wanted], require_stable=True).groups[0]
    if found.error_code is not ErrorCode.none:
        return None
    rows = [row for topic in found.topics for row in topic.partitions]
    return {row.partition_index: row.committed_offset for row in rows}


def work_until_read(members: Sequence[Consumer], each_group: int, survivor: ClusterBroker) -> None:
    """Until every group has read so much; what is committed never falls meanwhile."""
    highest: dict[tuple[str, int], int] = {}
    groups = sorted({each.group for each in members})

    def read(group: str) -> int:
        return sum(each.read for each in members if each.group == group)

    deadline = Deadline(lambda: {group: read(group) for group in groups})
    while any(read(group) < each_group for group in groups):
        deadline.check()
        for each in members:
            each.work()
        for group in groups:
            for partition, offset in (committed(survivor, group) or {}).items():
                assert offset >= highest.get((group, partition), 0), "committed offsets went back"
                highest[group, partition] = offset


def work_until_committed(
    members: Sequence[Consumer], brokers: Sequence[ClusterBroker], each_partition: int
) -> None:
    """By the answer of whichever of the brokers coordinates each group."""
    wanted = dict.fromkeys(range(PARTITIONS), each_partition)
    for group in {each.group for each in members}:
        deadline = Deadline(f"{group}: {each_partition} are not committed")
        while [committed(broker, group) for broker in brokers].count(wanted) != 1:
            deadline.check()
            for each in members:
                each.work()


def work_until_assigned(members: Sequence[Consumer]) -> None:
    deadline = Deadline(lambda: [each.assigned for each in members])
    while any(len(each.assigned) != PARTITIONS // MEMBERS for each in members):
        deadline.check()
        for each in members:
            each.work()


def group_failover(
    brokers: int,
    groups: int,
    kills: int,
    protocol: Mapping[str, str | int | bool] = CLASSIC_CONFIG,
) -> CoordinatorFigures:
    """`protocol`: the config of librdkafka's consumers. Raises `AssertionError` where a group
    rebalances or an offset goes back; nothing is left running."""
    began, longest = time.perf_counter(), 0.0
    with running_cluster(brokers, settings=SETTINGS) as cluster:
        victim, survivor = cluster.brokers[:2]
        create_topic(victim.bootstrap, TOPIC, PARTITIONS)
        names = coordinated_by(victim)[:groups]
        assert len(names) == groups
        with consumers(cluster.bootstrap, names, protocol) as members:
            total = BURST_RECORDS
            produce(cluster.bootstrap, BURST_RECORDS)
            work_until_assigned(members)
            work_until_read(members, total, survivor)
            work_until_committed(members, cluster.brokers, total // PARTITIONS)
            rebalances = [each.rebalances for each in members]
            for _ in range(kills):
                killed = time.monotonic()
                victim.kill()
                total += BURST_RECORDS
                produce(cluster.bootstrap, BURST_RECORDS)
                others = [each for each in cluster.brokers if each is not victim]
                work_until_read(members, total, survivor)
                work_until_committed(members, others, total // PARTITIONS)
                longest = max(longest, time.monotonic() - killed)
                victim.start()  # and takes its groups back
                cluster.wait_until_all_are_members()
                total += BURST_RECORDS
                produce(cluster.bootstrap, BURST_RECORDS)
                work_until_read(members, total, survivor)
                work_until_committed(members, cluster.brokers, total // PARTITIONS)
            extra = [
                each.rebalances - before for each, before in zip(members, rebalances, strict=True)
            ]
            assert max(extra) <= 1, f"groups rebalanced more than once: {extra}"
            read = sum(each.read for each in members)
    return CoordinatorFigures(
        brokers=brokers,
        groups=groups,
        members=len(extra),
        kills=kills,
        rebalances_after_kills=sum(extra),
        records_read=read,
        longest_commit_gap_s=round(longest, 2),
        seconds=round(time.perf_counter() - began, 1),
    )
