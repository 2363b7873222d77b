"""Transactions of the SDK against real brokers."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

import bucketlog
from bucketlog import GroupConsumer, Log, Record, Topic, Transaction
from bucketlog.client import transaction as transaction_module
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import (
    ConfigurationError,
    InvalidDataError,
    LogError,
    TransactionAbortedError,
)
from tests.rigs.patience import eventually
from tests.servers.own_cluster import OwnCluster

pytestmark = pytest.mark.long

_numbers = count()


@pytest.fixture
def words(log: Log) -> Topic[str, str]:
    return made(log, "words")


@pytest.fixture
def copies(log: Log) -> Topic[str, str]:
    return made(log, "copies")


def made(log: Log, prefix: str, partitions: int = 2) -> Topic[str, str]:
    topic = Topic(f"{prefix}-{next(_numbers)}", value=str, key=str)
    log.topics.create(topic, partitions=partitions)
    return topic


def values(log: Log, topic: Topic[str, str]) -> list[str]:
    """All committed values, sorted."""
    with log.consumer(topic, start="earliest", until="end") as consumer:
        return sorted(record.value for record in consumer)


def reader(log: Log, topic: Topic[str, str], **options: Any) -> GroupConsumer[str, str]:
    return log.consumer(topic, group=f"of-{topic.name}", start="earliest", until="end", **options)


def test_a_block_commits_and_an_exception_aborts(
    log: Log, words: Topic[str, str], copies: Topic[str, str]
) -> None:
    for turn in range(3):
        with log.transaction(words.name) as transaction:
            transaction.send(words, f"{turn}", key="k")
            assert transaction.send_many(copies, [f"{turn}a", f"{turn}b"]) == 2
    with suppress(ZeroDivisionError), log.transaction(words.name) as transaction:
        transaction.send(words, "aborted", key="k")
        raise ZeroDivisionError
    with log.transaction(words.name) as transaction:
        transaction.send(words, "given up")
        transaction.abort()
        with pytest.raises(ConfigurationError, match="has ended"):
            transaction.send(words, "late")
    assert values(log, words) == ["0", "1", "2"]
    assert values(log, copies) == ["0a", "0b", "1a", "1b", "2a", "2b"]


def test_a_value_that_the_topic_does_not_take_aborts(log: Log, words: Topic[str, str]) -> None:
    with suppress(InvalidDataError), log.transaction(words.name) as transaction:
        transaction.send(words, "before")
        with pytest.raises(InvalidDataError):
            transaction.send(words, cast(Any, 5))
        transaction.send(words, cast(Any, 5))
    assert values(log, words) == []


def test_one_transaction_of_an_id_at_a_time(log: Log, words: Topic[str, str]) -> None:
    with log.transaction(words.name) as transaction:
        transaction.send(words, "of the first")
        with pytest.raises(ConfigurationError, match="is open"), log.transaction(words.name):
            pass
    assert values(log, words) == ["of the first"]


def test_a_transaction_is_for_one_block(log: Log, words: Topic[str, str]) -> None:
    transaction = log.transaction(words.name)
    with pytest.raises(ConfigurationError, match="has not begun"):
        transaction.send(words, "early")
    with transaction:
        transaction.send(words, "in the block")
    with pytest.raises(ConfigurationError, match="a block before"), transaction:
        pass
    with log.transaction(words.name) as another:
        another.send(words, "in another")
    assert values(log, words) == ["in another", "in the block"]


def test_an_interrupted_commit_is_not_waited_for(
    log: Log, words: Topic[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """confluent-kafka turns a signal during the call into a SystemError."""
    transaction = log.transaction(words.name)
    with transaction:
        transaction.send(words, "unknown")
        monkeypatch.setattr(
            transaction._producer.outbox, "kafka", Interrupted(transaction._producer.outbox.kafka)
        )
        with pytest.raises(KeyboardInterrupt) as caught:
            transaction.commit()
    assert "may or may not be committed" in "".join(caught.value.__notes__)
    with log.transaction(words.name) as successor:
        successor.send(words, "of the successor")
    assert values(log, words) == ["of the successor"]


def test_a_call_that_hangs_is_given_up_with_its_producer(
    log: Log, words: Topic[str, str], copies: Topic[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As librdkafka's does after Metadata has lacked the group's coordinator."""
    monkeypatch.setattr(transaction_module, "HUNG_S", 0.1)
    sent, hung = fill(log, words, 20), list[Hanging]()

    def copy(record: Record[str, str], transaction: Transaction) -> None:
        if not hung:
            outbox = transaction._producer.outbox
            hung.append(Hanging(outbox.kafka))
            monkeypatch.setattr(outbox, "kafka", hung[0])
        transaction.send(copies, record.value)

    with reader(log, words, auto_commit=False) as consumer:
        done = log.transform(consumer, copy, transactional_id=words.name)
    hung[0].released.set()
    assert done == 20
    assert values(log, copies) == sent


