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
    check_reachable,
)
from bucketlog.client.options import (
    DELIVERY_TIMEOUT_S,
    GroupOptions,
    PartitionOptions,
    ProducerOptions,
    check_names,
)
from bucketlog.client.security import Security
from bucketlog.client.topic import Topic
from bucketlog.client.topics import Topics
from bucketlog.client.transaction import Transaction
from bucketlog.client.users import Users
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
) -> "AsyncLog":
    """A cluster for asyncio: `async with bucketlog.aconnect() as log`; arguments as `connect`'s.

    Entering the block raises `LogError` if nothing listens there, or if TLS or the login fails.
    """
    return AsyncLog(
        Log(bootstrap, client_id=client_id, timeout_s=timeout_s, security=security, config=config)
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
    """`Topics`, each verb with `await`."""

    def __init__(self, waiting: Topics) -> None:
        self._waiting = waiting

    create = _in_thread(Topics.create)
    ensure = _in_thread(Topics.ensure)
    configure = _in_thread(Topics.configure)
    add_partitions = _in_thread(Topics.add_partitions)
    list = _in_thread(Topics.list)
    describe = _in_thread(Topics.describe)
    partition_count = _in_thread(Topics.partition_count)
    delete = _in_thread(Topics.delete)


class AsyncGroups:
    """`Groups`, each verb with `await`."""

    def __init__(self, waiting: Groups) -> None:
        self._waiting = waiting

    list = _in_thread(Groups.list)
    describe = _in_thread(Groups.describe)
    reset = _in_thread(Groups.reset)
    delete = _in_thread(Groups.delete)


class AsyncUsers:
    """`Users`, each verb with `await`."""

    def __init__(self, waiting: Users) -> None:
        self._waiting = waiting

    list = _in_thread(Users.list)
    set_password = _in_thread(Users.set_password)
    delete = _in_thread(Users.delete)


class AsyncAcls:
    """`AclAdmin`, each verb with `await`."""

    def __init__(self, waiting: AclAdmin) -> None:
        self._waiting = waiting

    list = _in_thread(AclAdmin.list)
    create = _in_thread(AclAdmin.create)
    delete = _in_thread(AclAdmin.delete)
    wait = _in_thread(AclAdmin.wait)


class AsyncLog:
    """A cluster. Leaving the `async with` block closes what it opened and nobody closed before."""

    def __init__(self, log: Log) -> None:
        self.bootstrap = log.bootstrap
        self.topics = AsyncTopics(log.topics)
        self.groups = AsyncGroups(log.groups)
        self.users = AsyncUsers(log.users)
        self.acls = AsyncAcls(log.acls)
        self._log = log
        self._producers: list[AsyncProducer] = []
        self._consumers: list[AsyncConsumer[Any, Any]] = []

    async def cluster_id(self) -> str:
        """As the brokers give it. Raises `LogError`."""
        return await asyncio.to_thread(self._log.cluster_id)

    def producer(self, **options: Unpack[ProducerOptions]) -> AsyncProducer:
        """A producer, with the options of `Log.producer`, for the event loop that runs now."""
        producer = AsyncProducer(
            self._log.producer_config(options),
            delivery_timeout_s=options.get("delivery_timeout_s", DELIVERY_TIMEOUT_S),
        )
        self._producers.append(producer)
        return producer

    def transaction(
        self,
        transactional_id: str,
        *,
        consumer: AsyncGroupConsumer[Any, Any] | None = None,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        **options: Unpack[ProducerOptions],
    ) -> AsyncTransaction:
        """A transaction for `async with`, with the arguments of `Log.transaction`. The start of the
        block raises the errors of `Log.transaction`."""
        check_names("producer", options)

        def make(waiting: GroupConsumer[Any, Any] | None) -> Transaction:
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
    def consumer(
        self, topic: Topic[K, V], *, group: str | None = None, **options: Any
    ) -> AsyncConsumer[K, V]:
        """A consumer, with the options of `Log.consumer`; it connects when it is first awaited."""
        check_names("consumer", options)
        consumer: AsyncConsumer[K, V]
        if group is None:
            consumer = AsyncConsumer(topic, lambda: self._log.consumer(topic, **options))
        else:
            consumer = AsyncGroupConsumer(
                topic, lambda: self._log.consumer(topic, group=group, **options)
            )
        self._consumers.append(consumer)
        return consumer

    async def close(self) -> None:
        """Close every producer and consumer; raises the first producer's failure, if any."""
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
