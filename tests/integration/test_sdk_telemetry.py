"""Spans and metrics of the SDK, by OpenTelemetry's conventions, on a real broker."""

import asyncio
import json
import subprocess
import sys
from itertools import count
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.trace import SpanKind, StatusCode

import bucketlog
from bucketlog import ConfigurationError, DeadLetter, Log, LogError, Record, RetryTopics, Topic
from bucketlog.client import telemetry_names as names
from tests.rigs.patience import PATIENCE_S
from tests.rigs.telemetry import (
    TelemetryRecorder,
    attributes,
    carried,
    described,
    links,
    parent_id,
    read,
    trace_id,
)

_numbers = count()
AT_ONCE = bucketlog.Retrying(first_pause_s=0.001, longest_pause_s=0.002)
NOBODY = "127.0.0.1:1"
FORK = """
import json, os, sys
import bucketlog
from tests.rigs.telemetry import TelemetryRecorder

bootstrap, name = sys.argv[1:]
topic = bucketlog.Topic(name, value=str)
recorded = TelemetryRecorder()
with bucketlog.connect(bootstrap, telemetry=recorded.option) as log:
    with log.producer(linger_ms=1000) as producer:
        producer.send(topic, "connects").result()  # a fork may copy the locks of a look-up of names
        producer.send(topic, "parent")
        read, write = os.pipe()
        if os.fork() == 0:
            with bucketlog.connect(bootstrap, telemetry=recorded.option) as own:
                with own.producer() as mine:
                    mine.send(topic, "child").result()
            os.write(write, json.dumps(recorded.names()).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            child = json.load(pipe)
        os.wait()
print(json.dumps([child, recorded.names()]))
"""


@pytest.fixture
def topic(log: Log) -> Topic[str, str]:
    """Of one partition."""
    made = Topic(f"traced-{next(_numbers)}", value=str, key=str)
    log.topics.create(made, partitions=1)
    return made


def sent(log: Log, topic: Topic[str, str], *values: str) -> None:
    with log.producer() as producer:
        for value in values:
            producer.send(topic, value)


def member(log: Log, topic: Topic[str, str], **options: Any) -> Any:
    settings = {"start": "earliest", "until": "end", "auto_commit": "ack", **options}
    return log.consumer(topic, group=topic.name, **settings)


# Consumers -------------------------------------------------------------------------------------


