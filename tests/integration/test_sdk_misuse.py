"""What would lose records or hang: a second thread, a fork, and an end that means nothing."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import bucketlog
from bucketlog import ConcurrentUseError, Log, Topic
from bucketlog.log_format.errors import ConfigurationError
from tests.rigs.group_members import fill
from tests.rigs.patience import PATIENCE_S
from tests.scenarios.sdk_misuse import handed_to_a_pool, shared_by_threads, used_after_a_fork

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"misuse-{next(_numbers)}"


def committed(log: Log, group: str) -> list[int | None]:
    return [position.committed for position in log.groups.describe(group).positions]


@pytest.mark.parametrize("group", [None, "threads"])
def test_threads_that_share_a_consumer_are_refused_and_nothing_is_lost(
    log: Log, name: str, group: str | None
) -> None:
    topic = fill(log, name, 1, 400)
    shared_by_threads(log, topic, 400, None if group is None else f"{group}-{name}")


def test_a_thread_does_not_commit_the_record_of_another(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with log.consumer(topic, group=name, start="earliest", until="end") as consumer:
        assert next(consumer).offset == 0
        calls: list[Callable[[], object]] = [
            lambda: next(consumer),
            consumer.poll,
            consumer.commit,
            consumer.close,
            lambda: consumer.__exit__(None, None, None),
        ]
        with ThreadPoolExecutor(1) as pool:
            for call in calls:
                with pytest.raises(ConcurrentUseError, match="still works on records"):
                    pool.submit(call).result()
        assert [record.offset for record in consumer] == list(range(1, 10))
    assert committed(log, name) == [10]


def test_another_thread_may_take_over_when_nothing_is_open(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with (
        log.consumer(topic, group=name, start="earliest", auto_commit=False) as consumer,
        ThreadPoolExecutor(1) as pool,
    ):
        here = consumer.poll(3, PATIENCE_S)
        there = pool.submit(consumer.poll, 3, PATIENCE_S).result()
        assert [record.offset for record in here + there] == list(range(6))


def test_stop_ends_a_loop_from_a_signal_handler_and_commits(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 10)
    with log.consumer(topic, group=name, start="earliest") as consumer:
        before = signal.signal(signal.SIGTERM, consumer.stop)
        try:
            for record in consumer:
                if record.offset == 4:
                    os.kill(os.getpid(), signal.SIGTERM)
        finally:
            signal.signal(signal.SIGTERM, before)
        assert consumer.is_stopped
        assert consumer.poll() == []
        assert list(consumer) == []
    assert committed(log, name) == [5]


def test_stop_ends_a_wait_of_another_thread(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 3)
    with log.consumer(topic, start=0) as consumer:
        seen: list[int] = []
        has_all = threading.Event()

        def read() -> None:
            for record in consumer:
                seen.append(record.offset)
                if len(seen) == 3:
                    has_all.set()

        thread = threading.Thread(target=read)
        thread.start()
        assert has_all.wait(PATIENCE_S)
        consumer.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("until", ["ned", "now", True, 1.5, b"end", {"0": "x"}, {0: "x"}])
def test_an_end_that_means_nothing_is_refused(log: Log, name: str, until: Any) -> None:
    with pytest.raises(ConfigurationError, match="until is") as caught:
        log.consumer(Topic(name), until=until)
    assert '"end"' in caught.value.remedy
    with pytest.raises(ConfigurationError, match="until is offset -1"):
        log.consumer(Topic(name), until=-1)


@pytest.mark.parametrize("partition", ["0", -1, True, None])
def test_positions_of_what_is_no_partition_are_refused(log: Log, name: str, partition: Any) -> None:
    topic = fill(log, name, 1, 1)
    with pytest.raises(ConfigurationError, match="until is an offset of partition"):
        log.consumer(topic, until={partition: 0})
    with pytest.raises(ConfigurationError, match="start names partition"):
        log.consumer(topic, start={partition: 0})


@pytest.mark.parametrize("group", [None, "g"])
def test_ends_by_offset_and_time(log: Log, name: str, group: str | None) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic, partitions=2)
    with log.producer() as producer:
        for at in range(20):
            at_ms = 1_700_000_000_000 + at
            producer.send(topic, str(at), partition=at % 2, timestamp_ms=at_ms)
    groups = count()

    def read(until: Any) -> list[int]:
        options: dict[str, Any] = {}
        if group is not None:
            options["group"] = f"{name}-{next(groups)}"
        with log.consumer(topic, start="earliest", until=until, **options) as consumer:
            return sorted(int(record.value) for record in consumer)

    assert read("end") == list(range(20))
    assert read(3) == list(range(6))
    assert read({0: 0, 1: 2}) == [1, 3]
    assert read({0: 1}) == [0, *range(1, 20, 2)]
    assert read(datetime.fromtimestamp(1_700_000_000.007, UTC)) == list(range(7))
    assert read(datetime(2020, 1, 1, tzinfo=UTC)) == []
    assert read(datetime(2040, 1, 1, tzinfo=UTC)) == list(range(20))


def test_an_end_beyond_the_log_is_waited_for(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 2)
    with log.consumer(topic, start="earliest", until=4) as consumer, log.producer() as producer:
        assert [record.offset for record in (next(consumer), next(consumer))] == [0, 1]
        assert not consumer.finished
        for _ in range(5):
            producer.send(topic, "later")
        producer.flush()
        assert [record.offset for record in consumer] == [2, 3]


def test_a_fork_is_named_and_neither_process_hangs(log: Log) -> None:
    for _ in range(3):
        used_after_a_fork(log.bootstrap)


def test_work_in_a_pool_is_committed_once_it_is_done(log: Log, name: str, tmp_path: Path) -> None:
    topic = fill(log, name, 1, 300)
    for number in range(2):
        handed_to_a_pool(log, topic, 300, f"{name}-{number}", tmp_path / "done")


async def test_an_async_consumer_stops(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 5)
    async with bucketlog.aconnect(log.bootstrap) as alog:
        consumer = alog.consumer(topic, group=name, start="earliest")
        seen = []
        async with consumer:
            async for record in consumer:
                seen.append(record.offset)
                if record.offset == 2:
                    consumer.stop()
            assert await consumer.poll() == []
            assert [batch async for batch in consumer.batches()] == []
    assert seen == [0, 1, 2]
    assert committed(log, name) == [3]
