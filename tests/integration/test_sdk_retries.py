"""`process` with retry topics: records whose handler fails are handled later, and none is lost."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import bucketlog
from bucketlog import ConfigurationError, GroupConsumer, Log, LogError, Record, RetryTopics, Topic
from bucketlog.client.dead_letters import DeadLetterRecord
from bucketlog.client.failures import Failures
from bucketlog.client.processing import RETRYING
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.group_members import fill
from tests.rigs.patience import Deadline
from tests.rigs.shell import Shell

_numbers = count()
FOR_EVER_S = 7 * 24 * 3600.0
KILLS = 4
PROGRAM = """
import os, sys
import bucketlog

bootstrap, name, file = sys.argv[1:]
done = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def handle(record):
    number = int(record.value)
    if number % 10 == 0 or (number % 2 == 0 and record.retry is None):
        raise ConnectionError("not now")
    os.write(done, b"%d\\n" % number)

retries = bucketlog.RetryTopics(f"{name}-retry", delays_s=(0.2, 0.3), dead_letter=f"{name}-dead")
with bucketlog.connect(bootstrap) as log:
    with log.consumer(
        bucketlog.Topic(name, value=str), group=name, start="earliest", auto_commit="ack",
        commit_interval_s=0.05, instance_id="one",
    ) as consumer:
        consumer.process(handle, concurrency=8, ordered_by=None, on_failure=retries)
