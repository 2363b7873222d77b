"""The SDK against a real broker."""

import threading
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from confluent_kafka import Message
from pydantic import BaseModel

import bucketlog
from bucketlog import Log, Topic
from bucketlog.client.sending import HASTEN_S
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError, LogError
from tests.rigs.patience import PATIENCE_S

_numbers = count()


class Order(BaseModel):
    id: int
    amount: float
    note: str | None = None


@pytest.fixture
def name() -> str:
    return f"sdk-{next(_numbers)}"


def test_typed_records_there_and_back(log: Log, name: str) -> None:
    orders = Topic(name, value=Order, key=str)
    assert log.topics.ensure(orders, partitions=3).partitions == 3
    sent = [Order(id=at, amount=at / 7, note=None if at % 2 else "ä") for at in range(500)]
    with log.producer() as producer:
        handles = [
            producer.send(orders, order, key=f"k{order.id % 10}", headers={"n": str(order.id)})
            for order in sent
        ]
    placed = [handle.result() for handle in handles]
    with log.consumer(orders, start="earliest", until="end") as consumer:
        back = {(record.partition, record.offset): record for record in consumer}
    assert len(back) == len(sent)
    for order, place in zip(sent, placed, strict=True):
        record = back[place.partition, place.offset]
        assert (record.value, record.key) == (order, f"k{order.id % 10}")
        assert record.headers == (("n", str(order.id).encode()),)
    assert {place.partition for place in placed} == {0, 1, 2}


def test_send_many_keeps_order_by_key(log: Log, name: str) -> None:
    orders = Topic(name, value=Order, key=str)
    log.topics.create(orders, partitions=4)
    with log.producer(compression="zstd") as producer:
        sent = producer.send_many(
            orders,
            (Order(id=at, amount=0) for at in range(25_000)),
            key=lambda order: f"k{order.id % 16}",
        )
    assert sent == 25_000
    last: dict[str | None, int] = {}
    seen = 0
    with log.consumer(orders, start="earliest", until="end") as consumer:
        for batch in consumer.batches(700):
            assert len(batch) <= 700
            for record in batch:
                assert record.value.id > last.get(record.key, -1)
                last[record.key] = record.value.id
                seen += 1
    assert seen == 25_000


