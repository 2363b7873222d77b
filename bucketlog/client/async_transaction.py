"""Transactions for asyncio: each wraps a `Transaction`, and waits in threads."""

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from bucketlog.client.async_consumer import AsyncGroupConsumer
from bucketlog.client.deferred_sends import prepare
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.sending import Encoded, Report, encoded
from bucketlog.client.signatures import documented_as
from bucketlog.client.topic import Headers, Topic
from bucketlog.client.transaction import Transaction
from bucketlog.log_format.errors import ConfigurationError

K = TypeVar("K")
V = TypeVar("V")


class AsyncTransaction:
    """Transaction for asyncio: its records and offsets become visible together, or not at all
    (KIP-98). Made by `AsyncLog.transaction`, and used with `async with`.

    Only one task may use it at a time. If this task is cancelled in the block, brokers abort the
    transaction after its timeout.

    Examples:
        >>> async def send():
        ...     async with bucketlog.aconnect("localhost:9092") as log:
        ...         async with log.transaction("billing-1") as transaction:
        ...             await transaction.send(orders, Order(id="3", amount=1.5), key="ann")
        ...         return transaction.is_committed
        >>> asyncio.run(send())
        True
    """

    def __init__(
        self,
        make: Callable[[GroupConsumer[Any, Any, Any] | None], Transaction],
        consumer: AsyncGroupConsumer[Any, Any, Any] | None,
    ) -> None:
        self._make = make
        self._consumer = consumer
        self._made: Transaction | None = None

    @property
    def is_committed(self) -> bool:
        """Whether the transaction was committed."""
        return self._transaction.is_committed

    @property
    def _transaction(self) -> Transaction:
        if self._made is None:
            raise ConfigurationError(
                "the transaction has not begun",
                remedy="use it as a block: async with log.transaction(...) as transaction",
            )
        return self._made

    @documented_as(Transaction.send)
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
        """Other tasks run during a wait. A format that must ask a schema registry waits for it,
        too."""
        await prepare(topic, value=value, key=key)
        record = encoded(topic, value, key, headers, partition, timestamp_ms)
        transaction = self._transaction
        if transaction._traced is None:
            await _put(transaction, record, transaction._report)
            return
        with transaction._traced.sending(record, transaction._report) as (with_context, report):
            await _put(transaction, with_context, report)

    @documented_as(Transaction.send_many)
    async def send_many(
        self, topic: Topic[K, V], values: Iterable[V], *, key: Callable[[V], K] | None = None
    ) -> int:
        """Another thread iterates over `values` and calls `key`."""
        return await asyncio.to_thread(self._transaction.send_many, topic, values, key=key)

    @documented_as(Transaction.abort)
    async def abort(self) -> None:
        """Other tasks run during the wait."""
        await self._run(self._transaction.abort)

    @documented_as(Transaction.commit)
    async def commit(self) -> None:
        """If the task is cancelled during the commit, the outcome is unknown."""
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


async def _put(transaction: Transaction, record: Encoded, report: Report) -> None:
    if not transaction.put(record, report):
        await asyncio.to_thread(transaction.put_when_there_is_room, record, report)