"""


@pytest.fixture
def name() -> str:
    return f"retries-{next(_numbers)}"


def retrying(log: Log, name: str, *delays_s: float) -> RetryTopics:
    dead = Topic(f"{name}-dead")
    log.topics.ensure(dead, partitions=1)
    return RetryTopics(f"{name}-retry", delays_s=delays_s, dead_letter=dead)


def member(log: Log, topic: Topic[bytes, str], **options: Any) -> GroupConsumer[bytes, str]:
    return log.consumer(topic, group=topic.name, auto_commit="ack", **options)


def process_until(
    consumer: GroupConsumer[bytes, str],
    handler: Callable[[Record[bytes, str]], None],
    is_done: Callable[[], bool],
    **options: Any,
) -> None:
    deadline = Deadline(consumer.position)

    def handle(record: Record[bytes, str]) -> None:
        try:
            handler(record)
        finally:
            if is_done():
                consumer.stop()

    consumer.process(handle, **options)
    deadline.check()


def dead_letters(log: Log, name: str) -> list[DeadLetterRecord]:
    with log.consumer(Topic(f"{name}-dead"), start="earliest", until="end") as consumer:
        return [DeadLetterRecord.of(record) for record in consumer]


def test_a_failed_record_goes_through_all_retry_topics(log: Log, name: str) -> None:
    topic = Topic(name, value=str, key=str)
    log.topics.create(topic, partitions=3)
    headers = (("h", b"\x00\xff"), ("h", None), ("t", b"x"))
    with log.producer() as producer:
        sent = producer.send(
            topic, "bad", key="k", headers=headers, partition=2, timestamp_ms=1_700_000_000_000
        ).result()
        producer.send(topic, "good", key="k", partition=2)
    calls: list[Record[str, str]] = []

    def handle(record: Record[str, str]) -> None:
        calls.append(record)
        if record.value == "bad":
            raise ValueError(f"call {len(calls)}")

    retries = retrying(log, name, 0.05, 0.1)
    with log.consumer(topic, group=name, start="earliest", auto_commit="ack") as consumer:

        def handle_and_stop(record: Record[str, str]) -> None:
            try:
                handle(record)
            finally:
                if len([call for call in calls if call.value == "bad"]) == 6:
                    consumer.stop()

        # each record has two attempts in each topic
        consumer.process(
            handle_and_stop,
            attempts=2,
            on_failure=retries,
            retrying=bucketlog.Retrying(first_pause_s=0.01, longest_pause_s=0.01),
        )
        assert consumer.topics == (name,)
        assert set(consumer.position()) == {0, 1, 2}
    bad = [record for record in calls if record.value == "bad"]
    assert [record.topic for record in bad] == [
        *(name,) * 2,
        *(f"{name}-retry-1",) * 2,
        *(f"{name}-retry-2",) * 2,
    ]
    assert [record.retry and record.retry.attempts for record in bad] == [None, None, 2, 2, 4, 4]
    for record in bad:
        assert (record.key, record.headers) == ("k", headers)
        assert record.timestamp_ms == 1_700_000_000_000
        if record.retry is not None:
            assert record.retry[:3] == (name, 2, sent.offset)
    (letter,) = dead_letters(log, name)
    assert letter.headers == headers
    assert (letter.origin, letter.attempts) == (f"{name}[2]@{sent.offset}", 6)
    assert (letter.stage, letter.exception) == ("TASK_PUT", "builtins.ValueError")
    assert (letter.record.raw_key, letter.record.raw_value) == (b"k", b"bad")
    assert letter.timestamp_ms == letter.record.timestamp_ms == 1_700_000_000_000
    assert letter.due_ms is None


def test_others_do_not_wait_for_a_record_that_is_not_due(log: Log, name: str) -> None:
    topic = fill(log, name, 2, 20)
    handled: list[str] = []

    def handle(record: Record[bytes, str]) -> None:
        handled.append(record.value)
        if record.value.endswith("-3"):
            raise ConnectionError

    retries = retrying(log, name, FOR_EVER_S)
    with member(log, topic, start="earliest") as consumer:
        process_until(consumer, handle, lambda: len(handled) == 40, on_failure=retries)
    assert len(set(handled)) == 40
    assert sum(row.latest for row in log.topics.describe(f"{name}-retry-1").partitions) == 2
    rows = log.groups.describe(name).positions
    assert sum(row.committed or 0 for row in rows if row.topic == name) == 40
    assert not any(row.committed for row in rows if row.topic != name)
    # the wait is bounded by the delay that this process has now, whatever the header says
    retries = retrying(log, name, 0.05)
    again: list[str] = []
    with member(log, topic) as consumer:
        process_until(
            consumer,
            lambda record: again.append(record.value),
            lambda: len(again) == 2,
            on_failure=retries,
        )
    assert sorted(again) == ["0-3", "1-3"]
    assert log.groups.describe(name).lag == 0


@pytest.mark.parametrize("until", ["end", {0: 3}])
def test_with_until_a_run_handles_the_retries_that_wait_at_its_start(
    log: Log, name: str, until: Any
) -> None:
    topic = fill(log, name, 1, 3)
    retries = retrying(log, name, 0.05)
    calls: list[str] = []

    def fail_first(record: Record[bytes, str]) -> None:
        if record.retry is None:
            raise ConnectionError

    def handle(record: Record[bytes, str]) -> None:
        calls.append(record.where)
        fail_first(record)

    with member(log, topic, start="earliest", until=until) as consumer:
        consumer.rules(1, "key", 1, retries, RETRYING)
        with log.consumer(
            topic, group=f"{name}-other", start="earliest", until="end", auto_commit="ack"
        ) as faster:
            assert faster.process(fail_first, on_failure=retries) == 3
        # the retry topic has got three records before this member has got a partition
        consumer.process(handle, on_failure=retries)
    assert calls == [f"{name}[0]@{offset}" for offset in range(3)]
    with member(log, topic, until="end") as consumer:
        consumer.process(handle, on_failure=retries)
    assert calls[3:] == [f"{name}-retry-1[0]@{offset}" for offset in range(6)]
    assert log.groups.describe(name).lag == 0


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_retried_records_of_several_topics_keep_their_types(
    log: Log, name: str, assignor: Any
) -> None:
    words, numbers = Topic(f"{name}-words", value=str), Topic(f"{name}-numbers", value=int)
    for topic in (words, numbers):
        log.topics.create(topic, partitions=1)
    with log.producer() as producer:
        producer.send(words, "7")
        producer.send(numbers, 7)
    retries = retrying(log, name, 0.05)
    seen: list[object] = []
    with log.consumer(
        (words, numbers), group=name, start="earliest", auto_commit="ack", assignor=assignor
    ) as consumer:

        def handle(record: Record[bytes, object]) -> None:
            if record.retry is None:
                raise ConnectionError
            seen.append((record.retry.topic, record.value))
            if len(seen) == 2:
                consumer.stop()

        consumer.process(handle, on_failure=retries)
    assert sorted(seen, key=str) == [(numbers.name, 7), (words.name, "7")]


def test_hostile_records_in_a_retry_topic(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 1)
    retries = retrying(log, name, 0.05)
    strange = Topic(f"{name}-retry-1")
    log.topics.create(strange, partitions=1)
    origin = [
        ("__connect.errors.topic", "elsewhere"),
        ("__connect.errors.partition", "0"),
        ("__connect.errors.offset", "0"),
    ]
    with log.producer() as producer:
        producer.send(strange, b"no headers")
        producer.send(strange, b"alien", headers=origin)
        producer.send(
            strange,
            b"late",
            headers=[
                ("__connect.errors.topic", name),
                *origin[1:],
                ("__bucketlog.retry.due_ms", "9" * 18),
            ],
        )
    seen: list[str] = []
    with member(log, topic, start="earliest", on_error="skip") as consumer:
        process_until(
            consumer,
            lambda record: seen.append(record.value),
            lambda: len(seen) == 2,
            on_failure=retries,
        )
        assert consumer.passed_over == 2
    assert sorted(seen) == ["0-0", "late"]


def test_a_missing_dead_letter_topic_is_an_error_at_the_start(log: Log, name: str) -> None:
    topic = fill(log, name, 1, 1)
    retries = RetryTopics(f"{name}-retry", delays_s=(1,), dead_letter=f"{name}-missing")
    with member(log, topic) as consumer:
        with pytest.raises(LogError, match="missing"):
            consumer.process(print, on_failure=retries)
        with pytest.raises(ConfigurationError, match="on_failure is 5"):
            consumer.process(print, on_failure=5)  # type: ignore[arg-type]  # what is tested


class Refusing:
    """A producer whose records are never acknowledged."""

    def send(self, *_: Any, **__: Any) -> "Refusing":
        return self

    def result(self) -> None:
        raise LogError("refused", code="X", kafka_code=1, retriable=False)

    def close(self) -> None:
        pass


def test_a_record_is_committed_only_after_its_copy_is_acknowledged(
    log: Log, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = fill(log, name, 1, 1)
    retries = retrying(log, name, 1.0)
    monkeypatch.setattr(Failures, "_opened", lambda _: Refusing())

    def fail(_: Record[bytes, str]) -> None:
        raise ConnectionError

    with (
        member(log, topic, start="earliest") as consumer,
        pytest.raises(LogError, match="refused"),
    ):
        consumer.process(fail, on_failure=retries)
    assert not any(row.committed for row in log.groups.describe(name).positions)


def test_no_record_is_lost_when_the_process_is_killed(
    broker: EmbeddedCluster, log: Log, name: str, tmp_path: Path
) -> None:
    records = 400
    topic = Topic(name, value=str)
    log.topics.create(topic, partitions=2)
    log.topics.create(f"{name}-dead", partitions=1)
    with log.producer() as producer:
        producer.send_many(topic, [str(number) for number in range(records)])
    handled = tmp_path / "handled"
    handled.touch()
    wanted = {number for number in range(records) if number % 10}
    dead = {number for number in range(records) if not number % 10}

    def done() -> set[int]:
        lines = handled.read_text().split("\n")[:-1]
        return {int(line) for line in lines}

    def set_aside() -> set[int]:
        return {int(letter.record.raw_value or b"") for letter in dead_letters(log, name)}

    errors = (tmp_path / "stderr").open("w")
    for kill in range(KILLS + 1):
        goal = len(wanted) * (kill + 1) // (KILLS + 1)
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, broker.bootstrap, name, str(handled)], stderr=errors
        )
        try:
            deadline = Deadline(lambda: (len(done()), (tmp_path / "stderr").read_text()[-500:]))
            while len(done()) < goal or (kill == KILLS and set_aside() != dead):
                deadline.check()
                assert process.poll() is None, (tmp_path / "stderr").read_text()
        finally:
            process.kill()
            process.wait()
    errors.close()
    assert done() == wanted
    assert set_aside() == dead


def test_with_asyncio(broker: EmbeddedCluster, log: Log, name: str) -> None:
    topic = fill(log, name, 1, 4)
    retries = retrying(log, name, 0.05)
    handled: list[str] = []

    async def run() -> None:
        async with (
            bucketlog.aconnect(broker.bootstrap) as connected,
            connected.consumer(topic, group=name, start="earliest", auto_commit="ack") as consumer,
        ):

            async def handle(record: Record[bytes, str]) -> None:
                if record.retry is None:
                    raise ConnectionError
                handled.append(record.value)
                if len(handled) == 4:
                    consumer.stop()

            await consumer.process(handle, concurrency=4, on_failure=retries)

    asyncio.run(run())
    assert sorted(handled) == [f"0-{at}" for at in range(4)]


def test_the_command_line_shows_and_replays_retry_topics(
    broker: EmbeddedCluster, log: Log, name: str
) -> None:
    topic = fill(log, name, 2, 2)
    calls: list[str] = []

    def fail(record: Record[bytes, str]) -> None:
        calls.append(record.value)
        raise ConnectionError("down")

    retries = retrying(log, name, FOR_EVER_S)
    with member(log, topic, start="earliest") as consumer:
        process_until(consumer, fail, lambda: len(calls) == 4, on_failure=retries)
    shell = Shell(broker.bootstrap)
    retry_topic = f"{name}-retry-1"
    (row,) = json.loads(shell.ok("deadletter", "list", retry_topic, "-o", "json"))
    assert (row["origin"], row["records"], row["pending"]) == (name, 4, 4)
    assert row["due_ms"] > row["newest_ms"]
    shown = shell.ok("deadletter", "show", retry_topic).decode()
    assert shown.count("  due     ") == 4
    assert "header" not in shown
    before = sum(part.latest for part in log.topics.describe(name).partitions)
    shell.ok("deadletter", "replay", retry_topic, "--yes")
    assert sum(part.latest for part in log.topics.describe(name).partitions) == before + 4
    with log.consumer(topic, start={0: 2, 1: 2}, until="end") as consumer_again:
        back = list(consumer_again)
    assert all(record.headers == () for record in back)
    assert sorted(record.value for record in back) == sorted(calls)