class Hanging:
    """A producer whose call for offsets does not return."""

    def __init__(self, kafka: Any) -> None:
        self.released = threading.Event()
        self._kafka = kafka

    def send_offsets_to_transaction(self, *_: object) -> None:
        self.released.wait()

    def __len__(self) -> int:
        return len(self._kafka)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)


class Interrupted:
    """A producer whose commit is interrupted before it begins."""

    def __init__(self, kafka: Any) -> None:
        self._kafka = kafka

    def commit_transaction(self, _: float) -> None:
        raise SystemError("returned NULL without setting an exception")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)


def test_a_second_program_takes_over(
    broker: EmbeddedCluster, log: Log, words: Topic[str, str]
) -> None:
    first = log.transaction(words.name)
    with first:
        first.send(words, "of the first")
        with (
            bucketlog.connect(broker.bootstrap) as other,
            other.transaction(words.name) as second,
        ):
            second.send(words, "of the second")
        with pytest.raises(LogError, match="took over") as caught:
            first.commit()
    assert not isinstance(caught.value, TransactionAbortedError)
    assert not caught.value.retriable
    assert values(log, words) == ["of the second"]


def test_a_transaction_that_takes_too_long_is_aborted(log: Log, words: Topic[str, str]) -> None:
    def is_open() -> bool:
        return log.transactions.describe(words.name).state == "Ongoing"

    with log.transaction(words.name, timeout_s=1.0) as late:
        late.send(words, "late")
        eventually(is_open)
        eventually(lambda: not is_open())
        with pytest.raises(TransactionAbortedError) as caught:
            late.commit()
    assert caught.value.retriable
    with log.transaction(words.name, timeout_s=1.0) as again:
        again.send(words, "in time")
    assert values(log, words) == ["in time"]


