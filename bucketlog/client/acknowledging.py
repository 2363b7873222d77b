"""Consumers whose records are acknowledged one by one, from any thread."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from bucketlog.client.acknowledged import Acknowledged
from bucketlog.client.consumer import Consumer
from bucketlog.client.failures import Failures, OnFailure
from bucketlog.client.handed_out import HandedOut
from bucketlog.client.processing import RETRYING, OrderedBy, Processing, ProcessingRules, Retrying
from bucketlog.client.retry_topics import RetryTopics
from bucketlog.client.sources import P
from bucketlog.client.topic import Record
from bucketlog.log_format.errors import ConfigurationError

K = TypeVar("K")
V = TypeVar("V")


class AcknowledgingConsumer(Consumer[K, V, P], ABC):
    """What a group consumer can do when it is opened with `auto_commit="ack"`."""

    group: str
    _given: HandedOut

    def done(self, record: Record[K, V]) -> bool:
        """Acknowledge a record, with `auto_commit="ack"`. Any thread may call this.

        An offset is committed once all records before it are acknowledged.

        Args:
            record: Record that this consumer has returned.

        Returns:
            True if the record was in flight. False if it was acknowledged before, if its partition
            was sought, or if its partition has moved to another member, which gets the record, too.

        Raises:
            ConfigurationError: If the consumer was opened with another `auto_commit`.
        """
        return self._acknowledged().acknowledge(
            (record.topic, record.partition), record.offset, record._epoch
        )

    def is_in_flight(self, record: Record[K, V]) -> bool:
        """Return whether a record can still be acknowledged, with `auto_commit="ack"`.

        Args:
            record: Record that this consumer has returned.

        Returns:
            False if the record was acknowledged, if its partition was sought, or if its partition
            has moved to another member.

        Raises:
            ConfigurationError: If the consumer was opened with another `auto_commit`.
        """
        given = self._acknowledged()
        return given.is_in_flight((record.topic, record.partition), record.offset, record._epoch)

    def process(
        self,
        handler: Callable[[Record[K, V]], object],
        *,
        concurrency: int = 1,
        ordered_by: OrderedBy = "key",
        attempts: int = 1,
        on_failure: OnFailure = "raise",
        retrying: Retrying = RETRYING,
    ) -> int:
        """Call a handler for each record, in several threads, with `auto_commit="ack"`.

        A record is committed only after its handler has returned, and after all earlier records. If
        a handler raises an exception, it is called again after a pause, up to `attempts` times.
        Then `on_failure` decides.

        Args:
            handler: Function that is called with each record.
            concurrency: Number of threads. Default: 1.
            ordered_by: Records that are handled in order: "key" those of a key, "partition" those
                of a partition, None no records. Default: "key".
            attempts: Number of calls for a record, at least 1. Default: 1.
            on_failure: What happens after the last attempt. "raise": `process` ends with the
                handler's exception. "skip": the record is logged and acknowledged. A `DeadLetter`:
                the record is copied to another topic, then acknowledged. `RetryTopics`: the record
                is copied to a retry topic, and handled again after a delay. Default: "raise".
            retrying: Pauses between attempts. Default: from 0.1 to 10 seconds.

        Returns:
            The number of handled records, after `stop()`, or, with `until`, once all records are
            handled.

        Raises:
            ConfigurationError: If an option is not valid, or if the consumer was opened with
                another `auto_commit`.
            Exception: The exception of a handler, with `on_failure="raise"`.
            LogError: If the consumer cannot read, or cannot commit.
        """
        rules = self.rules(concurrency, ordered_by, attempts, on_failure, retrying)
        return Processing(self, handler, rules).run()

    def rules(
        self,
        concurrency: int,
        ordered_by: OrderedBy,
        attempts: int,
        on_failure: OnFailure,
        retrying: Retrying,
    ) -> ProcessingRules:
        """Check the options of `process`.

        Args:
            concurrency: Number of threads.
            ordered_by: Records that are handled in order; None means no order.
            attempts: Number of calls for a record.
            on_failure: What happens after the last attempt.
            retrying: Pauses between attempts.

        Returns:
            The rules of one call of `process`.

        Raises:
            ConfigurationError: If an option is not valid, or if the consumer was opened with
                another `auto_commit`.
        """
        self._acknowledged()
        if isinstance(on_failure, RetryTopics):
            self._read_retries(on_failure)
        failures = Failures(on_failure, attempts, self._poison.open_producer, traced=self._traced)
        return ProcessingRules(concurrency, ordered_by, failures, retrying, self._traced)

    @abstractmethod
    def _read_retries(self, retries: RetryTopics) -> None:
        """Also read these topics, from where the group is. Raises `LogError`."""

    def _acknowledged(self) -> Acknowledged:
        if not isinstance(self._given, Acknowledged):
            raise ConfigurationError(
                f"the consumer of group {self.group!r} does not wait for acknowledgements",
                remedy='open it with auto_commit="ack"',
            )
        return self._given
