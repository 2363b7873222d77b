"""Transactions for asyncio: each wraps a `Transaction`, and waits in threads."""

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from bucketlog.client.async_consumer import AsyncGroupConsumer
from bucketlog.client.deferred_sends import prepare
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.sending import encoded
from bucketlog.client.topic import Headers, Topic
from bucketlog.client.transaction import Transaction
from bucketlog.log_format.errors import ConfigurationError

K = TypeVar("K")
V = TypeVar("V")


class AsyncTransaction:
    """One transaction, made by `AsyncLog.transaction` and used with `async with`.

    Only one task may use it at a time. If this task is cancelled in the block, it abandons the
    transaction, and brokers abort it.
    """

    def __init__(
        self,
        make: Callable[[GroupConsumer[Any, Any] | None], Transaction],
        consumer: AsyncGroupConsumer[Any, Any] | None,
    ) -> None:
        self._make = make
        self._consumer = consumer
        self._made: Transaction | None = None

    @property
    def is_committed(self) -> bool:
        return self._transaction.is_committed

    @property
    def _transaction(self) -> Transaction:
        if self._made is None:
            raise ConfigurationError(
                "the transaction has not begun",
                remedy="use it as a block: async with log.transaction(...) as transaction",
            )
        return self._made

    async def send(
        self,
        topic: Topic[K, V],
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """As `Transaction.send`. Waits for room in the queue and for a schema registry."""
        await prepare(topic, value=value, key=key)
        record = encoded(topic, value, key, headers, partition, timestamp_ms)
        if not self._transaction.put(record):
            await asyncio.to_thread(self._transaction.put_when_there_is_room, record)

    async def send_many(
        self, topic: Topic[K, V], values: Iterable[V], *, key: Callable[[V], K] | None = None
    ) -> int:
        """As `Transaction.send_many`. Another thread iterates over `values` and calls `key`."""
        return await asyncio.to_thread(self._transaction.send_many, topic, values, key=key)

    async def abort(self) -> None:
        """As `Transaction.abort`."""
        await self._run(self._transaction.abort)

    async def commit(self) -> None:
        """As `Transaction.commit`. If the task is cancelled meanwhile, the outcome is unknown."""
        await self._run(self._transaction.commit)

    async def _run(self, call: Callable[[], object]) -> None:
        """Call in a thread: the consumer's, if there is one, because an abort rewinds it."""
        if self._consumer is None:
            await asyncio.to_thread(call)
        else:
            await self._consumer.call(lambda _: call())

    async def __aenter__(self) -> Self:
        if self._consumer is None:
            self._made = self._make(None)
        else:
            self._made = await self._consumer.call(self._make)
        await self._run(self._transaction.__enter__)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._run(lambda: self._transaction.__exit__(exc_type, exc, traceback))
