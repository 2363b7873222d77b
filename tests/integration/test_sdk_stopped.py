"""The SDK's producers and logs when they are stopped: Ctrl-C, a cancelled task, a timeout."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import count
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

import bucketlog
from bucketlog import Log, Topic
from bucketlog.client.patience import TELL_AFTER_S, Patience
from bucketlog.client.repeated_lines import RepeatedLines
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError, LogError
from tests.rigs.patience import PATIENCE_S, Deadline, let_pass_async

WORDS = Topic("words", value=str)
GIVEN_UP = "5 records were given up before they were acknowledged"
DELIVERY_S = 10 * PATIENCE_S
"""A producer that gives up nothing would wait for as long, and the test would fail."""

_numbers = count()


def nowhere() -> Log:
    """A log whose brokers are gone."""
    return Log("127.0.0.1:1", client_id="stopped", timeout_s=1.0, config=None)


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def in_the_body(log: Log) -> None:
    with log.producer(delivery_timeout_s=DELIVERY_S) as producer:
        for at in range(5):
            producer.send(WORDS, str(at))
        raise KeyboardInterrupt


def at_the_end(log: Log) -> None:
    with ExitStack() as after, log.producer(delivery_timeout_s=DELIVERY_S) as producer:
        for at in range(5):
            producer.send(WORDS, str(at))
        after.enter_context(ctrl_c_after(0.3))


def after_a_failure(log: Log) -> None:
    with ExitStack() as after, log.producer(delivery_timeout_s=DELIVERY_S) as producer:
        producer.send_many(WORDS, map(str, range(5)))
        after.enter_context(ctrl_c_after(0.3))
        raise ZeroDivisionError


def by_the_log(log: Log) -> None:
    with log:
        producer = log.producer(delivery_timeout_s=DELIVERY_S)
        producer.send_many(WORDS, map(str, range(5)))
        raise KeyboardInterrupt


@pytest.mark.parametrize("run", [in_the_body, at_the_end, after_a_failure, by_the_log])
def test_ctrl_c_gives_up_at_once_and_says_how_much(run: Callable[[Log], None]) -> None:
    deadline = Deadline("it waits for its delivery timeout")
    with pytest.raises(KeyboardInterrupt) as caught:
        run(nowhere())
    assert caught.value.__notes__ == [GIVEN_UP]
    deadline.check()


def test_what_is_given_up_tells_whoever_asks() -> None:
    with suppress(KeyboardInterrupt), nowhere().producer() as producer:
        delivery = producer.send(WORDS, "one")
        raise KeyboardInterrupt
    with pytest.raises(LogError, match="stopped before the record was acknowledged") as caught:
        delivery.result()
    assert caught.value.code.startswith("PURGE")


@pytest.mark.parametrize("in_the_body", [True, False], ids=["in the body", "at the end"])
async def test_a_cancelled_block_gives_up_once(*, in_the_body: bool) -> None:
    """The log's own end finds the producer closed."""
    deadline = Deadline("it waits for its delivery timeout")
    sent = asyncio.Event()
    nobody = bucketlog.aconnect("127.0.0.1:1")
    stops: list[BaseException] = []

    async def work() -> None:
        try:
            async with nobody.producer(delivery_timeout_s=DELIVERY_S) as producer:
                for at in range(5):
                    producer.send(WORDS, str(at))
                sent.set()
                if in_the_body:
                    await asyncio.Event().wait()
        except asyncio.CancelledError as stop:
            await nobody.__aexit__(type(stop), stop, None)
            stops.append(stop)
            raise

    task = asyncio.create_task(work())
    await sent.wait()  # the task runs on until it waits, in the body or at its end
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [stop.__notes__ for stop in stops] == [[GIVEN_UP]]
    deadline.check()


async def a_copy(broker: EmbeddedCluster, topic: Topic[Any, str], *, is_closed: bool) -> None:
    async with bucketlog.aconnect(broker.bootstrap) as log, log.producer() as producer:
        consumer = log.consumer(topic, group=topic.name, start="earliest")
        async with consumer if is_closed else nullcontext():
            async for batch in consumer.batches(10):
                await producer.send_many(topic, (record.value for record in batch))


@pytest.mark.parametrize("is_closed", [False, True], ids=["by the log", "by its own block"])
async def test_a_stopped_copy_raises_what_stopped_it(
    log: Log, broker: EmbeddedCluster, *, is_closed: bool
) -> None:
    topic = Topic(f"stopped-{next(_numbers)}", value=str)
    log.topics.create(topic)
    task = asyncio.create_task(a_copy(broker, topic, is_closed=is_closed))
    await let_pass_async(0.7)  # it may join, read or leave when it is stopped
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.7):
            await a_copy(broker, topic, is_closed=is_closed)
    assert log.groups.describe(topic.name).members == ()


async def test_no_close_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = bucketlog.aconnect("127.0.0.1:1")
    first, second = nobody.producer(), nobody.producer()

    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(first), "__aexit__", fail)
    consumers_closed = []
    monkeypatch.setattr(nobody._log, "close", lambda: consumers_closed.append(1))
    with pytest.raises(ZeroDivisionError):
        await nobody.close()
    assert consumers_closed
    monkeypatch.undo()
    await first.close()
    await second.close()

    waiting = nowhere()
    opened = [waiting.producer(), waiting.producer()]
    for producer in opened:
        producer.send(WORDS, "one")
    with ctrl_c_after(0.3), pytest.raises(KeyboardInterrupt):
        waiting.close()
    for producer in opened:
        with pytest.raises(ConfigurationError, match="closed"):
            producer.poll()


