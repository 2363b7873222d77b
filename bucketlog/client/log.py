"""`connect` and `Log`: one cluster, and what can be done with it."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from random import Random
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar, Unpack, overload

from confluent_kafka import KafkaException

from bucketlog.client.acls import AclAdmin
from bucketlog.client.admin import Admin
from bucketlog.client.broker_connection import TRANSPORT, Address, open_connection
from bucketlog.client.consumer import Consumer
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.groups import Groups
from bucketlog.client.kafka_errors import CHECK_ADDRESS, log_error
from bucketlog.client.membership import GroupMembership
from bucketlog.client.options import (
    DELIVERY_TIMEOUT_S,
    GroupOptions,
    PartitionOptions,
    ProducerOptions,
    check_names,
    consumer_config,
    producer_config,
)
from bucketlog.client.partition_consumer import PartitionConsumer
from bucketlog.client.poison import DeadLetter, OnError, Poison
from bucketlog.client.producer import Producer
from bucketlog.client.repeated_lines import RepeatedLines
from bucketlog.client.security import Security
from bucketlog.client.settlement import Settlement
from bucketlog.client.topic import Record, Topic, check_topic
from bucketlog.client.topics import Topics
from bucketlog.client.transaction import Transaction, TransactionalProducer
from bucketlog.client.transactions import TransactionAdmin
from bucketlog.client.users import Users
from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    LogError,
    TransactionAbortedError,
)

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_PORT = 9092
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
) -> "Log":
    """A cluster by the address of any of its brokers (several: comma-separated).

    `timeout_s` bounds every request that waits for an answer. `security`: TLS and a login; None:
    plain text. `config` adds librdkafka settings to every client, and goes before all others.
    Raises `LogError` if nothing listens there, or if TLS or the login fails.
    """
    check_reachable(bootstrap, timeout_s, security)
    return Log(
        bootstrap, client_id=client_id, timeout_s=timeout_s, security=security, config=config
    )


class Log:
    """A cluster. Leaving the `with` block closes what it opened and nobody closed before."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str,
        timeout_s: float,
        security: Security | None = None,
        config: Mapping[str, Any] | None,
    ) -> None:
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
        self.acls = AclAdmin(self._admin, self._config, security)
        self._opened: list[Producer | Consumer[Any, Any]] = []
        self._transactional: dict[str, _Transactional] = {}

    def cluster_id(self) -> str:
        """As the brokers give it. Raises `LogError`."""
        try:
            return str(self._admin.client.list_topics(timeout=self.timeout_s).cluster_id)
        except KafkaException as error:
            raise log_error(error.args[0], "asking for the cluster's id") from error

    def producer(self, **options: Unpack[ProducerOptions]) -> Producer:
        """A producer. A batch leaves when it has `batch_bytes` or is `linger_ms` old."""
        producer = Producer(
            self.producer_config(options),
            delivery_timeout_s=options.get("delivery_timeout_s", DELIVERY_TIMEOUT_S),
        )
        self._opened.append(producer)
        return producer

    def producer_config(self, options: ProducerOptions) -> dict[str, Any]:
        """librdkafka's settings of a producer on this cluster."""
        check_names("producer", options)
        return {**self._config, **producer_config(options)}

    def consumer_config(self, options: PartitionOptions) -> dict[str, Any]:
        """librdkafka's settings of a consumer without a group on this cluster."""
        check_names("consumer", options)
        return {**self._config, **consumer_config(dict(options), None)}

    def transaction(
        self,
        transactional_id: str,
        *,
        consumer: GroupConsumer[Any, Any] | None = None,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        **options: Unpack[ProducerOptions],
    ) -> Transaction:
        """A transaction: `with log.transaction("billing-1") as transaction`.

        The end of the block commits. An exception in the block aborts. The first transaction of a
        transactional id fences the producers of this id in other programs. Give each running
        instance its own id, and use the same id after a restart.

        `consumer`: the transaction also commits the offsets of all records that this consumer has
        returned. After an abort, the consumer returns them again. It needs `auto_commit=False`.
        `timeout_s`: brokers abort a transaction that is open for longer. Options are those of
        `producer`. Raises `ConfigurationError`.
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
            producer = TransactionalProducer(config, transactional_id, timeout_s=timeout_s)
            known = self._transactional[transactional_id] = _Transactional(producer, settings)
        elif known.settings != settings:
            raise ConfigurationError(
                f"an earlier transaction of {transactional_id!r} had other options",
                remedy="use the same options for all transactions of an id",
            )
        return known.producer

    def transform(
        self,
        consumer: GroupConsumer[K, V],
        handler: Callable[[Record[K, V], Transaction], object],
        *,
        transactional_id: str,
        max_records: int = TRANSFORM_RECORDS,
        attempts_max: int = TRANSFORM_ATTEMPTS,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        **options: Unpack[ProducerOptions],
    ) -> int:
        """Call `handler(record, transaction)` for each record, and commit what it sends together
        with the group's offsets. Each record counts exactly once.

        A transaction covers up to `max_records` available records. If it aborts, `transform` runs
        it again and calls the handler again. After `attempts_max` aborts in a row, it raises
        `TransactionAbortedError`. Any other exception of the handler aborts the transaction and is
        raised. With `until="end"`, `transform` returns the number of committed records once all are
        read; otherwise it never returns. Other arguments: see `transaction`.
        """
        check_names("producer", options)
        _check_commits_by_hand(consumer)
        self._transactional_producer(transactional_id, timeout_s, options).initialise()
        count, failed = 0, 0
        pauses_s = TRANSFORM_BACKOFF.pauses_s(Random())
        while not consumer.finished:
            records = consumer.poll(max_records)
            if not records:
                continue
            transaction = self.transaction(
                transactional_id, consumer=consumer, timeout_s=timeout_s, **options
            )
            try:
                with transaction:
                    for record in records:
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
    def consumer(
        self, topic: Topic[K, V], *, group: str | None = None, **given: Any
    ) -> Consumer[K, V]:
        """A consumer of the given partitions, or of all that the topic has now; with `group`, a
        member of that group.

        `until="end"` stops at the ends that the partitions have now (in a group: had when they
        came to this member); otherwise it goes on for ever. `on_error` says what becomes of a
        record that does not decode. In a group `start` is for where nothing is committed; what the
        caller is done with is committed every `commit_interval_s`, when partitions go, and at the
        end, unless `auto_commit` is False. A loop body may take `max_poll_interval_s`. A member
        with an `instance_id` keeps its partitions while it restarts. Raises `LogError`,
        `ConfigurationError`.
        """
        check_names("consumer", given)
        check_topic(topic)
        options = dict(given)
        config = {**self._config, **consumer_config(options, group)}
        poison = self._poison(options.pop("on_error", "raise"))
        bounds: dict[str, Any] = {
            "until_end": options.pop("until", None) == "end",
            "timeout_s": self.timeout_s,
        }
        consumer: Consumer[K, V]
        if group is None:
            chosen = self._partitions_of(topic, options.get("partitions"))
            start = options.get("start", "latest")
            consumer = PartitionConsumer(
                config, topic, poison, start=start, partitions=chosen, **bounds
            )
        else:
            member = GroupMembership(group=group, **options)
            count = self.topics.partition_count(topic)
            settlement = Settlement(self._admin, group, topic.name, partitions=count)
            consumer = GroupConsumer(config, topic, poison, member, settlement, **bounds)
        self._opened.append(consumer)
        return consumer

    def _poison(self, on_error: OnError) -> Poison:
        poison = Poison(on_error, lambda: self.producer(linger_ms=0))
        if isinstance(on_error, DeadLetter):
            self.topics.partition_count(on_error.name)  # found missing now, not at the first one
        return poison

    def _partitions_of(
        self, topic: Topic[Any, Any], wanted: Iterable[int] | None
    ) -> tuple[int, ...]:
        count = self.topics.partition_count(topic)
        chosen = tuple(range(count) if wanted is None else sorted(set(wanted)))
        if missing := [part for part in chosen if not 0 <= part < count]:
            raise ConfigurationError(
                f"topic {topic.name!r} has no partition {missing[0]}",
                remedy=f"it has partitions 0 to {count - 1}",
            )
        return chosen

    def close(self) -> None:
        """Close every producer and consumer; raises the first producer's failure, if any."""
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
def _closing(consumer: Consumer[Any, Any]) -> Iterator[None]:
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


