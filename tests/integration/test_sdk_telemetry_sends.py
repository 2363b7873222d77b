"""Spans and metrics of producers, by OpenTelemetry's conventions, on a real broker."""

from collections.abc import Iterator
from itertools import count

import pytest
from opentelemetry.trace import SpanKind, StatusCode

import bucketlog
from bucketlog import ConfigurationError, Log, LogError, Topic
from bucketlog.client import telemetry_names as names
from tests.rigs.telemetry import (
    TelemetryRecorder,
    attributes,
    carried,
    described,
    links,
    parent_id,
    read,
)

_numbers = count()
NOBODY = "127.0.0.1:1"


@pytest.fixture
def topic(log: Log) -> Topic[str, str]:
    """Of one partition."""
    made = Topic(f"sent-{next(_numbers)}", value=str, key=str)
    log.topics.create(made, partitions=1)
    return made


# Producers -------------------------------------------------------------------------------------


def test_a_send_has_a_span_and_the_record_its_context(
    traced: Log, log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    tracer = recorded.tracers.get_tracer("test")
    with traced.producer() as producer, tracer.start_as_current_span("request") as request:
        producer.send(topic, "one", headers={"own": "kept"}).result()
        producer.send(topic, None, key="k", partition=0).result()
    first, second = recorded.spans(f"send {topic.name}")
    assert first.kind is SpanKind.PRODUCER
    assert first.status.status_code is StatusCode.UNSET
    assert parent_id(first) == request.get_span_context().span_id
    expected = described("send", "send", topic.name)
    place = {names.PARTITION: "0", names.OFFSET: 0}
    assert attributes(first) == expected | place
    assert attributes(second) == expected | place | {names.OFFSET: 1, names.TOMBSTONE: True}
    assert first.instrumentation_scope is not None
    assert first.instrumentation_scope.schema_url == names.SCHEMA_URL
    record, _ = read(log, topic)
    assert record.headers[0] == ("own", b"kept")
    (name, value) = record.headers[1]
    assert name == "traceparent"
    assert value == carried(first)
    point = {"messaging_destination_name": topic.name, "messaging_operation_name": "send"}
    assert recorded.counted(names.SENT_MESSAGES, **point) == 2
    assert recorded.counted(names.OPERATION_DURATION, **point) == 2
    (duration, *_) = recorded.points(names.OPERATION_DURATION)
    assert duration.explicit_bounds == names.DURATION_BOUNDS_S


def test_a_context_in_the_headers_is_kept(
    traced: Log, log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    mine = {"traceparent": f"00-{7:032x}-{9:016x}-01"}
    with traced.producer() as producer:
        producer.send(topic, "one", headers=mine).result()
        producer.send(topic, "two", headers={"traceparent": "nonsense"}).result()
    assert read(log, topic)[0].headers == (("traceparent", mine["traceparent"].encode()),)
    first, second = recorded.spans(f"send {topic.name}")
    assert links(first) == {9}
    assert links(second) == set()


def test_many_records_share_a_span(
    traced: Log, log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    with traced.producer() as producer:
        assert producer.send_many(topic, map(str, range(2500)), key=lambda value: value) == 2500
        producer.flush()
        span = recorded.span(f"send {topic.name}")
        assert producer.send_many(topic, []) == 0
    assert attributes(span)[names.MESSAGE_COUNT] == 2500
    assert recorded.counted(names.SENT_MESSAGES, messaging_destination_name=topic.name) == 2500
    records = read(log, topic)
    assert [(record.key, record.value) for record in records] == [
        (str(number), str(number)) for number in range(2500)
    ]
    assert {record.headers for record in records} == {records[0].headers}
    assert b"%016x" % span.context.span_id in (records[0].headers[0][1] or b"")


def test_a_failure_is_recorded_once(recorded: TelemetryRecorder) -> None:
    log = Log(NOBODY, client_id="shop", timeout_s=1.0, config=None, telemetry=recorded.option)
    topic = Topic("nowhere", value=str)
    with log.producer(delivery_timeout_s=0.05, linger_ms=0) as producer:
        with pytest.raises(LogError) as failure:
            producer.send(topic, "one").result()
        producer.send_many(topic, ["two", "three"])
        with pytest.raises(LogError):
            producer.flush()
    for span in recorded.spans("send nowhere"):
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)[names.ERROR_TYPE] == failure.value.code
        assert [event.name for event in span.events] == ["exception"]
    assert len(recorded.spans("send nowhere")) == 2
    assert recorded.counted(names.SENT_MESSAGES, error_type=failure.value.code) == 3


def test_a_call_that_fails_ends_its_span(
    traced: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    def values() -> Iterator[str]:
        yield "one"
        raise ValueError("broken")

    with traced.producer() as producer, pytest.raises(ValueError, match="broken"):
        producer.send_many(topic, values())
    assert attributes(recorded.span(f"send {topic.name}"))[names.ERROR_TYPE] == "ValueError"
    with traced.transaction("closed") as transaction:
        pass
    with pytest.raises(ConfigurationError):
        transaction.send(topic, "late")
    assert len(recorded.spans(f"send {topic.name}")) == 2


async def test_asynchronous_sends(
    log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    tracer = recorded.tracers.get_tracer("test")
    async with bucketlog.aconnect(
        log.bootstrap, client_id="shop", telemetry=recorded.option
    ) as alog:
        async with alog.producer() as producer:
            with tracer.start_as_current_span("request") as request:
                await producer.send(topic, "one")
                assert await producer.send_many(topic, ["two", "three"]) == 2
            with pytest.raises(bucketlog.InvalidDataError):
                producer.send(topic, 4)  # type: ignore[misc] # wrong on purpose
        async with alog.transaction("traced-async") as transaction:
            await transaction.send(topic, "four")
            await transaction.send_many(topic, ["five"])
    spans = recorded.spans(f"send {topic.name}")
    assert [attributes(span).get(names.MESSAGE_COUNT, 1) for span in spans] == [1, 2, 1, 1, 1]
    assert {parent_id(span) for span in spans[:2]} == {request.get_span_context().span_id}
    assert attributes(spans[2])[names.ERROR_TYPE] == "INVALID_DATA"
    assert recorded.counted(names.SENT_MESSAGES) == 5
    assert all(len(record.headers) == 1 for record in read(log, topic))
