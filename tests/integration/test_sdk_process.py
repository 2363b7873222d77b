"""Acknowledgements, and functions that are called for each record in many threads or tasks."""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random
from typing import Any

import pytest

import bucketlog
from bucketlog import DeadLetter, GroupConsumer, Log, Record, Topic
from bucketlog.client.processing import Retrying
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from tests.rigs.group_members import fill
from tests.rigs.patience import PATIENCE_S, eventually

pytestmark = pytest.mark.long

_numbers = count()
AT_ONCE = Retrying(first_pause_s=0.001, longest_pause_s=0.002)
Text = Record[bytes, str]


@pytest.fixture
def name() -> str:
    return f"process-{next(_numbers)}"


def committed(log: Log, group: str) -> list[int | None]:
    return [position.committed for position in log.groups.describe(group).positions]


def reader(log: Log, topic: Topic[bytes, str], **options: Any) -> GroupConsumer[bytes, str]:
    settings = {"start": "earliest", "until": "end", "auto_commit": "ack", **options}
    return log.consumer(topic, group=topic.name, **settings)


def keyed(log: Log, name: str, records: int, keys: int) -> Topic[bytes, str]:
    topic = Topic(name, value=str)
    log.topics.ensure(topic, partitions=4)
    with log.producer() as producer:
        for at in range(records):
            producer.send(topic, str(at), key=b"key-%d" % (at % keys))
    return topic


# Acknowledgements ------------------------------------------------------------------------------


