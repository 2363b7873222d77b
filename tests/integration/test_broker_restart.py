"""How the broker goes and comes back, and what it says while Redis is gone."""

import signal
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from redis import Redis as SyncRedis

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.kafka_requests import (
    LATEST,
    list_offset,
    produce,
    produce_values,
    produced,
)
from tests.rigs.patience import PATIENCE_S, Deadline, eventually
from tests.rigs.wire_client import WireClient, build_batch
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.sequencing import start_valkey


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions)])[name].result(PATIENCE_S)


def produce_values_to(bootstrap: str, topic: str, values: list[bytes]) -> None:
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})

    def told(error: object, message: Message) -> None:
        if error is not None:
            failed.append(error)

    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 3, on_delivery=told)
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []


def read_all(bootstrap: str, topic: str, count: int) -> dict[int, list[tuple[int, bytes | None]]]:
    """Offsets and values by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
        found: dict[int, list[tuple[int, bytes | None]]] = {number: [] for number in range(3)}
        for _ in range(count):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            found[partition].append((offset, message.value()))
        return found
    finally:
        consumer.close()


VALUES = [b"value-%d" % number for number in range(300)]
STORED = {
    number: [(at, value) for at, value in enumerate(VALUES[number::3])] for number in range(3)
}


def test_sigterm_ends_it_and_a_restart_shows_everything(start: Start) -> None:
    first = start().wait_until_ready()
    assert first.ready["epoch"] == 1
    create_topic(first.bootstrap, "t", 3)
    create_topic(first.bootstrap, "empty", 7)
    produce_values_to(first.bootstrap, "t", VALUES)
    assert first.terminate() == 0
    second = start().wait_until_ready()
    assert second.ready["node_id"] == first.ready["node_id"]  # the first has left
    assert second.ready["epoch"] == 1  # Redis has lost nothing
    assert second.ready["cluster_id"] == first.ready["cluster_id"]
    metadata = AdminClient({"bootstrap.servers": second.bootstrap}).list_topics(timeout=PATIENCE_S)
    assert {name: len(topic.partitions) for name, topic in metadata.topics.items()} == {
        "t": 3,
        "empty": 7,
    }
    assert read_all(second.bootstrap, "t", len(VALUES)) == STORED
    produce_values_to(second.bootstrap, "t", [b"more"])
    assert read_all(second.bootstrap, "t", len(VALUES) + 1)[0][-1] == (100, b"more")
    assert second.terminate() == 0


def test_after_kill_9_a_restart_joins_the_epoch_at_once(start: Start) -> None:
    timing = {"session_timeout_ms": "120000"}  # longer than the restart takes
    first = start(**timing).wait_until_ready()
    create_topic(first.bootstrap, "t", 3)
    produce_values_to(first.bootstrap, "t", VALUES)
    first.kill()
    second = start(**timing).wait_until_ready()
    assert "waiting" not in second.log.read_text()
    assert (second.ready["node_id"], second.ready["epoch"]) == (1, 1)  # 0 may be alive
    assert read_all(second.bootstrap, "t", len(VALUES)) == STORED
    assert second.terminate() == 0


def test_a_node_id_of_its_own_is_waited_for_after_kill_9(start: Start) -> None:
    settings = {"heartbeat_interval_ms": "200", "session_timeout_ms": "3000", "node_id": "4"}
    first = start(**settings).wait_until_ready()
    create_topic(first.bootstrap, "t", 3)
    produce_values_to(first.bootstrap, "t", VALUES)
    second = start(**settings)
    eventually(lambda: "waiting" in second.log.read_text())
    first.kill()
    second.wait_until_ready()
    assert (second.ready["node_id"], second.ready["epoch"]) == (4, 1)
    assert read_all(second.bootstrap, "t", len(VALUES)) == STORED
    assert second.terminate() == 0


def test_a_restart_on_an_empty_redis_shows_everything(start: Start, tmp_path: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(start_valkey(tmp_path / "one.sock"))
        first = start(redis_url=f"unix://{tmp_path}/one.sock").wait_until_ready()
        create_topic(first.bootstrap, "t", 3)
        produce_values_to(first.bootstrap, "t", VALUES)
        assert first.terminate() == 0
    with start_valkey(tmp_path / "two.sock"):
        second = start(redis_url=f"unix://{tmp_path}/two.sock").wait_until_ready()
        assert read_all(second.bootstrap, "t", len(VALUES)) == STORED
        assert second.terminate() == 0


def accepts(bootstrap: str) -> bool:
    try:
        WireClient(bootstrap).close()
    except ConnectionError:
        return False
    return True


def test_sigterm_flushes_what_was_taken_and_takes_no_more(start: Start) -> None:
    first = start(flush_interval_ms="4000").wait_until_ready()
    create_topic(first.bootstrap, "t", 1)
    with WireClient(first.bootstrap) as client:
        client.send(ApiKey.PRODUCE, 9, **produce_values("t", build_batch([(None, b"taken")])))
        while first.frame_bytes() == 0:  # it waits for the next flush
            assert first.process.poll() is None
        first.process.send_signal(signal.SIGTERM)
        while accepts(first.bootstrap):  # what comes before that is still taken
            assert first.process.poll() is None
        client.send(ApiKey.PRODUCE, 9, **produce_values("t", build_batch([(None, b"too late")])))
        assert produced(client) == (0, 0, None, None)
        assert client.read_frame() is None
    assert first.wait() == 0
    second = start().wait_until_ready()
    with WireClient(second.bootstrap) as client:
        assert list_offset(client, "t", LATEST)[1] == 1


def test_sigterm_under_load_answers_what_was_taken(start: Start) -> None:
    """Every answer that came is true, and the broker does not wait for a client that goes on."""
    first = start().wait_until_ready()
    create_topic(first.bootstrap, "t", 3)
    acknowledged: list[int] = []

    def load() -> None:
        with WireClient(first.bootstrap) as client:
            try:
                for number in range(1_000_000):
                    batch = build_batch([(None, b"%d" % number)])
                    answer = produce(client, "t", batch)
                    assert answer.error == 0
                    assert answer.base_offset == number
                    acknowledged.append(number)
            except ConnectionError:
                pass

    worker = Thread(target=load)
    worker.start()
    while len(acknowledged) < 50:
        assert worker.is_alive()
        worker.join(0.001)
    assert first.terminate() == 0
    worker.join(PATIENCE_S)
    assert not worker.is_alive()
    second = start().wait_until_ready()
    stored = read_all(second.bootstrap, "t", len(acknowledged))[0]
    assert stored == [(number, b"%d" % number) for number in acknowledged]
    assert second.terminate() == 0


def test_a_signal_while_it_waits_to_start_ends_it(start: Start) -> None:
    timing = {"heartbeat_interval_ms": "200", "session_timeout_ms": "20000", "node_id": "1"}
    start(**timing).wait_until_ready().kill()
    second = start(**timing)
    deadline = Deadline("it does not wait")
    while "waiting" not in second.log.read_text():
        assert second.process.poll() is None
        deadline.pause()
    assert second.terminate() == 0
    assert "Traceback" not in second.log.read_text()


def test_an_idle_broker_finds_out_that_redis_was_wiped(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "own.sock"
    with start_valkey(path):
        broker = start(redis_url=f"unix://{path}", heartbeat_interval_ms="50").wait_until_ready()
        create_topic(broker.bootstrap, "t", 3)
        produce_values_to(broker.bootstrap, "t", VALUES)
        assert broker.readiness() == (200, {})
        with SyncRedis(unix_socket_path=str(path)) as redis:
            redis.flushall()
        wait_for_epoch(broker, 2)
        assert "epoch 1 is over: lost: the sequencer has no state" in broker.log.read_text()
        assert "Traceback" not in broker.log.read_text()
        assert read_all(broker.bootstrap, "t", len(VALUES)) == STORED
        produce_values_to(broker.bootstrap, "t", [b"more"])
        assert read_all(broker.bootstrap, "t", len(VALUES) + 1)[0][-1] == (100, b"more")
        assert broker.terminate() == 0


def wait_for_epoch(broker: BrokerProcess, epoch: int) -> None:
    eventually(
        lambda: broker.metrics()["bucketlog_epoch"] == epoch and broker.readiness()[0] == 200
    )


def test_redis_gone_and_back_is_a_matter_of_time(start: Start, tmp_path: Path) -> None:
    """Gone: not ready, says why, and reads on. Back, empty: a new epoch."""
    path = tmp_path / "own.sock"
    settings = {"redis_url": f"unix://{path}", "heartbeat_interval_ms": "50"}
    with start_valkey(path):
        broker = start(**settings).wait_until_ready()
        create_topic(broker.bootstrap, "t", 3)
        produce_values_to(broker.bootstrap, "t", VALUES)
    eventually(lambda: broker.readiness()[0] != 200)
    assert any("unreachable" in reason for reason in broker.readiness()[1].values())
    assert "writing" not in broker.readiness()[1]  # out of reach is not lost
    assert read_all(broker.bootstrap, "t", len(VALUES)) == STORED
    with start_valkey(path):
        wait_for_epoch(broker, 2)
        assert read_all(broker.bootstrap, "t", len(VALUES)) == STORED
        produce_values_to(broker.bootstrap, "t", [b"more"])
        assert broker.terminate() == 0
