"""Transactions of the SDK: they commit records and group offsets together, or not at all.

A `TransactionalProducer` belongs to one transactional id. It runs one transaction at a time.
Invariants: a transaction ends once, with a commit or an abort. A producer that was fenced, or whose
transaction has an unknown outcome, is never used again. After an abort, the consumer of the
transaction reads its records again. Sources: KIP-98, KIP-447; librdkafka's transactional API.
"""

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException

from bucketlog.client.bounded import bounded
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.sending import Encoded, Outbox, Report, encoded, encoded_chunks
from bucketlog.client.topic import Headers, Topic
from bucketlog.client.waiting_sends import WaitingSends
from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    LogError,
    TransactionAbortedError,
)

if TYPE_CHECKING:
    from bucketlog.client.traced_sends import TracedSends

K = TypeVar("K")
V = TypeVar("V")

CALL_S = 0.5
"""Each call of librdkafka waits at most this long, so that Ctrl-C works. Then it is repeated."""
HUNG_S = 10.0
"""librdkafka 2.16 may ignore the limit of a call forever (its issues 5511 and 5456). After this
further time, the call and its producer are given up."""
CLOSE_S = 5.0
_BACKOFF = Backoff(first_pause_ms=20, longest_pause_ms=500, jitter=1.0)


class TransactionalProducer:
    """The producer of one transactional id. Raises `ConfigurationError`.

    `timeout_s`: the time after which brokers abort an open transaction, and after which a call that
    waits for a broker fails.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        transactional_id: str,
        *,
        timeout_s: float,
        traced: "TracedSends | None" = None,
    ) -> None:
        if timeout_s <= 0:
            raise ConfigurationError(f"timeout_s is {timeout_s}", remedy="make it positive")
        given: object = transactional_id
        if not isinstance(given, str) or not given:
            raise ConfigurationError(
                f"the transactional id is {transactional_id!r}, and must be a text",
                remedy='give an id, as in log.transaction("billing-1")',
            )
        timeout_ms = max(1, int(timeout_s * 1000))
        delivery_ms = min(timeout_ms, int(config["delivery.timeout.ms"]))
        self.transactional_id = transactional_id
        self.timeout_s = timeout_s
        self.traced = traced
        """Recorder of the sends; None means that they are not traced."""
        self.is_usable = True
        """Whether the producer can begin another transaction."""
        self.outbox = Outbox(
            {
                **config,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "delivery.timeout.ms": delivery_ms,
            }
        )
        self.waiting = WaitingSends(self.outbox, timeout_s=timeout_s)
        self._is_initialised = False
        self._open = threading.Lock()
        """Locked while a transaction is open."""

    def initialise(self) -> None:
        """Fence earlier producers of the id and abort their open transaction, once. Raises
        `LogError`."""
        if self._is_initialised:
            return
        try:
            self._call("initialising", self.outbox.kafka.init_transactions)
        except BaseException:  # Ctrl-C, too
            self.discard()
            raise
        self._is_initialised = True

    def begin(self) -> None:
        """Begin a transaction. The first one fences earlier producers of the id and aborts their
        open transaction. Raises `LogError`, `ConfigurationError`."""
        if not self._open.acquire(blocking=False):
            raise ConfigurationError(
                f"a transaction of {self.transactional_id!r} is open",
                remedy="end it first, or use another transactional id for each thread",
            )
        self.initialise()
        try:
            self.outbox.kafka.begin_transaction()
        except KafkaException as error:
            self.discard()
            raise self._failure(error.args[0], "beginning") from error

    def add_offsets(self, consumer: GroupConsumer[Any, Any, Any]) -> None:
        """Add the consumer's offsets. Raises `TransactionAbortedError`, `LogError`."""
        if consumer.has_lost_records:
            self._aborted("partitions of its consumer went to another member")
        offsets, member = consumer.offsets_in_hand()
        if not offsets:
            return
        send = self.outbox.kafka.send_offsets_to_transaction
        try:
            self._end_step(
                "adding offsets",
                lambda limit_s: bounded(lambda: send(offsets, member, limit_s), limit_s + HUNG_S),
            )
        except TransactionAbortedError:
            raise
        except LogError as error:
            if not error.retriable:
                raise
            raise TransactionAbortedError(  # the id's next producer aborts it
                f"transaction {self.transactional_id!r} was abandoned: {error.message}"
            ) from error

    def commit(self) -> None:
        """Commit. Raises `TransactionAbortedError`, or `LogError` if the outcome is unknown."""
        self._end_step("committing", self.outbox.kafka.commit_transaction)
        self._open.release()

    def abort(self) -> None:
        """Abort the open transaction. Raises `LogError`."""
        self._call("aborting", self.outbox.kafka.abort_transaction)
        self.outbox.failures.clear()
        self._open.release()

    def discard(self) -> None:
        """Never use the producer again. Brokers abort its open transaction after the timeout, or
        when another producer of the id begins."""
        self.is_usable = False
        with warnings.catch_warnings(), suppress(KafkaException):
            warnings.simplefilter("ignore", RuntimeWarning)  # its abort may fail
            # raises a fatal error, which was raised before; waits for a call that hangs
            bounded(self.outbox.close, CLOSE_S)

    def close(self) -> None:
        """Abort an open transaction, and close the connections."""
        if not self.is_usable:
            return
        if self._open.locked():
            with suppress(LogError):  # the next producer of the id aborts it
                self.abort()
        if self.is_usable:
            self.discard()

    def _end_step(self, doing: str, call: Callable[[float], object]) -> None:
        """Run a step of a commit. Abort the transaction if librdkafka requires this."""
        try:
            self._call(doing, call)
        except LogError as error:
            cause = error.__cause__
            if not isinstance(cause, KafkaException) or not cause.args[0].txn_requires_abort():
                raise
            self._aborted(next(iter(self.outbox.failures.values()), error).message)

    def _aborted(self, reason: str) -> NoReturn:
        """Abort, and raise `TransactionAbortedError`, even if the abort fails with a retriable
        error: nothing is committed. Raises `LogError` if another producer has taken the id over."""
        try:
            self.abort()
        except LogError as failure:
            if not failure.retriable:
                raise
        raise TransactionAbortedError(
            f"transaction {self.transactional_id!r} was aborted: {reason}"
        )

    def _call(self, doing: str, call: Callable[[float], object]) -> None:
        """Call, and retry after retriable errors, for up to `timeout_s`."""
        deadline = time.monotonic() + self.timeout_s
        pauses_s = _BACKOFF.pauses_s(Random())
        while True:
            try:
                call(CALL_S)
                return
            except SystemError as error:  # confluent-kafka has lost the exception of a signal
                raise KeyboardInterrupt from error
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if reason.retriable() and time.monotonic() < deadline:
                    if reason.code() != KafkaError._TIMED_OUT:
                        time.sleep(next(pauses_s))
                    continue
                if not reason.txn_requires_abort():
                    self.discard()
                raise self._failure(reason, doing) from error

    def _failure(self, reason: KafkaError, doing: str) -> LogError:
        failure = log_error(reason, f"{doing} transaction {self.transactional_id!r}")
        if doing == "committing" and reason.retriable():
            return LogError(
                f"{failure.args[0]}: the transaction may or may not be committed",
                code=failure.code,
                kafka_code=failure.kafka_code,
                retriable=False,
                remedy="read what the transaction wrote before you send it again",
            )
        return failure


