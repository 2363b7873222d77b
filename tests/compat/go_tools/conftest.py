"""Fixtures of the tests of a program: the program, its metrics, and topics and groups for it.

The environment variable `PROGRAM` has the path of the program, and `GIVEN_BROKER` the address of a
broker. Each test uses new names, so the broker may have data of other tests.
"""

import os
import socket
import subprocess
import threading
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.rigs.patience import PATIENCE_S, Deadline, eventually

PAUSE_S = 0.5
PARTITIONS = 2
RECORDS = 5


@dataclass(frozen=True, slots=True)
class Program:
    path: str
    home: Path
    """The program's home folder, where it may look for a configuration."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run the program and return its standard output. Raises `AssertionError` if its exit code
        is not 0."""
        done = subprocess.run(
            [self.path, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment(),
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), **self.variables}

    @contextmanager
    def serving(self, port: int, *arguments: str) -> Iterator["Metrics"]:
        """Run the program, and yield the metrics that it serves at this port."""
        log = self.home / "program.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [self.path, *arguments], env=self.environment(), stdout=output, stderr=output
            )
            try:
                yield Metrics(f"http://127.0.0.1:{port}/metrics", process, log)
            finally:
                process.kill()
                process.wait()


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of a running program, in Prometheus' text format."""

    address: str
    process: "subprocess.Popen[bytes]"
    log: Path
    last: list[str] = field(default_factory=list)
    """The text of the latest response; empty before the first response."""

    def wait_for(self, metric: str, value: int, **labels: str) -> None:
        """Wait until the metric has this value for exactly these labels."""
        pairs = ",".join(f'{name}="{text}"' for name, text in sorted(labels.items()))
        sample = f"{metric}{{{pairs}}} {value}" if labels else f"{metric} {value}"
        self.wait_until(lambda text: sample in text.splitlines())

    def wait_until(self, found: Callable[[str], bool]) -> None:
        """Wait until `found` returns True for the text of the metrics."""

        def look() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            with urllib.request.urlopen(self.address, timeout=30) as answer:
                self.last[:] = [answer.read().decode()]
            return found(self.last[0])

        eventually(look, lambda: self.last, pause_s=PAUSE_S, despite=(OSError,))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(os.environ["PROGRAM"], tmp_path)


@pytest.fixture
def bootstrap() -> str:
    return os.environ["GIVEN_BROKER"]


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def topic(name: str, bootstrap: str) -> str:
    """A topic with two partitions and five records in partition 0."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(
            name,
            f"value-{number}",
            key=f"key-{number}",
            partition=0,
            headers={"number": str(number)},
        )
    assert producer.flush(PATIENCE_S) == 0
    return name


@pytest.fixture
def group(topic: str, bootstrap: str) -> str:
    """A group without members that has committed offset 2 of partition 0."""
    name = f"group-{topic}"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    return name


@pytest.fixture
def member(topic: str, bootstrap: str) -> Iterator[str]:
    """A group with one member, which has committed the end offsets of the topic."""
    name = f"member-{topic}"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    consumer.subscribe([topic])
    deadline = Deadline("the group assigns no partitions")
    while len(consumer.assignment()) < PARTITIONS:
        deadline.check()
        consumer.poll(PAUSE_S)
    ends = [TopicPartition(topic, 0, RECORDS), TopicPartition(topic, 1, 0)]
    consumer.commit(offsets=ends, asynchronous=False)
    stop = threading.Event()
    thread = threading.Thread(target=poll_until, args=(consumer, stop))
    thread.start()
    yield name
    stop.set()
    thread.join()
    consumer.close()


def poll_until(consumer: Consumer, stop: threading.Event) -> None:
    """Poll until `stop` is set, so that the consumer stays in its group."""
    while not stop.is_set():
        consumer.poll(PAUSE_S)
