"""Spans and metrics of producers: from the call of `send` to the report of the record.

Invariants: each span ends once, with the report of its last record, or when the call fails. A
context that the caller has put into the headers is kept: the span then links to it.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from confluent_kafka import KafkaError, Message
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from bucketlog.client import telemetry_names as names
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.sending import NOW_MS, Encoded, Report, encoded_chunks
from bucketlog.client.telemetry_instruments import Attributes, Instruments, Stopwatch, note_error
from bucketlog.client.topic import HeaderValue, Topic, check_topic
from bucketlog.log_format.errors import LogError

if TYPE_CHECKING:
    from bucketlog.client.waiting_sends import WaitingSends

K = TypeVar("K")
V = TypeVar("V")

OPERATION = "send"


class TracedSends:
    """Recorder of one producer. It adds headers to records if `injects` is True."""

    def __init__(self, instruments: Instruments, client_id: str, *, injects: bool) -> None:
        self.instruments = instruments
        self.client_id = client_id
        self.injects = injects

    def one(self, topic: str, partition: int | None, *, is_tombstone: bool) -> "SendSpan":
        """Begin the span of one record. `partition` is the argument of `send`."""
        more: Attributes = {}
        if partition is not None:
            more[names.PARTITION] = str(partition)
        if is_tombstone:
            more[names.TOMBSTONE] = True
        return SendSpan(self, topic, more)

    @contextmanager
    def sending(self, record: Encoded, report: Report) -> Iterator[tuple[Encoded, Report]]:
        """Give the block the record with its context, and a report that also ends the span. An
        exception of the block ends the span, too."""
        topic, value, _, partition, _, _ = record
        span = self.one(topic, None if partition < 0 else partition, is_tombstone=value is None)
        try:
            yield span.injected(record), span.reporting(report)
        except BaseException as error:
            span.failed(error)
            raise

    def many(self, topic: Topic[Any, Any]) -> "SendManySpan":
        """Begin the span of many records: a context manager for a block that queues them."""
        check_topic(topic)
        return SendManySpan(self, topic.name)

    def send_many(
        self,
        waiting: "WaitingSends",
        report: Report,
        topic: Topic[K, V],
        values: Iterable[V],
        key: Callable[[V], K] | None,
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """Queue records one by one, because librdkafka takes headers only with single records.
        `check` is called for each chunk, before its records are queued. Returns the number of
        queued records."""
        with self.many(topic) as batch:
            ending = batch.reporting(report)
            for messages in encoded_chunks(topic, values, key):
                check()
                for record in batch.records(messages):
                    waiting.put(record, ending)
        return batch.queued


class _ProducerSpan:
    """The span of a send, with the context that its records carry."""

    def __init__(self, sends: TracedSends, topic: str, more: Attributes) -> None:
        self._instruments = sends.instruments
        self._injects = sends.injects
        self._timer = Stopwatch()
        self._attributes: Attributes = {
            names.SYSTEM: names.KAFKA,
            names.OPERATION_NAME: OPERATION,
            names.OPERATION_TYPE: OPERATION,
            names.DESTINATION: topic,
        }
        """The attributes of the metrics."""
        self._span = self._instruments.tracer.start_span(
            f"{OPERATION} {topic}",
            kind=SpanKind.PRODUCER,
            attributes={**self._attributes, names.CLIENT_ID: sends.client_id, **more},
            start_time=self._timer.began_ns,
        )
        self._context = trace.set_span_in_context(self._span)
        """The caller's context with the span. Records carry it; exemplars of metrics name it."""
        self._ending = threading.Lock()
        self._is_ended = False

    def _headers(self) -> list[tuple[str, str]]:
        return self._instruments.headers_for(self._context) if self._injects else []

    def _end(self, error: BaseException | None) -> bool:
        """End the span. Returns False if the span had ended before."""
        with self._ending:
            if self._is_ended:
                return False
            self._is_ended = True
        attributes = self._attributes
        if error is not None:
            attributes = {**attributes, names.ERROR_TYPE: note_error(self._span, error)}
        duration_s = self._timer.elapsed_s()
        self._span.end()
        self._instruments.operation_duration.record(duration_s, attributes, self._context)
        return True


class SendSpan(_ProducerSpan):
    """The span of one record."""

    def injected(self, record: Encoded) -> Encoded:
        """The record with headers for the span's context, unless the record has a context."""
        topic, value, key, partition, headers, timestamp_ms = record
        carrier = self._instruments.carrier_of(headers or ())
        creation = self._instruments.creation_of(carrier)
        if creation is not None:
            self._span.add_link(creation)
            return record
        added = self._headers()
        if not added:
            return record
        return topic, value, key, partition, [*(headers or ()), *added], timestamp_ms

    def reporting(self, report: Report) -> Report:
        """A function that ends the span, and then calls `report`."""

        def end(error: KafkaError | None, message: Message) -> None:
            self.reported(error, message)
            report(error, message)

        return end

    def reported(self, error: KafkaError | None, message: Message) -> None:
        """End the span with the outcome."""
        failure: LogError | None = None
        attributes = self._attributes
        if error is None:
            self._span.set_attribute(names.PARTITION, str(message.partition() or 0))
            self._span.set_attribute(names.OFFSET, message.offset() or 0)
        else:
            failure = log_error(error, "the record was not delivered")
            attributes = {**attributes, names.ERROR_TYPE: failure.code}
        if self._end(failure):
            self._instruments.sent.add(1, attributes, self._context)

    def failed(self, error: BaseException) -> None:
        """End the span of a record that was never queued."""
        self._end(error)


class SendManySpan(_ProducerSpan):
    """The span of many records, all of which carry its context. This is a context manager: at the
    end of the block, all records are queued."""

    def __init__(self, sends: TracedSends, topic: str) -> None:
        super().__init__(sends, topic, {})
        self.queued = 0
        self._topic = topic
        self._added = self._headers()
        self._lock = threading.Lock()
        self._reported = 0
        self._failures: Counter[str] = Counter()
        self._first: BaseException | None = None
        self._is_complete = False

    def records(self, messages: list[dict[str, Any]]) -> Iterator[Encoded]:
        """The records of a chunk, with headers. A record counts after the caller has taken it."""
        headers: list[tuple[str, HeaderValue]] | None = [*self._added] or None
        for message in messages:
            yield self._topic, message["value"], message.get("key"), -1, headers, NOW_MS
            self.queued += 1

    def reporting(self, report: Report) -> Report:
        """A function that counts the report for the span, and then calls `report`."""

        def count(error: KafkaError | None, message: Message) -> None:
            self._note(error)
            report(error, message)

        return count

    def _note(self, error: KafkaError | None) -> None:
        with self._lock:
            self._reported += 1
            if error is not None:
                failure = log_error(error, "a record was not delivered")
                self._first = self._first or failure
                self._failures[failure.code] += 1
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            is_last = self._is_complete and self._reported >= self.queued
        if is_last:
            self._end_with(self._first)

    def _end_with(self, error: BaseException | None) -> None:
        self._span.set_attribute(names.MESSAGE_COUNT, self.queued)
        if not self._end(error):
            return
        failed = sum(self._failures.values())
        sent = self._instruments.sent
        if self.queued > failed:
            sent.add(self.queued - failed, self._attributes, self._context)
        for kind, number in self._failures.items():
            sent.add(number, {**self._attributes, names.ERROR_TYPE: kind}, self._context)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is not None:
            self._end_with(exc)
            return
        with self._lock:
            self._is_complete = True
        self._finish()