def test_an_offset_is_committed_once_all_before_it_are_done(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with reader(log, topic) as consumer:
        records = list(consumer)
        for at in (2, 0, 1, 5):
            assert consumer.done(records[at])
        assert not consumer.done(records[0]), "it is acknowledged already"
        consumer.commit()
        assert committed(log, name) == [3]
        assert consumer.done(records[3])
        assert consumer.done(records[4])
        assert consumer.is_in_flight(records[6])
    assert committed(log, name) == [6]
    with reader(log, topic) as consumer:
        assert [record.offset for record in consumer] == [6, 7, 8, 9]
    assert committed(log, name) == [6]


def test_nothing_is_committed_by_reading_or_leaving(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 5)
    with reader(log, topic) as consumer:
        assert len(list(consumer)) == 5
    with reader(log, topic) as consumer:
        assert len(list(consumer)) == 5


def test_records_in_flight_are_bounded(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 20)
    with reader(log, topic, in_flight_records_max=4) as consumer:
        held = consumer.poll(10, PATIENCE_S)
        assert [record.offset for record in held] == [0, 1, 2, 3]
        assert consumer.poll(10, 0) == []
        waiting = threading.Timer(0.3, consumer.done, [held[3]])
        waiting.start()
        assert next(consumer).offset == 4, "waits for the timer"
        waiting.join()
        for record in held[:3]:
            consumer.done(record)
        assert [record.offset for record in consumer.poll(10, PATIENCE_S)] == [5, 6, 7]


def test_stop_ends_a_wait_for_room(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 5)
    with reader(log, topic, in_flight_records_max=1) as consumer:
        next(consumer)
        threading.Timer(0.2, consumer.stop).start()
        assert list(consumer) == []


def test_records_that_do_not_decode_do_not_hold_up_commits(log: Log, name: str) -> None:
    raw = Topic(name)
    log.topics.create(raw)
    with log.producer() as producer:
        for value in (b"1", b"x", b"3", b"y"):
            producer.send(raw, value)
    numbers = Topic(name, value=int)
    options: dict[str, Any] = {"group": name, "start": "earliest", "auto_commit": "ack"}
    with log.consumer(numbers, until="end", on_error="skip", **options) as consumer:
        for record in consumer:
            consumer.done(record)
    assert committed(log, name) == [4]
    options["group"] = other = f"{name}-raises"
    with log.consumer(numbers, until="end", **options) as consumer:
        for _ in range(2):
            consumer.done(next(consumer))
            with pytest.raises(InvalidDataError):
                next(consumer)
        assert list(consumer) == []
    assert committed(log, other) == [4]


def test_done_needs_acknowledgements(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 1)
    with log.consumer(topic, group=name, start="earliest") as consumer:
        record = next(consumer)
        with pytest.raises(ConfigurationError, match='auto_commit="ack"'):
            consumer.done(record)
        with pytest.raises(ConfigurationError, match='auto_commit="ack"'):
            consumer.process(print)
    with pytest.raises(ConfigurationError, match='it may be "ack", True or False'):
        log.consumer(topic, group=name, auto_commit="acks")  # type: ignore[call-overload]  # a wrong word is what is tested


# Processing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 8])
def test_each_record_is_handled_once_and_keys_keep_their_order(
    log: Log, name: str, concurrency: int
) -> None:
    topic = keyed(log, name, 600, 13)
    seen: dict[bytes | None, list[int]] = defaultdict(list)
    active: Counter[bytes | None] = Counter()
    random, never = Random(1), threading.Event()

    def handle(record: Text) -> None:
        active[record.key] += 1
        assert active[record.key] == 1, "one at a time of each key"
        never.wait(random.random() / 500)  # the other threads run
        seen[record.key].append(int(record.value))
        active[record.key] -= 1

    with reader(log, topic) as consumer:
        assert consumer.process(handle, concurrency=concurrency) == 600
    for at in range(13):
        assert seen[b"key-%d" % at] == list(range(at, 600, 13))
    with reader(log, topic) as consumer:
        assert list(consumer) == []


def test_handlers_run_side_by_side(log: Log, name: str) -> None:
    topic = keyed(log, name, 4, 4)
    together = threading.Barrier(4)
    with reader(log, topic) as consumer:
        assert consumer.process(lambda _: together.wait(PATIENCE_S), concurrency=4) == 4


def test_order_by_partition(log: Log, name: str) -> None:
    topic = fill(log, name, 2, 100)
    seen: dict[int, list[int]] = defaultdict(list)
    with reader(log, topic) as consumer:
        consumer.process(
            lambda record: seen[record.partition].append(record.offset),
            concurrency=8,
            ordered_by="partition",
        )
    assert seen == {0: list(range(100)), 1: list(range(100))}


def test_a_failing_handler_ends_processing_and_its_record_comes_again(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 50)

    def fail_at_twenty(record: Text) -> None:
        if record.offset == 20:
            raise ZeroDivisionError("twenty")

    with pytest.raises(ZeroDivisionError, match="twenty"), reader(log, topic) as consumer:
        consumer.process(fail_at_twenty, concurrency=4)
    assert committed(log, name) == [20]
    seen: list[int] = []
    with reader(log, topic) as consumer:
        consumer.process(lambda record: seen.append(record.offset))
    assert seen == list(range(20, 50))


def test_attempts_then_aside_or_skipped(log: Log, name: str) -> None:
    topic = keyed(log, name, 10, 3)
    aside = Topic(f"{name}-dead", value=str)
    log.topics.create(aside)
    tries: Counter[str] = Counter()

    def fail_at_four(record: Text) -> None:
        tries[record.value] += 1
        if record.value == "4" or (record.value == "5" and tries["5"] < 3):
            raise ValueError(f"bad {record.value}")

    with reader(log, topic) as consumer:
        count = consumer.process(
            fail_at_four,
            concurrency=3,
            attempts=3,
            on_failure=DeadLetter(aside),
            retrying=AT_ONCE,
        )
    assert count == 10
    assert tries == {str(at): 3 if at in (4, 5) else 1 for at in range(10)}
    with log.consumer(aside, start="earliest", until="end") as consumer_of_dead:
        (dead,) = list(consumer_of_dead)
    assert (dead.value, dead.key) == ("4", b"key-1")
    headers = dict(dead.headers)
    assert headers["__connect.errors.topic"] == name.encode()
    assert headers["__connect.errors.exception.class.name"] == b"builtins.ValueError"
    assert headers["__connect.errors.exception.message"] == b"bad 4"
    assert headers["__connect.errors.attempts"] == b"3"
    assert sum(offset or 0 for offset in committed(log, name)) == 10


def test_stop_ends_processing_and_commits_what_was_handled(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 100)
    with reader(log, topic, until=None) as consumer:

        def stop_at_thirty(record: Text) -> None:
            if record.offset == 30:
                consumer.stop()

        handled = consumer.process(stop_at_thirty, concurrency=1)
    assert committed(log, name) == [handled]
    assert 31 <= handled <= 100


def test_a_partition_that_goes_is_handed_over_without_loss(log: Log, name: str) -> None:
    topic = keyed(log, name, 400, 40)
    handled: Counter[str] = Counter()
    lock = threading.Lock()

    def handle(record: Text) -> None:
        with lock:
            handled[record.value] += 1

    members: list[GroupConsumer[bytes, str]] = []

    def run() -> None:
        with reader(log, topic, until=None) as consumer:
            members.append(consumer)
            consumer.process(handle, concurrency=4)

    with ThreadPoolExecutor(2) as pool:
        try:
            running = [pool.submit(run)]
            eventually(lambda: len(handled) > 0, "nothing is handled")
            running.append(pool.submit(run))
            with log.producer() as producer:
                for at in range(400, 800):
                    producer.send(topic, str(at), key=b"key-%d" % (at % 40))
            eventually(
                lambda: len(handled) == 800 and sum(bool(each.assignment) for each in members) == 2,
                lambda: (
                    f"{len(handled)} records, {[each.assignment for each in members]}, {running}"
                ),
            )
        finally:
            for member in members:
                member.stop()
        for each in running:
            each.result(PATIENCE_S)
    with reader(log, topic) as consumer:
        assert list(consumer) == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"concurrency": 0}, "concurrency is 0"),
        ({"ordered_by": "keys"}, 'did you mean \'key\'\\? it may be "key", "partition" or None'),
        ({"attempts": 0}, "attempts is 0"),
        ({"on_failure": "ignore"}, "on_failure is 'ignore'"),
    ],
)
def test_wrong_options(log: Log, name: str, options: dict[str, Any], complaint: str) -> None:
    topic = fill(log, name, 1, 1)
    with reader(log, topic) as consumer, pytest.raises(ConfigurationError, match=complaint):
        consumer.process(print, **options)


