"""The cluster as its brokers describe it: their addresses and zones, and the bytes of partitions.

Source: KIP-700 (DescribeCluster), KIP-827; Kafka's message DescribeLogDirs 3. librdkafka does not
support the latter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from bucketlog.client.admin import Admin
from bucketlog.client.broker_connection import Address, open_connection
from bucketlog.client.broker_requests import BrokerRequests
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.security import Security
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import LogError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter

LOG_DIRS_VERSION = 3
NOT_AUTHORIZED = "CLUSTER_AUTHORIZATION_FAILED"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """Live broker. Returned by `ClusterAdmin.describe`.

    Attributes:
        node_id: Number of the broker.
        host: Host of its address for clients.
        port: Port of its address for clients.
        zone: Availability zone, which is Kafka's `broker.rack`; None if it has none.
        is_controller: Whether clients send administrative requests to this broker.

    Examples:
        >>> log.cluster.describe().brokers[0].is_controller
        True
    """

    node_id: int
    host: str
    port: int
    zone: str | None
    is_controller: bool

    @property
    def address(self) -> str:
        """Address for clients, as `host:port`."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, repr=False)
class ClusterDetails(DisplayedObject):
    """Id and live brokers of a cluster. Returned by `ClusterAdmin.describe`.

    Attributes:
        cluster_id: Id of the cluster.
        brokers: Live brokers, in the order of their numbers.

    Examples:
        >>> len(log.cluster.describe().brokers)
        1
    """

    cluster_id: str
    brokers: tuple[BrokerInfo, ...]

    def _description(self) -> Description:
        return Description(
            {"cluster_id": self.cluster_id, "brokers": len(self.brokers)},
            ("node", "address", "zone", "controller"),
            [(each.node_id, each.address, each.zone, each.is_controller) for each in self.brokers],
        )


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """Topic, with the errors of its partitions. Returned by `ClusterAdmin.topics`.

    Attributes:
        name: Name of the topic.
        partitions: Number of partitions.
        problems: Kafka's name of an error for each partition that has one; the key None is the
            topic.

    Examples:
        >>> log.cluster.topics()
        [TopicStatus(name='orders', partitions=1, problems={})]
    """

    name: str
    partitions: int
    problems: Mapping[int | None, str]


class ClusterAdmin:
    """Administration of the cluster: its brokers, and the sizes of its partitions (KIP-700,
    KIP-827). Used for `log.cluster`.

    Examples:
        >>> [broker.node_id for broker in log.cluster.describe().brokers]
        [0]
    """

    def __init__(
        self, admin: Admin, config: Mapping[str, Any], security: Security | None = None
    ) -> None:
        self._admin = admin
        self._security = security
        self._requests = BrokerRequests(
            admin, config, security, if_closed="use brokers that serve DescribeLogDirs"
        )

    def describe(self) -> ClusterDetails:
        """Describe the cluster: its id and its live brokers.

        Returns:
            The id and the brokers.

        Raises:
            LogError: If no broker answers.
        """
        doing = "describing the cluster"
        future = self._admin.client.describe_cluster(request_timeout=self._admin.timeout_s)
        found = self._admin.wait(future, doing)
        controller = -1 if found.controller is None else found.controller.id
        brokers = (
            BrokerInfo(node.id, str(node.host), node.port, node.rack, node.id == controller)
            for node in found.nodes
        )
        by_id = sorted(brokers, key=lambda broker: broker.node_id)
        return ClusterDetails(str(found.cluster_id), tuple(by_id))

    def check_broker(self, broker: BrokerInfo) -> None:
        """Connect to a broker, log in, and send one request.

        Args:
            broker: Broker to check.

        Raises:
            LogError: If the broker does not answer.
        """
        address = (broker.host, broker.port)
        try:
            with open_connection(address, self._security, self._admin.timeout_s) as connection:
                connection.is_served()
        except OSError as error:
            doing = f"connecting to broker {broker.node_id} at {broker.address}"
            reason = str(error.strerror or error)
            raise log_error(KafkaError(KafkaError._TRANSPORT, reason), doing) from error

    def topics(self) -> list[TopicStatus]:
        """List all topics with the errors of their partitions, as one broker sees them.

        Returns:
            The topics, by name.

        Raises:
            LogError: If no broker answers.
        """
        found = self._admin.metadata(None, "listing topics").topics
        return [
            TopicStatus(name, len(topic.partitions), _problems(topic))
            for name, topic in sorted(found.items())
        ]

    def leaders(self) -> dict[tuple[str, int], int]:
        """Return the leader of each partition, as a broker reports the leader.

        Returns:
            The ids of the leading brokers by topic and partition. A partition without a leader is
            missing.

        Raises:
            LogError: If no broker answers.

        Examples:
            >>> log.cluster.leaders()
            {('orders', 0): 0}
        """
        found = self._admin.metadata(None, "listing leaders").topics
        return {
            (name, number): partition.leader
            for name, topic in sorted(found.items())
            for number, partition in sorted(topic.partitions.items())
            if partition.leader >= 0
        }

    def partition_bytes(self, topic: str | None = None) -> dict[tuple[str, int], int] | None:
        """Return the stored bytes of each partition, in the log and its tiers.

        A partition is missing while its leader moves.

        Args:
            topic: Name of the topic; None means all topics.

        Returns:
            Numbers of bytes by topic and partition; None if this client may not describe the
            cluster.

        Raises:
            LogError: If a broker does not answer.
        """
        doing = "asking for the bytes of partitions"
        partitions = 0
        if topic is not None:
            partitions = len(self._admin.metadata(topic, doing).topics[topic].partitions)
        sizes: dict[tuple[str, int], int] = {}
        for address in self._requests.brokers(doing).values():
            try:
                sizes |= self._log_dirs(address, topic, partitions, doing)
            except LogError as error:
                if error.code == NOT_AUTHORIZED:
                    return None
                raise
        return sizes

    def _log_dirs(
        self, address: Address, topic: str | None, partitions: int, doing: str
    ) -> dict[tuple[str, int], int]:
        body = FrameWriter(flexible=True)
        if topic is None:
            body.data += b"\0"  # a null array: all topics
        else:
            body.array_length(1)
            body.nullable_string(topic)
            body.array_length(partitions)
            for partition in range(partitions):
                body.int32(partition)
            body.tags()
        answer = self._requests.ask(
            address, ApiKey.DESCRIBE_LOG_DIRS, LOG_DIRS_VERSION, body, doing
        )
        answer.int32()
        code = answer.int16()
        if code:
            raise log_error(KafkaError(code), doing)
        sizes: dict[tuple[str, int], int] = {}
        for _ in range(answer.array_length(3)):
            code = answer.int16()
            if code:
                raise log_error(KafkaError(code), doing)
            answer.string()
            for _ in range(answer.array_length(2)):
                _read_topic(answer, sizes)
            answer.tags()
        return sizes


def _read_topic(answer: FrameReader, sizes: dict[tuple[str, int], int]) -> None:
    name = answer.string()
    for _ in range(answer.array_length(21)):
        partition, size = answer.int32(), answer.int64()
        answer.int64()
        answer.int8()
        answer.tags()
        sizes[name, partition] = size
    answer.tags()


def _problems(topic: Any) -> dict[int | None, str]:
    problems: dict[int | None, str] = {}
    if topic.error is not None:
        problems[None] = topic.error.name()
    for number, partition in topic.partitions.items():
        if partition.error is not None:
            problems[number] = partition.error.name()
        elif partition.leader < 0:
            problems[number] = "LEADER_NOT_AVAILABLE"
    return problems