async def test_a_closed_producer_says_so() -> None:
    producer = nowhere().producer()
    producer.close()
    producer.close()
    asking: list[Callable[[], object]] = [
        lambda: producer.send(WORDS, "one"),
        lambda: producer.send_many(WORDS, ["one"]),
        producer.flush,
        producer.poll,
    ]
    for ask in asking:
        with pytest.raises(ConfigurationError, match="the producer is closed"):
            ask()
    assert len(producer) == 0
    nobody = bucketlog.aconnect("127.0.0.1:1").producer()
    await nobody.close()
    await nobody.close()
    with pytest.raises(ConfigurationError, match="the producer is closed"):
        nobody.send(WORDS, "one")
    with pytest.raises(ConfigurationError, match="the producer is closed"):
        await nobody.send_many(WORDS, ["one"])
    with pytest.raises(ConfigurationError, match="the producer is closed"):
        await nobody.flush()


def test_wrong_options_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'brotli'.*zstd"):
        nowhere().producer(compression="brotli")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ConfigurationError, match="linger_ms is -1"):
        nowhere().producer(linger_ms=-1)


def test_a_long_wait_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    patience = Patience(120.0, now_s=0.0)
    with caplog.at_level(logging.WARNING, "bucketlog.producer"):
        patience.look(9, 0.1)
        patience.look(5, 3.0)  # some were acknowledged
        patience.look(5, 3.0 + TELL_AFTER_S - 0.1)
        assert caplog.messages == []
        for later_s in (0.0, 1.0, 60.0):
            patience.look(5, 3.0 + TELL_AFTER_S + later_s)
    assert [record.name for record in caplog.records] == ["bucketlog.producer"]
    assert "waits for 5 records" in caplog.text
    assert "at most 112 s" in caplog.text


async def test_the_end_of_a_block_tells_what_it_waits_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketlog.client.patience.TELL_AFTER_S", 0.3)

    def fail() -> None:
        with nowhere().producer(delivery_timeout_s=1.0) as producer:
            producer.send(WORDS, "one")
            raise ZeroDivisionError

    async def fail_later() -> None:
        async with bucketlog.aconnect("127.0.0.1:1").producer(delivery_timeout_s=1.0) as producer:
            producer.send(WORDS, "one")
            raise ZeroDivisionError

    for failing in (asyncio.to_thread(fail), fail_later()):
        caplog.clear()
        with pytest.raises(ZeroDivisionError) as caught:
            await failing
        assert "was not delivered" in caught.value.__notes__[0]
        told = [each for each in caplog.records if each.name == "bucketlog.producer"]
        assert len(told) == 1
        assert "waits for 1 records" in told[0].getMessage()


def test_an_outage_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    lines = next(
        each
        for each in logging.getLogger("bucketlog.kafka").filters
        if isinstance(each, RepeatedLines)
    )
    lines._lines.clear()
    gone = nowhere()
    with (
        caplog.at_level(logging.ERROR, "bucketlog.kafka"),
        suppress(KeyboardInterrupt),
        gone.producer() as producer,
        gone.producer() as other,
    ):
        deadline = Deadline("no line was left out")
        while not sum(line.left_out for line in lines._lines.values()):
            deadline.check()
            producer.poll(0.1)
            other.poll(0.1)
        raise KeyboardInterrupt
    told = [each.getMessage() for each in caplog.records if "Connect to" in each.getMessage()]
    assert len(told) == 1
    assert sum(line.left_out for line in lines._lines.values()) >= 1


class RaisesOnce:
    """librdkafka's producer, whose next poll or flush raises, as after a fatal error."""

    def __init__(self, kafka: Any) -> None:
        self._kafka = kafka
        self.raised = False

    def __getattr__(self, verb: str) -> Any:
        if verb in ("poll", "flush") and not self.raised:
            return self._raise
        return getattr(self._kafka, verb)

    def __len__(self) -> int:
        return len(self._kafka)

    def _raise(self, timeout_s: float = -1) -> int:
        self.raised = True
        raise KafkaException(KafkaError(KafkaError._FATAL))


def test_an_error_of_the_whole_producer_leaves_each_record_its_fate(
    broker: EmbeddedCluster, log: Log
) -> None:
    topic = Topic(f"stopped-{next(_numbers)}", value=str)
    log.topics.create(topic)
    with log.producer() as producer:
        failing: Any = RaisesOnce(producer._outbox.kafka)
        producer._outbox.kafka = failing
        assert producer.send(topic, "a").result().offset == 0
        assert failing.raised

    async def run() -> int:
        async with bucketlog.aconnect(broker.bootstrap) as alog:
            producer = alog.producer()
            failing: Any = RaisesOnce(producer._outbox.kafka)
            producer._outbox.kafka = failing
            offset = (await asyncio.wait_for(producer.send(topic, "b"), PATIENCE_S)).offset
            await asyncio.wait_for(producer.close(), PATIENCE_S)
            assert failing.raised
            return offset

    assert asyncio.run(run()) == 1