class Transaction:
    """Transaction: its records and offsets become visible together, or not at all (KIP-98). Made by
    `Log.transaction`, and used as a context manager.

    The end of the block commits: consumers then see all records. An exception in the block aborts
    the transaction, and is raised again: consumers see none of the records.

    Attributes:
        is_committed: Whether the transaction was committed.

    Examples:
        >>> with log.transaction("billing-1") as transaction:
        ...     transaction.send(orders, Order(id="3", amount=1.5), key="ann")
        ...     transaction.send(orders, Order(id="4", amount=2.5), key="bob")
        >>> transaction.is_committed
        True
    """

    def __init__(
        self, producer: TransactionalProducer, consumer: GroupConsumer[Any, Any, Any] | None
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self.is_committed = False
        self._has_begun = False
        self._has_ended = False

    def send(
        self,
        topic: Topic[K, V],
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Queue one record, and wait while the queue is full. The commit waits until it is
        delivered.

        Args:
            topic: Topic of the record.
            value: Value of the record; None means a tombstone.
            key: Key of the record; None means no key.
            headers: Names and values of headers; None means no headers.
            partition: Number of the partition; None means that the key decides, by murmur2 as in
                Kafka's Java client, or chance if there is no key.
            timestamp_ms: Time of the record, in milliseconds since 1970 UTC; None means now.

        Raises:
            ConfigurationError: If the transaction has not begun, or has ended.
            InvalidDataError: If the value, the key or a header does not have the declared type.
            LogError: If the queue stays full for the transaction's timeout.
        """
        record = encoded(topic, value, key, headers, partition, timestamp_ms)
        if self._traced is None:
            self.put_when_there_is_room(record)
            return
        with self._traced.sending(record, self._report) as (with_context, report):
            self.put_when_there_is_room(with_context, report)

    @property
    def _traced(self) -> "TracedSends | None":
        """Recorder of the sends; None means that they are not traced."""
        return self._producer.traced

    @property
    def _report(self) -> Report:
        """Function that is called with the outcome of each record."""
        return self._producer.outbox.report_failure

    def put_when_there_is_room(self, record: Encoded, report: Report | None = None) -> None:
        """Queue one encoded record, and wait while the queue is full.

        Args:
            record: Encoded record.
            report: Function that is called with the outcome; None means that failures are raised
                by the end of the transaction. Default: None.

        Raises:
            ConfigurationError: If the transaction has not begun, or has ended.
            LogError: If the queue stays full for the transaction's timeout.
        """
        self._check_open()
        self._producer.waiting.put(record, report or self._report)

    def put(self, record: Encoded, report: Report | None = None) -> bool:
        """Queue one encoded record, without a wait.

        Args:
            record: Encoded record.
            report: Function that is called with the outcome; None means that failures are raised
                by the end of the transaction. Default: None.

        Returns:
            False if the queue is full.

        Raises:
            ConfigurationError: If the transaction has not begun, or has ended.
            LogError: If the record cannot be queued for another reason.
        """
        self._check_open()
        return self._producer.waiting.put_at_once(record, report or self._report)

    def send_many(
        self, topic: Topic[K, V], values: Iterable[V], *, key: Callable[[V], K] | None = None
    ) -> int:
        """Queue many records, and wait while the queue is full.

        Args:
            topic: Topic of the records.
            values: Values of the records.
            key: Function that computes the key of each value; None means records without keys.

        Returns:
            The number of records.

        Raises:
            ConfigurationError: If the transaction has not begun, or has ended.
            InvalidDataError: If a value or a key does not have the declared type.
            LogError: If the queue stays full for the transaction's timeout.
        """
        if self._traced is not None:
            waiting, check = self._producer.waiting, self._check_open
            return self._traced.send_many(waiting, self._report, topic, values, key, check)
        count = 0
        for messages in encoded_chunks(topic, values, key):
            self._check_open()
            count += len(messages)
            self._producer.waiting.put_all(topic.name, messages)
        return count

    def abort(self) -> None:
        """Abort now: none of the records becomes visible. The rest of the block must not send.

        Raises:
            ConfigurationError: If the transaction has not begun, or has ended.
            LogError: If the broker does not answer. The transaction is then aborted after its
                timeout.
        """
        self._check_open()
        self._note_end()
        try:
            self._producer.abort()
        finally:
            self._rewind()

    def commit(self) -> None:
        """Commit now, as the end of the block does.

        Raises:
            ConfigurationError: If the transaction has not begun, or has ended.
            LogError: If another producer has taken the transactional id over, or if the outcome is
                unknown.
            TransactionAbortedError: If the transaction was aborted. Run it again.
        """
        self._check_open()
        self._note_end()
        try:
            if self._consumer is not None:
                self._producer.add_offsets(self._consumer)
            self._producer.commit()
        except TransactionAbortedError:
            self._rewind()
            raise
        except BaseException as stop:
            if self._producer.is_usable:  # Ctrl-C, or offsets that cannot be added
                self._abandon(stop)
            if not isinstance(stop, Exception):
                stop.add_note("the transaction may or may not be committed")
            self._rewind()
            raise
        self.is_committed = True
        if self._consumer is not None:
            self._consumer.settle()

    def __enter__(self) -> Self:
        if self._has_begun:
            raise ConfigurationError(
                f"this transaction of {self._producer.transactional_id!r} had a block before",
                remedy="make a transaction for each block: log.transaction(...)",
            )
        self._has_begun = True
        self._producer.begin()
        if self._consumer is not None:
            self._consumer.note_transaction(self._producer.transactional_id)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._has_ended:
            return
        if exc is None:
            self.commit()
            return
        self._note_end()
        self._abandon(exc)
        self._rewind()

    def _note_end(self) -> None:
        self._has_ended = True
        if self._consumer is not None:
            self._consumer.note_transaction(None)

    def _abandon(self, stop: BaseException) -> None:
        try:
            if isinstance(stop, Exception):
                self._producer.abort()
            else:  # Ctrl-C: do not wait
                self._producer.discard()
        except BucketlogError as failure:
            stop.add_note(f"and: {failure}")

    def _rewind(self) -> None:
        if self._consumer is not None:
            self._consumer.rewind()

    def _check_open(self) -> None:
        if not self._has_begun:
            raise ConfigurationError(
                f"the transaction of {self._producer.transactional_id!r} has not begun",
                remedy="use it as a block: with log.transaction(...) as transaction",
            )
        if self._has_ended:
            raise ConfigurationError(
                f"the transaction of {self._producer.transactional_id!r} has ended",
                remedy="begin a new transaction: log.transaction(...)",
            )
