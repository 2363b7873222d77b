"""`aconnect` and `AsyncLog`: a `Log` for asyncio. What waits does so in threads; the rules are
`Log`'s."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast, overload

from bucketlog.client.acls import AclAdmin
from bucketlog.client.async_consumer import AsyncConsumer, AsyncGroupConsumer
from bucketlog.client.async_producer import AsyncProducer
from bucketlog.client.async_transaction import AsyncTransaction
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.groups import Groups
from bucketlog.client.log import (
    DEFAULT_BOOTSTRAP,
    TRANSACTION_TIMEOUT_S,
    Log,
)
from bucketlog.client.open_telemetry import OpenTelemetry
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
)
from bucketlog.client.reachable import check_reachable
from bucketlog.client.security import Security
from bucketlog.client.signatures import documented_as, with_options
from bucketlog.client.sources import SeveralTopics, Sources, sources_of
from bucketlog.client.topic import Topic, TopicPartition
from bucketlog.client.topics import Topics
from bucketlog.client.transaction import Transaction
from bucketlog.client.users import Users
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import BucketlogError

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
S = TypeVar("S")
P = ParamSpec("P")


def aconnect(
    bootstrap: str = DEFAULT_BOOTSTRAP,
    *,
    client_id: str = "bucketlog",
    timeout_s: float = 10.0,
    security: Security | None = None,
    config: Mapping[str, Any] | None = None,
    telemetry: OpenTelemetry | None = None,
) -> "AsyncLog":
    """Connect to a cluster from asyncio, as in `async with bucketlog.aconnect() as log`.

    The start of the block connects.

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
        A connection. Use it as an asynchronous context manager.

    Raises:
        ConfigurationError: If an address or a setting is not valid.
        LogError: If no broker answers at these addresses, or if TLS or the login fails. The start
            of the block raises this error.

    Examples:
        >>> async def names():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         return [topic.name for topic in await log.topics.list()]
        >>> asyncio.run(names())
        ['orders']
    """
    return AsyncLog(
        Log(
            bootstrap,
            client_id=client_id,
            timeout_s=timeout_s,
            security=security,
            config=config,
            telemetry=telemetry,
        )
    )


def _in_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """The same method, with `await`."""

    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self._waiting, *args, **kwargs)

    return cast(
        Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
        functools.update_wrapper(call, method),
    )


class AsyncTopics:
    """Administration of topics for asyncio: the methods of `Topics`, with `await`. Used for
    `log.topics`.

    Examples:
        >>> async def partitions():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         return await log.topics.partition_count(orders)
        >>> asyncio.run(partitions())
        1
    """

    def __init__(self, waiting: Topics) -> None:
        self._waiting = waiting

    create = _in_thread(Topics.create)
    ensure = _in_thread(Topics.ensure)
    configure = _in_thread(Topics.configure)
    add_partitions = _in_thread(Topics.add_partitions)
    list = _in_thread(Topics.list)
    describe = _in_thread(Topics.describe)
    partition_count = _in_thread(Topics.partition_count)
    trim = _in_thread(Topics.trim)
    delete = _in_thread(Topics.delete)


class AsyncGroups:
    """Administration of groups for asyncio: the methods of `Groups`, with `await`. Used for
    `log.groups`.

    Examples:
        >>> async def groups():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         return await log.groups.list()
        >>> asyncio.run(groups())
        []
    """

    def __init__(self, waiting: Groups) -> None:
        self._waiting = waiting

    list = _in_thread(Groups.list)
    describe = _in_thread(Groups.describe)
    reset = _in_thread(Groups.reset)
    delete = _in_thread(Groups.delete)


class AsyncUsers:
    """Administration of users for asyncio: the methods of `Users`, with `await`. Used for
    `log.users`.

    Examples:
        >>> async def add_user():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         await log.users.set_password("ann", "a long secret")
        ...         return [each.user for each in await log.users.list()]
        >>> asyncio.run(add_user())
        ['ann']
    """

    def __init__(self, waiting: Users) -> None:
        self._waiting = waiting

    list = _in_thread(Users.list)
    set_password = _in_thread(Users.set_password)
    delete = _in_thread(Users.delete)


class AsyncAcls:
    """Administration of access rules for asyncio: the methods of `AclAdmin`, with `await`. Used for
    `log.acls`.

    Examples:
        >>> async def rules():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         return await log.acls.list(principal="User:ann")
        >>> try:
        ...     asyncio.run(rules())
        ... except bucketlog.LogError as error:
        ...     print(error.code)
        SECURITY_DISABLED
    """

    def __init__(self, waiting: AclAdmin) -> None:
        self._waiting = waiting

    list = _in_thread(AclAdmin.list)
    create = _in_thread(AclAdmin.create)
    delete = _in_thread(AclAdmin.delete)
    wait = _in_thread(AclAdmin.wait)


class AsyncLog(DisplayedObject):
    """Connection to a cluster for asyncio. Made by `aconnect`.

    Leaving the `async with` block closes all producers and consumers that are still open.

    Attributes:
        topics: Administration of topics, an `AsyncTopics`.
        groups: Administration of consumer groups, an `AsyncGroups`.
        users: Administration of users and their passwords, an `AsyncUsers`.
        acls: Administration of access rules, an `AsyncAcls`.
        bootstrap: Addresses of brokers, as given to `aconnect`.

    Examples:
        >>> async def send():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         async with log.producer() as producer:
        ...             return await producer.send(orders, Order(id="3", amount=1.5), key="ann")
        >>> asyncio.run(send())
        Delivered(topic='orders', partition=0, offset=2)
    """

    def __init__(self, log: Log) -> None:
        self.bootstrap = log.bootstrap
        self.topics = AsyncTopics(log.topics)
        self.groups = AsyncGroups(log.groups)
        self.users = AsyncUsers(log.users)
        self.acls = AsyncAcls(log.acls)
        self._log = log
        self._producers: list[AsyncProducer] = []
        self._consumers: list[AsyncConsumer[Any, Any, Any]] = []

    def _description(self) -> Description:
        return self._log._description()

    async def cluster_id(self) -> str:
        """Return the id of the cluster, as its brokers report it.

        Returns:
            The id of the cluster.

        Raises:
            LogError: If no broker answers.
        """
        return await asyncio.to_thread(self._log.cluster_id)

    @with_options((ProducerOptions, PRODUCER_DEFAULTS))
    @documented_as(Log.producer)
    def producer(self, **options: Unpack[ProducerOptions]) -> AsyncProducer:
        """The producer belongs to the event loop that runs now."""
        producer = AsyncProducer(
            self._log.producer_config(options),
            delivery_timeout_s=options.get("delivery_timeout_s", DELIVERY_TIMEOUT_S),
            traced=self._log._traced_sends(),
        )
        self._producers.append(producer)
        return producer

    @with_options((ProducerOptions, PRODUCER_DEFAULTS))
    @documented_as(Log.transaction)
    def transaction(
        self,
        transactional_id: str,
        *,
        consumer: AsyncGroupConsumer[Any, Any, Any] | None = None,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        **options: Unpack[ProducerOptions],
    ) -> AsyncTransaction:
        """The block is an `async with` block. Its start raises all errors."""
        check_names("producer", options)

        def make(waiting: GroupConsumer[Any, Any, Any] | None) -> Transaction:
            return self._log.transaction(
                transactional_id, consumer=waiting, timeout_s=timeout_s, **options
            )

        return AsyncTransaction(make, consumer)

    @overload
    def consumer(
        self, topic: Topic[K, V], **options: Unpack[PartitionOptions]
    ) -> AsyncConsumer[K, V]: ...
    @overload
    def consumer(
        self, topic: Topic[K, V], *, group: str, **options: Unpack[GroupOptions]
    ) -> AsyncGroupConsumer[K, V]: ...
    @overload
    def consumer(
        self, topic: SeveralTopics[K, V], **options: Unpack[TopicsOptions]
    ) -> AsyncConsumer[K, V, TopicPartition]: ...
    @overload
    def consumer(
        self, topic: SeveralTopics[K, V], *, group: str, **options: Unpack[TopicsGroupOptions]
    ) -> AsyncGroupConsumer[K, V, TopicPartition]: ...
    @with_options(
        (PartitionOptions, PARTITION_DEFAULTS),
        (GroupOptions, GROUP_DEFAULTS),
        (TopicsOptions, TOPICS_DEFAULTS),
    )
    @documented_as(Log.consumer)
    def consumer(self, topic: object, *, group: str | None = None, **options: Any) -> Any:
        """The consumer connects when it is first awaited. This call raises the errors of opening
        it."""
        check_names("consumer", options)
        sources: Sources[Any, Any, Any] = sources_of(topic)
        consumer: AsyncConsumer[Any, Any, Any]
        traced = self._log._traced_reads(group)
        if group is None:
            consumer = AsyncConsumer(
                sources, lambda: self._log._open_partitions(sources, options), traced
            )
        else:
            consumer = AsyncGroupConsumer(
                sources, lambda: self._log._open_member(sources, group, options), traced
            )
        self._consumers.append(consumer)
        return consumer

    async def close(self) -> None:
        """Close all producers and consumers.

        Raises:
            LogError: If records of a producer were not delivered. Raises the first failure, after
                everything is closed.
        """
        await self.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(
            check_reachable, self.bootstrap, self._log.timeout_s, self._log.security
        )
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        closing = AsyncExitStack()
        await closing.enter_async_context(
            _closing(functools.partial(asyncio.to_thread, self._log.close))
        )
        for producer in self._producers:
            closing.push_async_exit(producer)
        for consumer in self._consumers:
            await closing.enter_async_context(_closing(consumer.close))
        self._consumers.clear()
        self._producers.clear()
        await closing.__aexit__(exc_type, exc, traceback)


@asynccontextmanager
async def _closing(close: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """What it cannot do is a note on what is raised already."""
    try:
        yield
    except BaseException as error:
        try:
            await close()
        except BucketlogError as failure:
            error.add_note(f"and: {failure}")
        raise
    await close()
