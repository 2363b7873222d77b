"""The churn of a soak: everything that can come and go in a cluster does so, again and again.

Each kind of churn is a thread that does one turn after another. An error is noted, and the next
turn begins, because a broker that restarts causes errors.
"""

import sys
import threading
import traceback
from abc import abstractmethod
from collections import deque

import confluent_kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S
from tests.rigs.wire_client import WireClient
from tests.scenarios.group_members import leave
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster

TOPIC, PARTITIONS = "steady", 4
TIMEOUT_S = 30.0
RECORDS = 20
VALUE = b"." * 100
TOPICS_KEPT = 5
GROUPS_KEPT = 8
CONNECTIONS = 10
SESSION_MS = 6000
TURN_S_MAX = PATIENCE_S + 60.0  # a broker that is never ready says so first


class Churn(threading.Thread):
    """`turns` counts; `errors` are the last ones. An error that no broker's restart explains ends
    the thread, and `check` raises it."""

    pause_s = 0.5

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(name=type(self).__name__, daemon=True)
        self.turns = 0
        self.errors: deque[str] = deque(maxlen=5)
        self.failed = 0
        self._where = cluster.bootstrap
        self._addresses = [broker.bootstrap for broker in cluster.brokers]
        self._stopping = threading.Event()
        self._broken: BaseException | None = None

    def check(self) -> None:
        """Raises the error that ended the thread."""
        if self._broken is not None:
            raise AssertionError(f"{self.name} ended") from self._broken

    def stop(self) -> None:
        """Raises `AssertionError` where a turn does not end, with the place where it waits."""
        self._stopping.set()
        self.join(TURN_S_MAX)
        if self.is_alive():
            frame = sys._current_frames()[self.ident or 0]
            where = "".join(traceback.format_stack(frame))
            raise AssertionError(f"{self.name} still waits after {TURN_S_MAX:.0f} s:\n{where}")

    def run(self) -> None:
        try:
            while not self._stopping.wait(self.pause_s):
                self._try_turn()
        except BaseException as error:
            self._broken = error
            raise

    def _try_turn(self) -> None:
        try:
            self._turn()
            self.turns += 1
        except (KafkaException, OSError, AssertionError) as error:
            self.failed += 1
            self.errors.append(str(error))

    @abstractmethod
    def _turn(self) -> None: ...

    def _produce(self, topic: str, partitions: int, records: int) -> None:
        """By a producer that is new, hence with a new id."""
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self._where, "enable.idempotence": True, "log_level": 0}
        )
        for number in range(records):
            producer.produce(topic, VALUE, partition=number % partitions)
        assert not producer.flush(TIMEOUT_S), f"records of {topic} are not acknowledged"


class ProducerChurn(Churn):
    """A new producer id at each turn."""

    pause_s = 0.3

    def _turn(self) -> None:
        self._produce(TOPIC, PARTITIONS, RECORDS)


class NamedChurn(Churn):
    """Churn of named things that are deleted some turns after their creation."""

    pause_s = 1.0

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._there: deque[str] = deque()
        self._admin = AdminClient({"bootstrap.servers": self._where, "log_level": 0})
        self._count = 0


class TopicChurn(NamedChurn):
    """A topic is created and filled; the oldest but a few is deleted."""

    def _turn(self) -> None:
        self._count += 1
        name = f"topic-{self._count}"
        create_topic(self._addresses[0], name, 2)
        self._there.append(name)
        self._produce(name, 2, RECORDS)
        if len(self._there) > TOPICS_KEPT:
            old = self._there.popleft()
            self._admin.delete_topics([old])[old].result(TIMEOUT_S)


class GroupChurn(NamedChurn):
    """A group with two members that commit. They are static, so they send no LeaveGroup.
    Every second old group is deleted; the others expire."""

    def _turn(self) -> None:
        self._count += 1
        name = f"group-{self._count}"
        self._there.append(name)
        members = [self._member(name, number) for number in range(2)]
        for member in members:
            member.consume(RECORDS, TIMEOUT_S / 10)
        for member in members:
            read = [row for row in member.position(member.assignment()) if row.offset >= 0]
            if read:
                member.commit(offsets=read, asynchronous=False)
            leave(member)
        if len(self._there) > GROUPS_KEPT:
            old = self._there.popleft()
            if self._count % 2:
                self._admin.delete_consumer_groups([old])[old].result(TIMEOUT_S)

    def _member(self, group: str, number: int) -> confluent_kafka.Consumer:
        member = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._where,
                "group.id": group,
                "group.instance.id": f"{group}-{number}",
                "session.timeout.ms": SESSION_MS,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        member.subscribe([TOPIC])
        return member


class ConnectionChurn(Churn):
    """Connections to each broker that ask once and are dropped."""

    pause_s = 0.2

    def _turn(self) -> None:
        for address in self._addresses:
            for _ in range(CONNECTIONS):
                with WireClient(address, timeout_s=TIMEOUT_S) as client:
                    client.call(ApiKey.METADATA, 1, topics=[])


class BrokerChurn(Churn):
    """The last broker is killed and started again: each start registers a writer."""

    pause_s = 30.0

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._broker = cluster.brokers[-1]

    def _turn(self) -> None:
        self._broker.kill()
        self._broker.start()


KINDS: tuple[type[Churn], ...] = (
    ProducerChurn,
    TopicChurn,
    GroupChurn,
    ConnectionChurn,
    BrokerChurn,
)
