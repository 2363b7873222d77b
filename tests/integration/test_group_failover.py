"""The coordinator of live groups is killed: they go on as they were, nothing goes back."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import confluent_kafka
from kio.schema.errors import ErrorCode

from tests.scenarios.cluster import ClusterBroker, running_cluster
from tests.scenarios.round_trip import create_topic
from tests.wire_client import WireClient

TOPIC, PARTITIONS, GROUPS, MEMBERS = "t", 4, 3, 2
PATIENCE_S = 60.0
QUICK = {"group_initial_rebalance_delay_ms": "0", "session_timeout_ms": "1500"}


class Consumer:
    """`rebalances` counts what its client was told."""

    def __init__(self, bootstrap: str, group: str) -> None:
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
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 300,
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
        self._client.close()


@contextmanager
def consumers(bootstrap: str, groups: Sequence[str]) -> Iterator[list[Consumer]]:
    with ExitStack() as closing:
        found = [Consumer(bootstrap, group) for group in groups for _ in range(MEMBERS)]
        for each in found:
            closing.callback(each.close)
        yield found


def produce(bootstrap: str, records: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(records):
        producer.produce(TOPIC, b"x", partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def coordinated_by(broker: ClusterBroker) -> list[str]:
    names = [f"group-{number}" for number in range(100)]
    with WireClient(broker.bootstrap) as client:
        found = client.call("find_coordinator", 4, key_type=0, coordinator_keys=names)
    return [each.key for each in found.coordinators if each.node_id == broker.node_id][:GROUPS]


def committed(broker: ClusterBroker, group: str) -> dict[int, int] | None:
    """By partition; None where this broker cannot tell."""
    with WireClient(broker.bootstrap) as client:
        wanted = {"group_id": group, "topics": None}
        found = client.call("offset_fetch", 8, groups=[wanted], require_stable=True).groups[0]
    if found.error_code is not ErrorCode.none:
        return None
    rows = [row for topic in found.topics for row in topic.partitions]
    return {row.partition_index: row.committed_offset for row in rows}


def work_until_read(members: Sequence[Consumer], each_group: int, survivor: ClusterBroker) -> None:
    """Until every group has read so much; what is committed never falls meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    highest: dict[tuple[str, int], int] = {}
    groups = sorted({each.group for each in members})

    def read(group: str) -> int:
        return sum(each.read for each in members if each.group == group)

    while any(read(group) < each_group for group in groups):
        assert time.monotonic() < deadline, {group: read(group) for group in groups}
        for each in members:
            each.work()
        for group in groups:
            for partition, offset in (committed(survivor, group) or {}).items():
                assert offset >= highest.get((group, partition), 0), "committed offsets went back"
                highest[group, partition] = offset


def work_until_committed(
    members: Sequence[Consumer], broker: ClusterBroker, each_partition: int
) -> None:
    deadline = time.monotonic() + PATIENCE_S
    wanted = dict.fromkeys(range(PARTITIONS), each_partition)
    for group in {each.group for each in members}:
        while (found := committed(broker, group)) != wanted:
            assert time.monotonic() < deadline, f"{group}: {found}"
            for each in members:
                each.work()


def work_until_assigned(members: Sequence[Consumer]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(len(each.assigned) != PARTITIONS // MEMBERS for each in members):
        assert time.monotonic() < deadline, [each.assigned for each in members]
        for each in members:
            each.work()


def test_groups_go_on_when_their_coordinator_is_killed() -> None:
    with running_cluster(2, settings=QUICK) as cluster:
        victim, survivor = cluster.brokers
        create_topic(victim.bootstrap, TOPIC, PARTITIONS)
        groups = coordinated_by(victim)
        assert len(groups) == GROUPS
        with consumers(cluster.bootstrap, groups) as members:
            produce(cluster.bootstrap, 400)
            work_until_assigned(members)
            work_until_read(members, 400, victim)
            work_until_committed(members, victim, 100)
            rebalances = [each.rebalances for each in members]
            victim.kill()
            produce(survivor.bootstrap, 400)
            work_until_read(members, 800, survivor)
            work_until_committed(members, survivor, 200)
            assert [each.rebalances for each in members] == rebalances, "a group rebalanced"
            victim.start()  # and takes its groups back
            cluster.wait_until_all_are_members()
            produce(cluster.bootstrap, 400)
            work_until_read(members, 1200, victim)
            work_until_committed(members, victim, 300)
            assert [each.rebalances for each in members] == rebalances, "a group rebalanced"
