"""Members of one consumer group, each another people's client, and a ledger over all of them.

A member processes what it gets and commits after each batch and before it gives partitions up, so
that every record is processed once per group as long as no member dies. The ledger notes who owns
what: a partition that is given to one member before another has given it up is an error.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.rigs.patience import PATIENCE_S, Deadline

POLL_S = 0.05
HEARTBEAT_MS = 300
SESSION_MS = 10_000
CLOCK_S = 0.002
"""Events of other processes are told in whole milliseconds."""
METADATA_REFRESH_MS = 1000
"""So soon does it find that another broker leads a partition."""


class Taken(NamedTuple):
    """Somebody has a partition `since` then, and of `before` it was not heard that it let go."""

    before: str
    since: float


class Ledger:
    """Thread-safe. `wrong` are sentences about what must not be. `at` is when it happened, by the
    machine's clock: what another process says is heard late."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[int, int]] = Counter()
        self.by_member: Counter[str] = Counter()
        self.owners: dict[int, str] = {}
        self.taken: dict[int, Taken] = {}
        self._late: set[str] = set()
        """Members of which something was heard with the time at which it happened."""
        self.wrong: list[str] = []
        self.refused = Counter[str]()
        """Refusals by error. Only members that survive refusals are counted."""
        self._changed = threading.Condition()

    def own(self, member: str, partitions: Iterable[int], at: float | None = None) -> None:
        with self._changed:
            if at is not None:
                self._late.add(member)
            for partition in partitions:
                owner = self.owners.get(partition)
                if owner in self._late and owner != member:
                    self.taken[partition] = Taken(owner, at or time.time())
                elif owner is not None and owner != member:
                    self.wrong.append(f"{member} got {partition}, which {owner} has")
                self.owners[partition] = member
            self._changed.notify_all()

    def disown(self, member: str, partitions: Iterable[int], at: float | None = None) -> None:
        with self._changed:
            for partition in partitions:
                taken = self.taken.get(partition)
                if taken is not None and taken.before == member:
                    del self.taken[partition]
                    if (at or time.time()) > taken.since + CLOCK_S:
                        self.wrong.append(f"{partition} was given away, and {member} had it still")
                elif self.owners.get(partition) == member:
                    del self.owners[partition]
            self._changed.notify_all()

    def process(self, member: str, partition: int, offset: int, at: float | None = None) -> None:
        with self._changed:
            taken = self.taken.get(partition)
            had = taken is not None and taken.before == member
            late = taken is not None and (at or time.time()) > taken.since + CLOCK_S
            if self.owners.get(partition) != member and (not had or late):
                self.wrong.append(f"{member} read {partition}, which it does not have")
            self.seen[partition, offset] += 1
            self.by_member[member] += 1
            self._changed.notify_all()

    def fail(self, what: str) -> None:
        with self._changed:
            self.wrong.append(what)
            self._changed.notify_all()

    def refuse(self, error: confluent_kafka.KafkaError) -> None:
        with self._changed:
            self.refused[error.name()] += 1

    def wait(self, condition: Callable[["Ledger"], bool], what: str) -> None:
        with self._changed:
            good = self._changed.wait_for(lambda: condition(self) or self.wrong, PATIENCE_S)
            assert not self.wrong, self.wrong
            assert good, f"{what}: {len(self.seen)} read by {self.by_member}, {self.owners}"

    def wait_for_owners(self, members: Collection[str], partitions: int) -> None:
        """Each of the members has something, together they have all, and nobody else anything."""

        def shared(ledger: "Ledger") -> bool:
            owners = ledger.owners
            settled = len(owners) == partitions and not ledger.taken
            return settled and set(owners.values()) == set(members)

        self.wait(shared, f"partitions are not shared by {members}")

    def wait_for_records(self, count: int) -> None:
        self.wait(lambda ledger: len(ledger.seen) >= count, f"not {count} records")


Member = Callable[[str, str, str, str, Ledger, threading.Event], None]
"""Bootstrap, topic, group, own name, ledger, stop: consumes until it is told to stop."""


def leave(consumer: confluent_kafka.Consumer) -> None:
    """Close a member of a group. `close` alone may never return if it gets an assignment, and then
    blocks all Python threads (librdkafka, issue 4884)."""
    consumer.unsubscribe()
    deadline = Deadline("the member still has partitions")
    while consumer.poll(POLL_S) is not None or consumer.assignment():
        deadline.check()
    consumer.close()


REFUSALS = {
    confluent_kafka.KafkaError.ILLEGAL_GENERATION,
    confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS,
    confluent_kafka.KafkaError.STALE_MEMBER_EPOCH,
    confluent_kafka.KafkaError._ASSIGNMENT_LOST,
}
"""Errors of a commit or a join after which a client continues, from what was committed."""

