"""`connect` and `Log`: one cluster, and what can be done with it."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, Unpack, overload

from bucketlog.client.acls import AclAdmin
from bucketlog.client.admin import Admin
from bucketlog.client.cluster import ClusterAdmin
from bucketlog.client.consumer import Consumer
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.groups import Groups
from bucketlog.client.open_telemetry import OpenTelemetry, check_telemetry
from bucketlog.client.opening import ConsumerOpening
from bucketlog.client.options import (
    DELIVERY_TIMEOUT_S,
    GROUP_DEFAULTS,
    PARTITION_DEFAULTS,
    PRODUCER_DEFAULTS,
    TOPICS_DEFAULTS,
    GroupOptions,
    PartitionOptions,
    ProducerOptions,
    TopicsGroupOptions,
    TopicsOptions,
    check_names,
    consumer_config,
    producer_config,
)
from bucketlog.client.partition_consumer import PartitionConsumer
from bucketlog.client.poison import DeadLetter, OnError, Poison
from bucketlog.client.producer import Producer
from bucketlog.client.reachable import check_reachable, check_timeout
from bucketlog.client.repeated_lines import RepeatedLines
from bucketlog.client.security import Security
from bucketlog.client.signatures import with_options
from bucketlog.client.sources import P, SeveralTopics, Sources, sources_of
from bucketlog.client.topic import Record, Topic, TopicPartition
from bucketlog.client.topics import Topics
from bucketlog.client.transaction import Transaction, TransactionalProducer
from bucketlog.client.transactions import TransactionAdmin
from bucketlog.client.users import Users
from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    TransactionAbortedError,
)

if TYPE_CHECKING:
    from bucketlog.client.traced_reads import TracedReads
    from bucketlog.client.traced_sends import TracedSends

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_BOOTSTRAP = "localhost:9092"
TRANSACTION_TIMEOUT_S = 60.0
TRANSFORM_RECORDS = 1000
TRANSFORM_ATTEMPTS = 10
TRANSFORM_BACKOFF = Backoff(first_pause_ms=50, longest_pause_ms=2000, jitter=0.5)

_logger = logging.getLogger("bucketlog.kafka")
_logger.addHandler(logging.NullHandler())
_logger.addFilter(RepeatedLines())


def connect(
    bootstrap: str = DEFAULT_BOOTSTRAP,
    *,
    client_id: str = "bucketlog",
    timeout_s: float = 10.0,
    security: Security | None = None,
    config: Mapping[str, Any] | None = None,
    telemetry: OpenTelemetry | None = None,
) -> "Log":
    """Connect to a cluster.

    Args:
        bootstrap: Addresses of brokers, comma-separated, as `host:port`. One is enough: it names
            the others.
        client_id: Name of this program in the brokers' logs and metrics.
        timeout_s: Longest time that a request waits for its answer, in seconds. Default: 10.
        security: TLS and a login; None means plain text without a login.
        config: Further settings of librdkafka for all clients of this connection, which override
            all others; None means no further settings.
        telemetry: Receiver of spans and metrics; None means that none are recorded.

    Returns:
        A connection. Use it as a context manager: leaving the block closes its producers and
        consumers.

    Raises:
        ConfigurationError: If an address or a setting is not valid.
        LogError: If no broker answers at these addresses, or if TLS or the login fails.

    Examples:
        >>> with bucketlog.connect("localhost:9092") as log:
        ...     [topic.name for topic in log.topics.list()]
        ['orders']
    """
    check_reachable(bootstrap, timeout_s, security)
    return Log(
        bootstrap,
        client_id=client_id,
        timeout_s=timeout_s,
        security=security,
        config=config,
        telemetry=telemetry,
    )


class Log(DisplayedObject):
    """Connection to a cluster. Made by `connect`.

    Leaving the `with` block closes all producers and consumers that are still open. Several threads
    may use a connection. Its consumers are for one thread at a time.

    Attributes:
        topics: Administration of topics, a `Topics`.
        groups: Administration of consumer groups, a `Groups`.
        transactions: Administration of transactions, a `TransactionAdmin`.
        users: Administration of users and their passwords, a `Users`.
        acls: Administration of access rules, an `AclAdmin`.
        bootstrap: Addresses of brokers, as given to `connect`.
        timeout_s: Longest time that a request waits for its answer, in seconds.
        security: TLS and login; None means plain text without a login.

    Examples:
        >>> with bucketlog.connect("localhost:9092") as log:
        ...     with log.producer() as producer:
        ...         producer.send(orders, Order(id="3", amount=1.5), key="ann").result()
        Delivered(topic='orders', partition=0, offset=2)
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str,
        timeout_s: float,
        security: Security | None = None,
        config: Mapping[str, Any] | None,
        telemetry: OpenTelemetry | None = None,
    ) -> None:
        check_timeout(timeout_s)
        check_telemetry(telemetry)
        self._telemetry = telemetry
        self.bootstrap = bootstrap
        self.timeout_s = timeout_s
        self.security = security
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "logger": _logger,
            "topic.metadata.refresh.interval.ms": 30_000,
            **({} if security is None else security.librdkafka()),
            **(config or {}),
        }
        self._admin = Admin(self._config, timeout_s=timeout_s)
        self.topics = Topics(self._admin)
        self.groups = Groups(self._admin)
        self.transactions = TransactionAdmin(self._admin, self._config, security)
        self.users = Users(self._admin)
        self.cluster = ClusterAdmin(self._admin, self._config, security)
        self.acls = AclAdmin(self._admin, self._config, security)
        self._opening = ConsumerOpening(
            self._config, self._admin, self.topics, self._poison, self._traced_reads
        )
        self._opened: list[Producer | Consumer[Any, Any, Any]] = []
        self._transactional: dict[str, _Transactional] = {}

    def _description(self) -> Description:
        user = None if self.security is None else self.security.username
        tls = None if self.security is None else self.security.tls
        client_id = self._config["client.id"]
        return Description(
            {"bootstrap": self.bootstrap, "client_id": client_id, "user": user, "tls": tls}
        )

    def cluster_id(self) -> str:
        """Return the id of the cluster, as its brokers report it.

        Returns:
            The id of the cluster.

        Raises:
            LogError: If no broker answers.
        """
        return str(self._admin.metadata(None, "asking for the cluster's id").cluster_id)

    @with_options((ProducerOptions, PRODUCER_DEFAULTS))
    def producer(self, **options: Unpack[ProducerOptions]) -> Producer:
        """Open a producer.

        A batch leaves the producer when it has `batch_bytes`, or when it is `linger_ms` old.

        Args:

        Returns:
            A producer. Use it as a context manager: leaving the block waits until all records are
            delivered.

        Raises:
            ConfigurationError: If an option is not valid.
        """
        return self._open_producer(options, self._traced_sends())

    def _open_producer(self, options: ProducerOptions, traced: "TracedSends | None") -> Producer:
        producer = Producer(
            self.producer_config(options),
            delivery_timeout_s=options.get("delivery_timeout_s", DELIVERY_TIMEOUT_S),
            traced=traced,
        )
        self._opened.append(producer)
        return producer

    def _traced_sends(self, *, injects: bool = True) -> "TracedSends | None":
        """Recorder of a producer's spans. `injects`: whether it adds headers to records."""
        if self._telemetry is None:
            return None
        return self._telemetry._sends(self._config["client.id"], injects=injects)

    def _traced_reads(self, group: str | None) -> "TracedReads | None":
        if self._telemetry is None:
            return None
        return self._telemetry._reads(self._config["client.id"], group)

    def producer_config(self, options: ProducerOptions) -> dict[str, Any]:
        """Return librdkafka's settings of a producer on this cluster.

        Args:
            options: Options of the producer.

        Returns:
            The settings by their names.

        Raises:
            ConfigurationError: If an option is not valid.
        """
        check_names("producer", options)
        return {**self._config, **producer_config(options)}

    def consumer_config(self, options: PartitionOptions) -> dict[str, Any]:
        """Return librdkafka's settings of a consumer without a group on this cluster.

        Args:
            options: Options of the consumer.

        Returns:
            The settings by their names.

        Raises:
            ConfigurationError: If an option is not valid.
        """
        check_names("consumer", options)
        return {**self._config, **consumer_config(dict(options), None)}

    @with_options((ProducerOptions, PRODUCER_DEFAULTS))
    def transaction(
        self,
        transactional_id: str,
        *,
        consumer: GroupConsumer[Any, Any, Any] | None = None,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        **options: Unpack[ProducerOptions],
    ) -> Transaction:
        """Begin a transaction, as in `with log.transaction("billing-1") as transaction`.

        The end of the block commits. An exception in the block aborts. The first transaction of a
        transactional id fences the producers of this id in other programs. Give each running
        instance its own id, and use the same id after a restart.

        Args:
            transactional_id: Name of the transactional producer, which stays the same after a
                restart.
            consumer: Consumer of a group, opened with `auto_commit=False`. The transaction also
                commits the offsets of all records that this consumer has returned. After an abort,
                the consumer returns them again. None means that the transaction commits no offsets.
            timeout_s: Time after which brokers abort an open transaction, in seconds. Default: 60.

        Returns:
            A transaction, which begins with its `with` block.

        Raises:
            ConfigurationError: If an option is not valid, or if the consumer commits automatically.
            LogError: If the transaction cannot begin. The start of the block raises this error.
        """
        check_names("producer", options)
        if consumer is not None:
            _check_commits_by_hand(consumer)
        producer = self._transactional_producer(transactional_id, timeout_s, options)
        return Transaction(producer, consumer)

    def _transactional_producer(
        self, transactional_id: str, timeout_s: float, options: ProducerOptions
    ) -> TransactionalProducer:
        if options.get("idempotent") is False:
            raise ConfigurationError(
                "a transaction needs an idempotent producer", remedy="remove idempotent=False"
            )
        settings = (timeout_s, dict(options))
        known = self._transactional.get(transactional_id)
        if known is None or not known.producer.is_usable:
            config = self.producer_config(options)
            producer = TransactionalProducer(
                config, transactional_id, timeout_s=timeout_s, traced=self._traced_sends()
            )
            known = self._transactional[transactional_id] = _Transactional(producer, settings)
        elif known.settings != settings:
            raise ConfigurationError(
                f"an earlier transaction of {transactional_id!r} had other options",
                remedy="use the same options for all transactions of an id",
            )
        return known.producer

    @with_options((ProducerOptions, PRODUCER_DEFAULTS))
    def transform(
        self,
        consumer: GroupConsumer[K, V, Any],
        handler: Callable[[Record[K, V], Transaction], object],
        *,
        transactional_id: str,
        max_records: int = TRANSFORM_RECORDS,
        attempts_max: int = TRANSFORM_ATTEMPTS,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        **options: Unpack[ProducerOptions],
    ) -> int:
        """Call a handler for each record, and commit what it sends together with the group's
        offsets.

        Each record counts exactly once. A transaction covers up to `max_records` available records.
        If a transaction aborts, `transform` runs it again, and calls the handler again. Any
        exception of the handler aborts the transaction and is raised, except
        `TransactionAbortedError`.

        Args:
            consumer: Consumer of a group, opened with `auto_commit=False`.
            handler: Function that is called with each record and the transaction to send with.
            transactional_id: Name of the transactional producer, which stays the same after a
                restart.
            max_records: Largest number of records in a transaction. Default: 1000.
            attempts_max: Number of aborts in a row after which `transform` gives up. Default: 10.
            timeout_s: Time after which brokers abort an open transaction, in seconds. Default: 60.

        Returns:
            The number of committed records, after `consumer.stop()`, or, with `until`, once all
            records are read.

        Raises:
            ConfigurationError: If an option is not valid, or if the consumer commits automatically.
            LogError: If another producer has taken the transactional id over, or if brokers do not
                answer.
            TransactionAbortedError: If `attempts_max` transactions in a row were aborted.
        """
        check_names("producer", options)
        _check_commits_by_hand(consumer)
        self._transactional_producer(transactional_id, timeout_s, options).initialise()
        traced = self._traced_reads(consumer.group)
        count, failed = 0, 0
        pauses_s = TRANSFORM_BACKOFF.pauses_s(Random())
        while not (consumer.finished or consumer.is_stopped):
            records = consumer.poll(max_records)
            if not records:
                continue
            transaction = self.transaction(
                transactional_id, consumer=consumer, timeout_s=timeout_s, **options
            )
            try:
                with transaction:
                    for record in records:
                        if traced is None:
                            handler(record, transaction)
                            continue
                        with traced.processing(record, attempt=None):
                            handler(record, transaction)
                if not transaction.is_committed:
                    raise TransactionAbortedError(
                        f"the handler aborted transaction {transactional_id!r}"
                    )
            except TransactionAbortedError as error:
                failed += 1
                if failed >= attempts_max:
                    raise
                _logger.warning("%s", error)
                time.sleep(next(pauses_s))
                continue
            failed, pauses_s = 0, TRANSFORM_BACKOFF.pauses_s(Random())
            count += len(records)
        return count

    @overload
    def consumer(
        self, topic: Topic[K, V], **options: Unpack[PartitionOptions]
    ) -> PartitionConsumer[K, V]: ...
    @overload
    def consumer(
        self, topic: Topic[K, V], *, group: str, **options: Unpack[GroupOptions]
    ) -> GroupConsumer[K, V]: ...
    @overload
    def consumer(
        self, topic: SeveralTopics[K, V], **options: Unpack[TopicsOptions]
    ) -> PartitionConsumer[K, V, TopicPartition]: ...
    @overload
    def consumer(
        self, topic: SeveralTopics[K, V], *, group: str, **options: Unpack[TopicsGroupOptions]
    ) -> GroupConsumer[K, V, TopicPartition]: ...
    @with_options(
        (PartitionOptions, PARTITION_DEFAULTS),
        (GroupOptions, GROUP_DEFAULTS),
        (TopicsOptions, TOPICS_DEFAULTS),
    )
    def consumer(self, topic: object, *, group: str | None = None, **given: Any) -> Any:
        """Open a consumer of partitions, or, with `group`, a member of a consumer group.

        Without a group, nothing is committed. A member of a group reads the partitions that the
        group assigns to it. Records that it has returned are committed every `commit_interval_s`,
        when partitions go to another member, and at the end, unless `auto_commit` is False.

        Args:
            topic: Topic to read, with the types of its keys and values; or a `TopicPattern`; or a
                list or tuple of topics and patterns. With a pattern or a list, partitions are named
                by `TopicPartition`.
            group: Name of the consumer group; None means a consumer without a group.

        Returns:
            A consumer. Iterate over it, or call `poll`. Use it as a context manager.

        Raises:
            ConfigurationError: If an option is not valid, or if it does not fit a consumer with or
                without a group.
            LogError: If the topic does not exist, or if brokers do not answer.
        """
        check_names("consumer", given)
        sources: Sources[Any, Any, Any] = sources_of(topic)
        if group is None:
            return self._open_partitions(sources, given)
        return self._open_member(sources, group, given)

    def _open_partitions(
        self, sources: Sources[K, V, P], options: Mapping[str, Any]
    ) -> PartitionConsumer[K, V, P]:
        """Open a consumer without a group; the names of the options are checked."""
        consumer = self._opening.partitions(sources, dict(options))
        self._opened.append(consumer)
        return consumer

    def _open_member(
        self, sources: Sources[K, V, P], group: str, options: Mapping[str, Any]
    ) -> GroupConsumer[K, V, P]:
        """Open a member of a group; the names of the options are checked."""
        consumer = self._opening.member(sources, group, dict(options))
        self._opened.append(consumer)
        return consumer

    def _poison(self, on_error: OnError) -> Poison:
        poison = Poison(on_error, self._open_aside)
        if isinstance(on_error, DeadLetter):
            self.topics.partition_count(on_error.name)  # found missing now, not at the first one
        return poison

    def _open_aside(self) -> Producer:
        """Open a producer of copies, which keep the headers of their records."""
        return self._open_producer({"linger_ms": 0}, self._traced_sends(injects=False))

    def close(self) -> None:
        """Close all producers and consumers.

        Raises:
            LogError: If records of a producer were not delivered. Raises the first failure, after
                everything is closed.
        """
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        closing = ExitStack()
        for opened in self._opened:
            if isinstance(opened, Producer):
                closing.push(opened)
            else:
                closing.enter_context(_closing(opened))
        for each in self._transactional.values():
            closing.callback(each.producer.close)
        self._opened.clear()
        self._transactional.clear()
        closing.__exit__(exc_type, exc, traceback)


class _Transactional(NamedTuple):
    producer: TransactionalProducer
    settings: tuple[float, dict[str, Any]]


def _check_commits_by_hand(consumer: object) -> None:
    if not isinstance(consumer, GroupConsumer):
        raise ConfigurationError(
            "the consumer of a transaction must be in a group", remedy="open it with group=..."
        )
    if consumer.commits_automatically:
        raise ConfigurationError(
            f"the consumer of group {consumer.group!r} commits automatically",
            remedy="open it with auto_commit=False",
        )


@contextmanager
def _closing(consumer: Consumer[Any, Any, Any]) -> Iterator[None]:
    """What it cannot do is a note on what is raised already."""
    try:
        yield
    except BaseException as error:
        try:
            consumer.close()
        except BucketlogError as failure:
            error.add_note(f"and: {failure}")
        raise
    consumer.close()