def test_options_that_contradict_each_other(log: Log, words: Topic[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="must be a text"):
        log.transaction("")
    with pytest.raises(ConfigurationError, match="timeout_s"):
        log.transaction("x", timeout_s=0)
    with pytest.raises(ConfigurationError, match="idempotent"):
        log.transaction("x", idempotent=False)
    automatic, groupless = reader(log, words), log.consumer(words)
    with pytest.raises(ConfigurationError, match="auto_commit=False"):
        log.transaction("x", consumer=automatic)
    with pytest.raises(ConfigurationError, match="group="):
        log.transaction("x", consumer=cast(Any, groupless))
    with log.transaction(words.name):
        pass
    with pytest.raises(ConfigurationError, match="other options"):
        log.transaction(words.name, compression="zstd")
    too_long = log.transaction("long", timeout_s=10**6)
    with pytest.raises(LogError, match="TRANSACTION_TIMEOUT_MS_MAX"):
        too_long.__enter__()


# Read, transform, write --------------------------------------------------------------------------


def fill(log: Log, topic: Topic[str, str], records: int) -> list[str]:
    sent = [f"{number:05}" for number in range(records)]
    with log.producer() as producer:
        producer.send_many(topic, sent, key=lambda value: value[-1])
    return sent


def test_a_transform_reads_again_after_an_abort(
    log: Log, words: Topic[str, str], copies: Topic[str, str]
) -> None:
    sent = fill(log, words, 300)
    calls = Counter[str]()

    def copy(record: Record[str, str], transaction: Transaction) -> None:
        calls[record.value] += 1
        transaction.send(copies, record.value, key=record.key)
        if record.value in ("00050", "00299") and calls[record.value] < 3:
            raise TransactionAbortedError("as a broker would")

    with reader(log, words, auto_commit=False) as consumer:
        done = log.transform(consumer, copy, transactional_id=words.name, max_records=40)
    assert done == 300
    assert values(log, copies) == sent
    assert calls["00050"] == calls["00299"] == 3
    with reader(log, words, auto_commit=False) as consumer:
        assert log.transform(consumer, copy, transactional_id=words.name) == 0


def test_a_consumer_commits_by_its_transaction_alone(log: Log, words: Topic[str, str]) -> None:
    with (
        reader(log, words, auto_commit=False) as consumer,
        log.transaction(words.name, consumer=consumer),
        pytest.raises(ConfigurationError, match="remove commit"),
    ):
        consumer.commit()


def test_an_exception_of_the_handler_leaves_its_records_to_the_next_run(
    log: Log, words: Topic[str, str], copies: Topic[str, str]
) -> None:
    sent = fill(log, words, 100)

    def fail(record: Record[str, str], transaction: Transaction) -> None:
        transaction.send(copies, record.value)
        if record.value == "00077":
            raise ZeroDivisionError

    def copy(record: Record[str, str], transaction: Transaction) -> None:
        transaction.send(copies, record.value)

    with reader(log, words, auto_commit=False) as consumer, pytest.raises(ZeroDivisionError):
        log.transform(consumer, fail, transactional_id=words.name, max_records=10)
    with reader(log, words, auto_commit=False) as consumer:
        log.transform(consumer, copy, transactional_id=words.name, max_records=10)
    assert values(log, copies) == sent


def test_a_handler_that_always_aborts_is_not_called_for_ever(
    log: Log, words: Topic[str, str]
) -> None:
    fill(log, words, 3)
    calls = 0

    def abort(_: Record[str, str], transaction: Transaction) -> None:
        nonlocal calls
        calls += 1
        transaction.abort()
        raise TransactionAbortedError("never")

    with (
        reader(log, words, auto_commit=False) as consumer,
        pytest.raises(TransactionAbortedError),
    ):
        log.transform(consumer, abort, transactional_id=words.name, attempts_max=2)
    assert calls == 2


def test_records_of_a_partition_that_went_abort(
    log: Log, words: Topic[str, str], copies: Topic[str, str]
) -> None:
    """The partition's next reader reads the records again. A commit would count them twice."""
    fill(log, words, 50)
    first = log.consumer(
        words, group=words.name, start="earliest", auto_commit=False, max_wait_ms=10
    )
    with first, log.transaction(words.name, consumer=first) as transaction:
        read = 0
        while read < 50:
            read += len(first.poll())
        transaction.send(copies, "from both partitions")
        with log.consumer(words, group=words.name, start="earliest") as second:

            def has_moved() -> bool:
                first.poll(timeout_s=0.05)
                second.poll(timeout_s=0.05)
                return len(first.assignment) == 1

            eventually(has_moved)
        with pytest.raises(TransactionAbortedError, match="went to another member"):
            transaction.commit()
    assert values(log, copies) == []


# With asyncio ------------------------------------------------------------------------------------


async def test_transactions_with_await(
    broker: EmbeddedCluster, log: Log, words: Topic[str, str], copies: Topic[str, str]
) -> None:
    sent = fill(log, words, 100)
    is_first = True
    async with bucketlog.aconnect(broker.bootstrap) as alog:
        consumer = alog.consumer(
            words, group=words.name, start="earliest", until="end", auto_commit=False
        )
        async with consumer:
            async for batch in consumer.batches(30):
                with suppress(ZeroDivisionError):
                    async with alog.transaction(words.name, consumer=consumer) as transaction:
                        for record in batch:
                            await transaction.send(copies, record.value)
                        if is_first:
                            is_first = False
                            raise ZeroDivisionError
        async with alog.transaction(words.name) as transaction:
            assert await transaction.send_many(copies, ["y", "z"]) == 2
            await transaction.commit()
        async with alog.transaction(words.name) as transaction:
            await transaction.send(copies, "aborted")
            await transaction.abort()
        late = alog.transaction(words.name)
        with pytest.raises(ConfigurationError, match="is open"):
            async with late, alog.transaction(words.name):
                pass
    assert values(log, copies) == [*sent, "y", "z"]


# Beside faults -----------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


def test_a_transform_counts_once_through_wipes_and_kills(own: OwnCluster) -> None:
    own.start()
    with bucketlog.connect(own.bootstrap) as log:
        words, copies = made(log, "words", 1), made(log, "copies", 3)
        sent = fill(log, words, 1000)
        calls = 0

        def copy(record: Record[str, str], transaction: Transaction) -> None:
            nonlocal calls
            calls += 1
            if calls in (200, 600):
                own.valkey.wipe()
            if calls in (400, 800):
                own.kill_and_restart(own.brokers[-2])
            transaction.send(copies, record.value, key=record.value)

        with reader(log, words, auto_commit=False) as consumer:
            done = log.transform(consumer, copy, transactional_id="copy", max_records=20)
        assert done == 1000
        assert values(log, copies) == sent