def check_reachable(bootstrap: str, timeout_s: float, security: Security | None = None) -> None:
    """Fail at once, and say which address, where librdkafka would try until its timeout. With
    `security`, also log in."""
    reasons = []
    for address in bootstrap.split(","):
        host, port = _host_and_port(address.strip())
        try:
            with open_connection((host, port), security, timeout_s) as connection:
                if security is not None and not security.has_login:
                    connection.is_served()
            return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    raise LogError(
        f"no broker answers at {'; '.join(reasons)}",
        code="TRANSPORT",
        kafka_code=TRANSPORT,
        retriable=True,
        remedy=CHECK_ADDRESS,
    )


def _host_and_port(address: str) -> Address:
    scheme, separator, rest = address.partition("://")
    if separator:
        raise ConfigurationError(
            f"{address!r} is a URL, and brokers speak Kafka's protocol, not {scheme}",
            remedy=f"give host:port alone, as in {rest.strip('/') or 'localhost:9092'}",
        )
    host, colon, port = address.rpartition(":")
    if not colon or (address.startswith("[") and address.endswith("]")):
        host, port = address, str(DEFAULT_PORT)
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigurationError(
            f"{address!r} is no broker address", remedy="give it as host:port, as in localhost:9092"
        )
    return host.strip("[]"), int(port)