def test_a_record_that_is_there_waits_for_no_other(
    log: Log, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka's `consume` waits until it has all that it is asked for, or its time is over."""
    words = Topic(name, value=str)
    log.topics.create(words)
    with log.producer() as producer:
        producer.send_many(words, ["one", "two", "three"])
    with log.consumer(words, start="earliest", until="end") as consumer:
        asked: list[tuple[int, float]] = []
        consume = consumer._consume

        def told(max_records: int, timeout_s: float) -> list[Message]:
            asked.append((max_records, timeout_s))
            return consume(max_records, timeout_s)

        monkeypatch.setattr(consumer, "_consume", told)
        assert [record.value for record in consumer] == ["one", "two", "three"]
    assert {most for most, timeout_s in asked if timeout_s > 0} == {1}
    assert any(most > 1 for most, _ in asked)


def test_a_first_record_does_not_wait_for_librdkafka_to_connect(log: Log, name: str) -> None:
    words = Topic(name, value=str)
    log.topics.create(words)

    class Told:
        """Of each question for metadata: it makes librdkafka connect at once."""

        def __init__(self, kafka: Any) -> None:
            self._kafka = kafka
            self.asked: list[tuple[str, float]] = []

        def __getattr__(self, verb: str) -> Any:
            return getattr(self._kafka, verb)

        def __len__(self) -> int:
            return len(self._kafka)

        def list_topics(self, topic: str, timeout_s: float) -> Any:
            self.asked.append((topic, timeout_s))
            return self._kafka.list_topics(topic, timeout_s)

    with log.producer() as producer:
        told = Told(producer._outbox.kafka)
        setattr(producer._outbox, "kafka", told)  # noqa: B010 - its type is librdkafka's
        first = producer.send(words, "one")
        assert told.asked == [], "sending waits for nobody"
        first.result(timeout_s=PATIENCE_S)
        producer.send(words, "two").result()
        producer.flush()
    assert told.asked == [(name, HASTEN_S)], "once, before the first wait"


def test_a_small_queue_holds_the_caller_back(log: Log, name: str) -> None:
    topic = Topic(name)
    log.topics.create(topic)
    with log.producer(queue_records=100) as producer:
        sent = []
        for at in range(1000):
            sent.append(producer.send(topic, b"%d" % at))
            assert sum(not delivery.done for delivery in sent) <= 100
        assert producer.send_many(topic, (b"%d" % at for at in range(1000, 5000))) == 4000
    with log.consumer(topic, start="earliest", until="end") as consumer:
        assert [int(record.value) for record in consumer] == list(range(5000))


def test_tombstones_null_keys_and_empty_values(log: Log, name: str) -> None:
    topic = Topic(name, value=str, key=str)
    log.topics.create(topic)
    with log.producer() as producer:
        producer.send(topic, None, key="gone")
        producer.send(topic, "")
        producer.send(topic, "x", key="", headers=[("a", b"\x00"), ("a", None)])
    with log.consumer(topic, start="earliest", until="end") as consumer:
        gone, empty, last = consumer
    assert (gone.key, gone.is_tombstone) == ("gone", True)
    with pytest.raises(InvalidDataError):
        _ = gone.value
    assert (empty.key, empty.value, empty.is_tombstone) == (None, "", False)
    assert (last.key, last.headers) == ("", (("a", b"\x00"), ("a", None)))


def test_where_to_start(log: Log, name: str) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic, partitions=2)
    with log.producer() as producer:
        for at in range(20):
            producer.send(topic, str(at), partition=at % 2, timestamp_ms=1_700_000_000_000 + at)

    def read(**options: object) -> list[str]:
        with log.consumer(topic, until="end", **options) as consumer:  # type: ignore[call-overload]  # one call for all kinds of start
            return sorted((record.value for record in consumer), key=int)

    assert read(start="earliest") == [str(at) for at in range(20)]
    assert read(start="latest") == []
    assert read(start=8) == ["16", "17", "18", "19"]
    assert read(start={0: 9, 1: 10}) == ["18"]
    assert read(start={0: 9}) == ["18"], "and the other from its end"
    with pytest.raises(ConfigurationError, match=r"partition 99, which is not read \(.*: 0, 1\)"):
        read(start={0: 0, 99: 0})
    with pytest.raises(ConfigurationError, match="partition 0, which is not read"):
        read(start={0: 0}, partitions=[1])
    with pytest.raises(
        ConfigurationError, match=r"did you mean 'earliest'.*\"latest\", a datetime"
    ):
        read(start="earlest")
    with pytest.raises(ConfigurationError, match="did you mean 'earliest'"):
        read(start="earlest", group=name)
    for wrong in (None, True, 1.5, [3], {1: True}, {1: "latest"}):
        with pytest.raises(ConfigurationError, match="start is") as caught:
            read(start=wrong)
        assert '"earliest"' in caught.value.remedy
    for negative in (-1, -2, -7, {1: -1}):
        with pytest.raises(ConfigurationError, match=r"start is offset -.*offsets are 0 or more"):
            read(start=negative)
    with pytest.raises(ConfigurationError, match=r'"range" or "roundrobin"'):
        read(assignor="sticky", group=name)
    with pytest.raises(ConfigurationError, match=rf'a Topic is needed.*Topic\("{name}"\)'):
        log.consumer(name)  # type: ignore[arg-type]  # a name is what is wrong
    assert read(start="earliest", partitions=[1]) == [str(at) for at in range(1, 20, 2)]
    when = datetime.fromtimestamp(1_700_000_000.017, UTC)
    assert read(start=when) == ["17", "18", "19"]
    assert read(start=datetime(2030, 1, 1, tzinfo=UTC)) == []


def test_until_end_takes_the_end_as_it_was(log: Log, name: str) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic)
    with log.producer() as producer:
        producer.send(topic, "before")
        producer.flush()
        with log.consumer(topic, start="earliest", until="end") as consumer:
            producer.send(topic, "after")
            producer.flush()
            assert [record.value for record in consumer] == ["before"]
            assert consumer.finished
            assert consumer.poll() == []


def test_a_tail_sees_what_comes(log: Log, name: str) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic)
    with log.producer() as producer:
        producer.send(topic, "old")
        producer.flush()
        with log.consumer(topic, start=1) as consumer:
            assert consumer.poll(timeout_s=0) == []
            producer.send(topic, "new")
            producer.flush()
            assert next(consumer).value == "new"
            assert not consumer.finished


def test_an_offset_out_of_range_is_raised(log: Log, name: str) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic)
    with (
        log.consumer(topic, start=100) as consumer,
        pytest.raises(LogError, match="earliest") as caught,
    ):
        next(consumer)
    assert caught.value.code == "AUTO_OFFSET_RESET"


def test_a_poison_record_is_named_and_can_be_passed(log: Log, name: str) -> None:
    raw = Topic(name)
    log.topics.create(raw)
    with log.producer() as producer:
        for data in (b'{"id":1,"amount":1}', b"poison", b'{"id":2,"amount":2}'):
            producer.send(raw, data)
    orders = Topic(name, value=Order)
    with log.consumer(orders, start="earliest", until="end") as consumer:
        assert next(consumer).value.id == 1
        with pytest.raises(InvalidDataError, match=rf"{name}\[0\]@1"):
            next(consumer)
        assert next(consumer).value.id == 2
    with log.consumer(orders, start="earliest", until="end") as consumer:
        assert [record.value.id for record in consumer.poll(10, PATIENCE_S)] == [1]
        with pytest.raises(InvalidDataError):
            consumer.poll(10, PATIENCE_S)
        assert [record.value.id for record in consumer.poll(10, PATIENCE_S)] == [2]