def test_context_travels_from_a_producer_to_a_handler(
    traced: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    token = context.attach(baggage.set_baggage("tenant", "acme"))
    sent(traced, topic, "one", "two")
    context.detach(token)
    seen: dict[str, Any] = {}

    def handle(record: Record[str, str]) -> None:
        seen[record.value] = trace.get_current_span().get_span_context(), baggage.get_all()
        sent(traced, answers, record.value)

    answers: Topic[str, str] = Topic(f"{topic.name}-answers", value=str, key=str)
    traced.topics.create(answers)
    with member(traced, topic) as consumer:
        assert consumer.process(handle) == 2
    sends = recorded.spans(f"send {topic.name}")
    spans = recorded.spans(f"process {topic.name}")
    assert [trace_id(span) for span in spans] == [trace_id(span) for span in sends]
    assert [parent_id(span) for span in spans] == [span.context.span_id for span in sends]
    for offset, (begin, span) in enumerate(zip(sends, spans, strict=True)):
        assert span.kind is SpanKind.CONSUMER
        assert links(span) == {begin.context.span_id}
        place = {names.PARTITION: "0", names.OFFSET: offset}
        group = {names.GROUP: topic.name}
        assert attributes(span) == described("process", "process", topic.name) | place | group
        assert seen[str(["one", "two"][offset])] == (span.context, {"tenant": "acme"})
    replies = recorded.spans(f"send {answers.name}")
    assert [parent_id(span) for span in replies] == [span.context.span_id for span in spans]
    group_only = {"messaging_consumer_group_name": topic.name}
    assert recorded.counted(names.CONSUMED_MESSAGES, **group_only) == 2
    assert recorded.counted(names.PROCESS_DURATION, **group_only) == 2
    assert not recorded.spans(f"receive {topic.name}"), "nobody asked for records"


async def test_context_travels_to_an_asynchronous_handler(
    log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    seen: dict[str, Any] = {}
    async with bucketlog.aconnect(log.bootstrap, telemetry=recorded.option) as alog:
        async with alog.producer() as producer:
            await asyncio.gather(*(producer.send(topic, str(number)) for number in range(20)))

        async def handle(record: Record[str, str]) -> None:
            before = trace.get_current_span().get_span_context()
            await asyncio.sleep(0)
            assert trace.get_current_span().get_span_context() == before
            seen[record.value] = before
            if record.value == "7":
                raise ValueError("seven")

        consumer = alog.consumer(
            topic, group=topic.name, start="earliest", until="end", auto_commit="ack"
        )
        async with consumer:
            done = await consumer.process(handle, concurrency=8, ordered_by=None, on_failure="skip")
        assert trace.get_current_span() is trace.INVALID_SPAN
    assert done == 20
    spans = recorded.spans(f"process {topic.name}")
    assert {span.context.span_id for span in spans} == {each.span_id for each in seen.values()}
    starts = {span.context.span_id for span in recorded.spans(f"send {topic.name}")}
    assert {parent_id(span) for span in spans} == starts
    (bad,) = [span for span in spans if span.status.status_code is StatusCode.ERROR]
    assert attributes(bad)[names.ERROR_TYPE] == "ValueError"
    assert bad.context == seen["7"]


def test_each_attempt_has_a_span_and_an_error(
    traced: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    sent(traced, topic, "one")

    def handle(record: Record[str, str]) -> None:
        if len(recorded.spans(f"process {topic.name}")) < 2:
            raise LogError("no", code="X_FAILED", kafka_code=1, retriable=False)

    with member(traced, topic) as consumer:
        assert consumer.process(handle, attempts=5, retrying=AT_ONCE) == 1
    first, second, third = recorded.spans(f"process {topic.name}")
    for span in (first, second):
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)[names.ERROR_TYPE] == "X_FAILED"
        assert [event.name for event in span.events] == ["exception"]
    assert third.status.status_code is StatusCode.UNSET
    assert recorded.counted(names.CONSUMED_MESSAGES) == 1, "one delivery"
    assert recorded.counted(names.PROCESS_DURATION, error_type="X_FAILED") == 2


def test_retry_topics_and_dead_letters_keep_the_context(
    traced: Log, log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    sent(traced, topic, "bad")
    sent(log, topic, "without a context")
    dead = f"{topic.name}-dead"
    log.topics.create(dead)
    retries = RetryTopics(f"{topic.name}-retry", delays_s=(0.05,), dead_letter=dead)
    headers: list[object] = []

    def handle(record: Record[str, str]) -> None:
        headers.append(record.headers)
        if len(headers) == 4:
            consumer.stop()
        raise ValueError("bad")

    with member(traced, topic, until=None) as consumer:
        consumer.process(handle, on_failure=retries)
    begin = recorded.spans(f"send {topic.name}")[0]
    names_of = (f"process {topic.name}", f"process {topic.name}-retry-1")
    asides = (f"send {topic.name}-retry-1", f"send {dead}")
    for name in (*names_of, *asides):
        assert trace_id(begin) in {trace_id(span) for span in recorded.spans(name)}, name
        of_trace = [span for span in recorded.spans(name) if trace_id(span) == trace_id(begin)]
        assert [parent_id(span) for span in of_trace] == [begin.context.span_id]
        assert [links(span) for span in of_trace] == [{begin.context.span_id}]
    assert headers.count(()) == 2, "a record without a context gets none on the way"
    context_header = ("traceparent", carried(begin))
    letters = read(log, Topic(dead))
    assert [context_header in record.headers for record in letters].count(True) == 1


def test_records_that_do_not_decode_keep_the_context(
    traced: Log, log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    sent(traced, topic, "text")
    log.topics.create(f"{topic.name}-dead")
    numbers = Topic(topic.name, value=int)
    aside = DeadLetter(f"{topic.name}-dead")
    with traced.consumer(numbers, start="earliest", until="end", on_error=aside) as consumer:
        assert list(consumer) == []
    begin = recorded.span(f"send {topic.name}")
    assert links(recorded.span(f"send {topic.name}-dead")) == {begin.context.span_id}
    reading = traced.consumer(numbers, start="earliest", until="end")
    with reading as consumer, pytest.raises(bucketlog.UnreadableRecordError):
        consumer.poll()
    assert attributes(recorded.span("receive"))[names.ERROR_TYPE] == "INVALID_DATA"


def test_polls_and_iteration_are_received(
    traced: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    sent(traced, topic, *map(str, range(5)))
    begins = [span.context.span_id for span in recorded.spans(f"send {topic.name}")]
    with traced.consumer(topic, start="earliest", until="end") as consumer:
        assert len(consumer.poll(2, PATIENCE_S)) == 2
        for record in consumer:
            with recorded.option.processing(record, group="g"):
                pass
        assert consumer.poll(1, 0) == []
    batch, *single = recorded.spans(f"receive {topic.name}")
    assert batch.kind is SpanKind.CLIENT
    counted = {names.PARTITION: "0", names.MESSAGE_COUNT: 2}
    assert attributes(batch) == described("receive", "receive", topic.name) | counted
    assert links(batch) == set(begins[:2])
    assert [links(span) for span in single] == [{each} for each in begins[2:]]
    assert [attributes(span)[names.OFFSET] for span in single] == [2, 3, 4]
    processed = recorded.spans(f"process {topic.name}")
    assert [parent_id(span) for span in processed] == begins[2:]
    assert recorded.counted(names.CONSUMED_MESSAGES) == 5


async def test_asynchronous_polls_and_iteration_are_received(
    log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    sent(log, topic, *map(str, range(5)))
    async with bucketlog.aconnect(log.bootstrap, telemetry=recorded.option) as alog:
        consumer = alog.consumer(topic, start="earliest", until="end")
        assert len(await consumer.poll(2, PATIENCE_S)) == 2
        assert len([record async for record in consumer]) == 3
    spans = recorded.spans(f"receive {topic.name}")
    assert [attributes(span).get(names.MESSAGE_COUNT) for span in spans] == [2, None, None, None]
    assert not any(span.links for span in spans)


def test_a_commit_has_a_span(
    traced: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    sent(traced, topic, "one")
    with member(traced, topic, auto_commit=False) as consumer:
        assert len(list(consumer)) == 1
        consumer.commit()
    span = recorded.span(f"commit {topic.name}")
    assert span.kind is SpanKind.CLIENT
    expected = described("commit", "settle", topic.name) | {names.GROUP: topic.name}
    assert attributes(span) == expected
    assert recorded.counted(names.OPERATION_DURATION, messaging_operation_name="commit") == 1


def test_a_transform_processes_in_the_context_of_its_records(
    traced: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    sent(traced, topic, "one")
    copies = Topic(f"{topic.name}-copies", value=str)
    traced.topics.create(copies)
    with member(traced, topic, auto_commit=False) as consumer:
        done = traced.transform(
            consumer,
            lambda record, transaction: transaction.send(copies, record.value),
            transactional_id=topic.name,
        )
    assert done == 1
    (begin,), (process,) = (
        recorded.spans(f"send {topic.name}"),
        recorded.spans(f"process {topic.name}"),
    )
    copy = recorded.span(f"send {copies.name}")
    assert parent_id(process) == begin.context.span_id
    assert parent_id(copy) == process.context.span_id


@pytest.mark.parametrize("value", [b"", b"00-zz", b"\xff" * 60, b"0" * 100_000, None])
def test_hostile_headers_mean_no_context(
    value: bytes | None, traced: Log, log: Log, recorded: TelemetryRecorder, topic: Topic[str, str]
) -> None:
    with log.producer() as producer:
        producer.send(topic, "one", headers={"traceparent": value, "tracestate": b"\x00,=,"})
    with member(traced, topic) as consumer:
        assert consumer.process(lambda record: None) == 1
    span = recorded.span(f"process {topic.name}")
    assert (parent_id(span), links(span)) == (None, set())


# Off, missing, forked --------------------------------------------------------------------------


def test_spans_of_the_parent_stay_with_the_parent(log: Log, topic: Topic[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORK, log.bootstrap, topic.name],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 0, ended.stderr
    before_the_fork, own = [f"send {topic.name}"] * 2
    assert json.loads(ended.stdout) == [[before_the_fork, own]] * 2


def test_without_the_option_nothing_is_recorded_or_imported(
    log: Log, topic: Topic[str, str]
) -> None:
    program = (
        "import sys, bucketlog; topic = bucketlog.Topic(sys.argv[2], value=str)\n"
        "with bucketlog.connect(sys.argv[1]) as log:\n"
        "    with log.producer() as producer: producer.send(topic, 'one').result()\n"
        "    options = dict(group='plain', start='earliest', until='end', auto_commit='ack')\n"
        "    with log.consumer(topic, **options) as consumer: consumer.process(print)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, log.bootstrap, topic.name],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "[]"
    assert read(log, topic)[0].headers == ()


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("opentelemetry", "opentelemetry.trace"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=r"opentelemetry.*bucketlog\[otel\]"):
        bucketlog.OpenTelemetry()


def test_another_option_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"telemetry=bucketlog\.OpenTelemetry"):
        Log(NOBODY, client_id="c", timeout_s=1.0, config=None, telemetry=True)  # type: ignore[arg-type] # wrong on purpose