CLASSIC_CONFIG = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
CONSUMER_CONFIG = {"group.protocol": "consumer"}
"""KIP-848: the broker has the timeouts."""


def confluent_member(
    bootstrap: str, topic: str, group: str, name: str, ledger: Ledger, stop: threading.Event
) -> None:
    config = CLASSIC_CONFIG | {"partition.assignment.strategy": "roundrobin"}
    librdkafka_member(bootstrap, topic, group, name, ledger, stop, config=config)


def consumer_protocol_member(
    bootstrap: str, topic: str, group: str, name: str, ledger: Ledger, stop: threading.Event
) -> None:
    librdkafka_member(bootstrap, topic, group, name, ledger, stop, config=CONSUMER_CONFIG)


def librdkafka_member(
    bootstrap: str,
    topic: str,
    group: str,
    name: str,
    ledger: Ledger,
    stop: threading.Event,
    *,
    config: Mapping[str, str | int | bool],
    survives_refusals: bool = False,
) -> None:
    """`config`: of the group's protocol. `survives_refusals`: the ledger counts `REFUSALS`."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
            **config,
        }
    )
    unsaved = False

    def save() -> None:
        nonlocal unsaved
        if unsaved:
            try:
                consumer.commit(asynchronous=False)
            except confluent_kafka.KafkaException as error:
                refused(error.args[0])
        unsaved = False

    def refused(error: confluent_kafka.KafkaError) -> None:
        if not survives_refusals or error.code() not in REFUSALS:
            raise confluent_kafka.KafkaException(error)
        ledger.refuse(error)

    def assigned(_: object, partitions: Sequence[confluent_kafka.TopicPartition]) -> None:
        ledger.own(name, [each.partition for each in partitions])

    def revoked(_: object, partitions: Sequence[confluent_kafka.TopicPartition]) -> None:
        save()
        ledger.disown(name, [each.partition for each in partitions])

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    try:
        while not stop.is_set():
            for message in consumer.consume(100, POLL_S):
                if (error := message.error()) is not None:
                    refused(error)
                    continue
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                ledger.process(name, partition, offset)
                unsaved = True
            save()
    finally:
        leave(consumer)


class _Listener:
    """Its clients call it within their polls. What was read is committed by then."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self._name = name
        self._ledger = ledger

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self._ledger.disown(self._name, [each.partition for each in revoked])

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._ledger.own(self._name, [each.partition for each in assigned])


def kafka_python_member(
    bootstrap: str, topic: str, group: str, name: str, ledger: Ledger, stop: threading.Event
) -> None:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    listener = type("Listener", (_Listener, kafka.ConsumerRebalanceListener), {})(name, ledger)
    consumer.subscribe([topic], listener=listener)
    try:
        while not stop.is_set():
            found = consumer.poll(timeout_ms=round(POLL_S * 1000), max_records=100)
            for partition, records in found.items():
                for record in records:
                    ledger.process(name, partition.partition, record.offset)
            if found:
                consumer.commit()
    finally:
        ledger.disown(name, [each.partition for each in consumer.assignment()])
        consumer.close(autocommit=False)


def aiokafka_member(
    bootstrap: str, topic: str, group: str, name: str, ledger: Ledger, stop: threading.Event
) -> None:
    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=(AioRoundRobin,),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        kinds = (_Listener, aiokafka.ConsumerRebalanceListener)
        consumer.subscribe([topic], listener=type("Listener", kinds, {})(name, ledger))
        await consumer.start()
        try:
            while not stop.is_set():
                found = await consumer.getmany(timeout_ms=round(POLL_S * 1000), max_records=100)
                for partition, records in found.items():
                    for record in records:
                        ledger.process(name, partition.partition, record.offset)
                if found:
                    await consumer.commit()
        finally:
            ledger.disown(name, [each.partition for each in consumer.assignment()])
            await consumer.stop()

    asyncio.run(run())


MEMBERS: dict[str, Member] = {
    "confluent-kafka": confluent_member,
    "kafka-python": kafka_python_member,
    "aiokafka": aiokafka_member,
}


class RunningMember:
    """A member in a thread of its own; `where`: bootstrap, topic, group."""

    def __init__(
        self, make: Member, where: tuple[str, str, str], *, name: str, ledger: Ledger
    ) -> None:
        self.name = name
        self._stop = threading.Event()

        def run() -> None:
            ended = False
            try:
                make(*where, name, ledger, self._stop)
                ended = True
            finally:
                if not ended:
                    ledger.fail(f"{name} ended with an error: see its traceback")

        self._thread = threading.Thread(target=run, name=name)
        self._thread.start()

    def stop(self) -> None:
        """It leaves the group."""
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"