def test_a_coroutine_function_is_for_the_other_consumer(log: Log, name: str) -> None:
    async def handle(_: Text) -> None: ...

    topic = fill(log, name, 1, 1)
    with reader(log, topic) as consumer, pytest.raises(ConfigurationError, match="aconnect"):
        consumer.process(handle)


# With asyncio ----------------------------------------------------------------------------------


async def with_consumer(
    log: Log,
    topic: Topic[bytes, str],
    call: Callable[[bucketlog.AsyncGroupConsumer[bytes, str]], Any],
) -> Any:
    async with (
        bucketlog.aconnect(log.bootstrap) as alog,
        alog.consumer(
            topic, group=topic.name, start="earliest", until="end", auto_commit="ack"
        ) as consumer,
    ):
        return await call(consumer)


async def test_tasks_handle_each_record_once_in_order(log: Log, name: str) -> None:
    topic = keyed(log, name, 300, 7)
    seen: dict[bytes | None, list[int]] = defaultdict(list)
    active: Counter[bytes | None] = Counter()
    most = 0

    async def handle(record: Text) -> None:
        nonlocal most
        active[record.key] += 1
        assert active[record.key] == 1
        most = max(most, active.total())
        await asyncio.sleep(0)
        seen[record.key].append(int(record.value))
        active[record.key] -= 1

    handled = await with_consumer(log, topic, lambda each: each.process(handle, concurrency=4))
    assert handled == 300
    assert 1 < most <= 4
    for at in range(7):
        assert seen[b"key-%d" % at] == list(range(at, 300, 7))
    with reader(log, topic) as consumer:
        assert list(consumer) == []


async def test_a_failing_task_ends_processing(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 20)

    async def fail_at_seven(record: Text) -> None:
        if record.offset == 7:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await with_consumer(log, topic, lambda each: each.process(fail_at_seven, concurrency=3))
    assert committed(log, name) == [7]


async def test_attempts_of_tasks(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 5)
    tries: Counter[int] = Counter()

    async def fail(record: Text) -> None:
        tries[record.offset] += 1
        if record.offset == 2:
            raise ValueError

    await with_consumer(
        log,
        topic,
        lambda each: each.process(fail, attempts=4, on_failure="skip", retrying=AT_ONCE),
    )
    assert tries == {0: 1, 1: 1, 2: 4, 3: 1, 4: 1}
    assert committed(log, name) == [5]