def test_administration(log: Log, name: str) -> None:
    assert log.topics.create(name, partitions=2, configs={"max.message.bytes": "2000"}).name == name
    with pytest.raises(LogError) as exists:
        log.topics.create(name)
    assert exists.value.code == "TOPIC_ALREADY_EXISTS"
    assert log.topics.ensure(name, partitions=1).partitions == 2
    with pytest.raises(ConfigurationError, match="2 partitions"):
        log.topics.ensure(name, partitions=3)
    assert log.topics.add_partitions(name, 3).partitions == 3
    details = log.topics.describe(name)
    assert [(part.earliest, part.latest) for part in details.partitions] == [(0, 0)] * 3
    assert details.configs["max.message.bytes"] == "2000"
    assert "max.message.bytes" in details.overrides
    assert name in {info.name for info in log.topics.list()}
    log.topics.delete(name)
    assert name not in {info.name for info in log.topics.list()}


def test_asking_for_a_topic_does_not_create_it(log: Log, name: str) -> None:
    for ask in (log.topics.describe, log.topics.partition_count, log.topics.delete):
        with pytest.raises(LogError) as caught:
            ask(name)
        assert caught.value.code == "UNKNOWN_TOPIC_OR_PARTITION"
        assert "topic create" in caught.value.remedy
    with pytest.raises(LogError):
        log.consumer(Topic(name))
    assert name not in {info.name for info in log.topics.list()}


def test_a_partition_that_is_not_there(log: Log, name: str) -> None:
    log.topics.create(name, partitions=2)
    with pytest.raises(ConfigurationError, match="no partition 2"):
        log.consumer(Topic(name), partitions=[1, 2])


def test_a_failed_delivery_is_raised(log: Log, name: str) -> None:
    topic = Topic(name)
    log.topics.create(topic, configs={"max.message.bytes": "1000"})
    with log.producer() as producer:
        handle = producer.send(topic, b"x" * 5000)
        with pytest.raises(LogError) as caught:
            handle.result()
        assert caught.value.code == "MESSAGE_TOO_LARGE"
        assert not caught.value.retriable

    def send_two() -> None:
        with log.producer() as producer:
            producer.send(topic, b"x" * 5000)
            producer.send_many(topic, [b"y" * 5000])

    with pytest.raises(LogError, match="not delivered") as at_exit:
        send_two()
    assert "2 records" in at_exit.value.__notes__[0]


def test_an_exception_in_the_block_is_not_hidden(log: Log, name: str) -> None:
    topic = Topic(name)
    log.topics.create(topic, configs={"max.message.bytes": "1000"})

    def fail() -> None:
        with log.producer() as producer:
            producer.send(topic, b"x" * 5000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    assert "not delivered" in caught.value.__notes__[0]


def test_a_wrong_type_is_refused_before_it_is_sent(log: Log, name: str) -> None:
    orders = Topic(name, value=Order)
    log.topics.create(orders)
    with log.producer() as producer, pytest.raises(InvalidDataError):
        producer.send(orders, "text")  # type: ignore[misc]  # what a type checker refuses too
    assert log.topics.describe(orders).partitions[0].latest == 0


def test_one_producer_for_several_threads(log: Log, name: str) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic)
    with log.producer() as producer:

        def work(number: int) -> None:
            handles = [producer.send(topic, f"{number}-{at}") for at in range(200)]
            offsets = [handle.result(PATIENCE_S).offset for handle in handles]
            assert offsets == sorted(offsets)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with log.consumer(topic, start="earliest", until="end") as consumer:
        assert len({record.value for record in consumer}) == 800


def test_leaving_the_log_closes_what_is_open(broker: EmbeddedCluster, name: str) -> None:
    topic = Topic(name, value=str)
    with bucketlog.connect(broker.bootstrap) as log:
        log.topics.create(topic)
        producer = log.producer()
        consumer = log.consumer(topic, start="earliest")
        producer.send(topic, "flushed by the log")
    with pytest.raises(RuntimeError):
        consumer.poll()
    with (
        bucketlog.connect(broker.bootstrap) as log,
        log.consumer(topic, start="earliest", until="end") as again,
    ):
        assert [record.value for record in again] == ["flushed by the log"]


def test_a_name_is_no_topic_and_a_number_no_header(log: Log, name: str) -> None:
    log.topics.create(name)
    wanted = rf'a Topic is needed, not .*Topic\("{name}"\)'
    with pytest.raises(ConfigurationError, match=wanted):
        log.consumer(name, group=name)  # type: ignore[arg-type]  # a name is what is wrong
    with log.producer() as producer:
        with pytest.raises(ConfigurationError, match=wanted):
            producer.send(name, b"x")  # type: ignore[arg-type]  # a name is what is wrong
        with pytest.raises(ConfigurationError, match=wanted):
            producer.send_many(name, [b"x"])  # type: ignore[arg-type]  # a name is what is wrong
        with pytest.raises(InvalidDataError, match=r"header 'n' is 1, of type int .give it as str"):
            producer.send(Topic(name), b"x", headers={"n": 1})  # type: ignore[dict-item]  # wrong, too
