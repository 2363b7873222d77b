"""Spans and metrics of consumers: receiving, processing, and commits that wait for a broker.

The context in a record's headers is the parent of the span that processes the record. The span that
receives the record links to this context.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind

from bucketlog.client import telemetry_names as names
from bucketlog.client.telemetry_instruments import Attributes, Instruments, Stopwatch, note_error
from bucketlog.client.topic import Record
from bucketlog.log_format.errors import BucketlogError

R = TypeVar("R", bound="Sequence[Record[Any, Any]]")

RECEIVE, PROCESS, COMMIT, SETTLE = "receive", "process", "commit", "settle"
LINKS_MAX = 128
"""Largest number of links of a span. By default, the SDK of OpenTelemetry has the same limit."""


class TracedReads:
    """Recorder of one consumer."""

    def __init__(self, instruments: Instruments, client_id: str, group: str | None) -> None:
        self.instruments = instruments
        self._common: Attributes = {names.SYSTEM: names.KAFKA}
        if group is not None:
            self._common[names.GROUP] = group
        self._client: Attributes = {names.CLIENT_ID: client_id} if client_id else {}

    def receiving(self) -> "ReceiveSpan":
        """Begin a call that asks for records."""
        return ReceiveSpan(self)

    def received(self, poll: Callable[[], R]) -> R:
        """Call `poll`, and record the span of the call."""
        receiving = self.receiving()
        try:
            records = poll()
        except BucketlogError as error:
            receiving.fail(error)
            raise
        receiving.end(records)
        return records

    def processing(self, record: Record[Any, Any], *, attempt: int | None) -> "ProcessSpan":
        """Make a context manager for the processing of a record. `attempt` is the number of this
        call of a handler, or None if the record was counted when it was received."""
        return ProcessSpan(self, record, attempt)

    @contextmanager
    def continuing(self, record: Record[Any, Any]) -> Iterator[None]:
        """Make the context of the record's sender current in the block."""
        carrier = self.instruments.carrier_of(record.headers)
        token = contexts.attach(self.instruments.context_of(carrier, contexts.get_current()))
        try:
            yield
        finally:
            contexts.detach(token)

    @contextmanager
    def committing(self, topics: Collection[str]) -> Iterator[None]:
        """Record the span of a block that commits offsets of these topics."""
        attributes = self.attributes(COMMIT, SETTLE, topics)
        timer = Stopwatch()
        with self.instruments.tracer.start_as_current_span(
            _span_name(COMMIT, topics),
            kind=SpanKind.CLIENT,
            attributes={**attributes, **self._client},
            start_time=timer.began_ns,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                attributes[names.ERROR_TYPE] = note_error(span, error)
                raise
            finally:
                self.instruments.operation_duration.record(timer.elapsed_s(), attributes)

    def attributes(self, name: str, kind: str, topics: Collection[str]) -> Attributes:
        """The attributes of metrics and spans. They name a topic if there is only one."""
        found: Attributes = {
            **self._common,
            names.OPERATION_NAME: name,
            names.OPERATION_TYPE: kind,
        }
        if len(topics) == 1:
            found[names.DESTINATION] = next(iter(topics))
        return found

    def span_attributes(self, attributes: Attributes, **more: str | int | bool) -> Attributes:
        return {**attributes, **self._client, **more}


class ReceiveSpan:
    """A call that asks for records. A call that returns no records has no span."""

    def __init__(self, reads: TracedReads) -> None:
        self._reads = reads
        self._timer = Stopwatch()

    def end_one(self, record: Record[Any, Any]) -> None:
        """Record the span of a step of an iteration."""
        self.end((record,), is_batch=False)

    def end(self, records: Sequence[Record[Any, Any]], *, is_batch: bool = True) -> None:
        """Record the span of a call that returned these records."""
        if not records:
            return
        places = {(record.topic, record.partition) for record in records}
        topics = {topic for topic, _ in places}
        attributes = self._reads.attributes(RECEIVE, RECEIVE, topics)
        more: Attributes = {}
        if len(places) == 1:
            more[names.PARTITION] = str(records[0].partition)
        if is_batch:
            more[names.MESSAGE_COUNT] = len(records)
        else:
            more[names.OFFSET] = records[0].offset
        self._record(topics, attributes, more, _links(self._reads.instruments, records))
        counts: dict[str, int] = {}
        for record in records:
            counts[record.topic] = counts.get(record.topic, 0) + 1
        for topic, count in counts.items():
            of_topic = self._reads.attributes(RECEIVE, RECEIVE, (topic,))
            self._reads.instruments.consumed.add(count, of_topic)

    def fail(self, error: BaseException) -> None:
        """Record the span of a call that raised an error."""
        self._record((), self._reads.attributes(RECEIVE, RECEIVE, ()), {}, [], error)

    def _record(
        self,
        topics: Collection[str],
        attributes: Attributes,
        more: Attributes,
        links: list[Link],
        error: BaseException | None = None,
    ) -> None:
        duration_s = self._timer.elapsed_s()
        span = self._reads.instruments.tracer.start_span(
            _span_name(RECEIVE, topics),
            kind=SpanKind.CLIENT,
            attributes=self._reads.span_attributes(attributes, **more),
            links=links,
            start_time=self._timer.began_ns,
        )
        if error is not None:
            attributes[names.ERROR_TYPE] = note_error(span, error)
        span.end()
        self._reads.instruments.operation_duration.record(duration_s, attributes)


class ProcessSpan:
    """The span of the processing of one record, which is current in the block. It records
    an exception of the block, or the error that `fail` noted."""

    def __init__(self, reads: TracedReads, record: Record[Any, Any], attempt: int | None) -> None:
        self._reads = reads
        self._record = record
        self._attempt = attempt
        self._error: BaseException | None = None

    def fail(self, error: BaseException | None) -> None:
        """Note the error that ended the processing; None means that there was no error."""
        self._error = error

    def __enter__(self) -> Self:
        reads, record = self._reads, self._record
        instruments = reads.instruments
        ambient = contexts.get_current()
        carrier = instruments.carrier_of(record.headers)
        parent = instruments.context_of(carrier, ambient)
        self._attributes = reads.attributes(PROCESS, PROCESS, (record.topic,))
        more: Attributes = {names.PARTITION: str(record.partition), names.OFFSET: record.offset}
        if record.is_tombstone:
            more[names.TOMBSTONE] = True
        self._timer = Stopwatch()
        self._span = instruments.tracer.start_span(
            f"{PROCESS} {record.topic}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=reads.span_attributes(self._attributes, **more),
            links=_links_of(instruments.creation_of(carrier), ambient),
            start_time=self._timer.began_ns,
        )
        self._token = contexts.attach(trace.set_span_in_context(self._span, parent))
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        instruments = self._reads.instruments
        duration_s = self._timer.elapsed_s()
        error = exc if exc is not None else self._error
        attributes = self._attributes
        if self._attempt == 1:
            instruments.consumed.add(1, attributes)
        if error is not None:
            attributes = {**attributes, names.ERROR_TYPE: note_error(self._span, error)}
        instruments.process_duration.record(duration_s, attributes)
        contexts.detach(self._token)
        self._span.end()


def _span_name(operation: str, topics: Collection[str]) -> str:
    return f"{operation} {next(iter(topics))}" if len(topics) == 1 else operation


def _links_of(creation: SpanContext | None, ambient: Context) -> list[Link]:
    """Links to the span that created the record, and to the span that was current before."""
    if creation is None:
        return []
    current = trace.get_current_span(ambient).get_span_context()
    return [Link(creation), *([Link(current)] if current.is_valid else [])]


def _links(instruments: Instruments, records: Sequence[Record[Any, Any]]) -> list[Link]:
    """Links to the spans that created the records. Records that were sent together share a link."""
    seen: dict[tuple[tuple[str, str], ...], None] = {}
    links: list[Link] = []
    for record in records:
        carrier = instruments.carrier_of(record.headers)
        key = tuple(carrier.items())
        if not carrier or key in seen:
            continue
        seen[key] = None
        creation = instruments.creation_of(carrier)
        if creation is not None:
            links.append(Link(creation))
        if len(seen) >= LINKS_MAX:
            break
    return links
