"""Kafka Streams counts words with `exactly_once_v2` while brokers and instances are killed.

At full size, from the repository's root: `make prove WHAT=streams-eos`. Two instances of Apache
Kafka's word count run on three brokers. A producer writes lines all the time. In the end, the
counts must equal the number of words written.
"""

import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import Popen

from confluent_kafka import Message, Producer

from tests.proofs.shortfall import Figures
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.scenarios.committed_watch import CommittedReader, committed_log
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster
from tests.servers.kafka_tools import KafkaTools

WORDS, COUNTS = "streams-plaintext-input", "streams-wordcount-output"
PARTITIONS = 3
BROKERS, INSTANCES = 3, 2
VOCABULARY = 20
LINE_PAUSE_S = 0.02
SETTINGS = {
    "transactions": "true",
    "checkpoint_interval_ms": "5000",
    "flush_interval_ms": "0",
    "group_initial_rebalance_delay_ms": "0",
}
SESSION_TIMEOUT_MS = 6_000
IN_MEMORY = (
    "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"  # no disk
)
GAVE_UP = "SHUTDOWN_CLIENT"
"""Logged by an instance that gets a fatal error."""
TAIL_BYTES = 4_000


@dataclass(slots=True)
class StreamsFigures:
    store: str
    lines: int = 0
    words: int = 0
    broker_kills: int = 0
    instance_kills: int = 0
    wipes: int = 0
    counts_shown: int = 0
    longest_without_count_s: float = 0.0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> Figures:
        return asdict(self)


class _Writer(threading.Thread):
    """Writes lines; `tally` counts their words."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="lines")
        self.tally: Counter[str] = Counter()
        self.lines = 0
        self.left = 0
        """The number of lines that were never acknowledged."""
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        while not self._stopping.wait(LINE_PAUSE_S):
            words = ["all", f"w{self.lines % VOCABULARY}", f"v{self.lines % 3}"]
            self._producer.produce(WORDS, " ".join(words), partition=self.lines % PARTITIONS)
            self._producer.poll(0)
            self.tally.update(words)
            self.lines += 1
        self.left = self._producer.flush(PATIENCE_S)


class _Application:
    """Instances of the word count. The end of the `with` block ends them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._tools = KafkaTools(cluster.bootstrap)
        self._running: list[Popen[str]] = []

    def __enter__(self) -> "_Application":
        self._running = [self._start(number) for number in range(INSTANCES)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def kill(self, number: int) -> None:
        """Kill an instance (kill -9), and start a new process."""
        self._running[number].kill()
        self._running[number].wait()
        self._running[number] = self._start(number)

    def problems(self) -> list[str]:
        found = [
            f"instance {number} ended with {process.returncode}"
            for number, process in enumerate(self._running)
            if process.poll() is not None
        ]
        for number in range(INSTANCES):
            said = self._said(number).read_text(errors="replace")
            if GAVE_UP in said:
                at = said.index(GAVE_UP)
                found.append(f"instance {number} gave up: {said[at : at + TAIL_BYTES]}")
        return found

    def tails(self) -> str:
        texts = [self._said(number).read_text(errors="replace") for number in range(INSTANCES)]
        return "\n".join(text[-TAIL_BYTES:] for text in texts)

    def _said(self, number: int) -> Path:
        return self._cluster.folder / f"streams-{number}.log"

    def _start(self, number: int) -> Popen[str]:
        folder = self._cluster.folder
        values = {
            "bootstrap.servers": self._cluster.bootstrap,
            "processing.guarantee": "exactly_once_v2",
            "state.dir": folder / f"streams-{number}",
            "commit.interval.ms": 100,
            "consumer.session.timeout.ms": SESSION_TIMEOUT_MS,
            "replication.factor": 1,
            "dsl.store.suppliers.class": IN_MEMORY,
        }
        path = folder / f"streams-{number}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        with self._said(number).open("ab") as said:
            return self._tools.start_application("word-count", path, said)


def streams_count(store: Store, *, kills: int, wipes: int, between_s: float) -> StreamsFigures:
    """Run the scenario; `problems` lists what went wrong. Raises `AssertionError` if the counts
    stay incomplete, and `ConfigurationError` if Apache Kafka's tools are not installed."""
    began = time.perf_counter()
    figures = StreamsFigures(store)
    with ExitStack() as closing:
        cluster = closing.enter_context(running_cluster(BROKERS, store=store, settings=SETTINGS))
        for topic in (WORDS, COUNTS):
            create_topic(cluster.brokers[0].bootstrap, topic, PARTITIONS)
        reader = CommittedReader(cluster.bootstrap, [COUNTS], PARTITIONS, _count)
        writer = _Writer(cluster.bootstrap)
        reader.start()
        closing.callback(reader.stop)
        writer.start()
        closing.callback(writer.stop)
        with _Application(cluster) as application:
            eventually(lambda: reader.count > 0, application.tails)
            _faults(cluster, application, figures, kills=kills, wipes=wipes, between_s=between_s)
            writer.stop()
            assert writer.left == 0, f"{writer.left} lines are not acknowledged"
            figures.lines, figures.words = writer.lines, writer.tally.total()
            eventually(
                lambda: _latest(reader)[0].total() >= writer.tally.total(),
                lambda: f"{_latest(reader)[0]}, not {writer.tally}\n{application.tails()}",
                pause_s=0.5,
            )
            figures.problems += application.problems()
        reader.stop()
        figures.counts_shown = reader.count
        figures.longest_without_count_s = round(reader.longest_pause_s(), 1)
        figures.problems += reader.failures
        figures.problems += _wrong(reader, writer.tally)
        final = committed_log(cluster.bootstrap, [COUNTS], PARTITIONS, _count)
        if final != reader.shown:
            figures.problems.append("the consumer and a new consumer got different records")
    figures.seconds = round(time.perf_counter() - began, 1)
    return figures


def _faults(
    cluster: Cluster,
    application: _Application,
    figures: StreamsFigures,
    *,
    kills: int,
    wipes: int,
    between_s: float,
) -> None:
    """Kill brokers and instances in turn, and wipe Redis in between."""
    wiped = {(number + 1) * kills // (wipes + 1) for number in range(wipes)}
    for turn in range(kills):
        let_pass(between_s / 2)
        if turn in wiped:
            cluster.valkey.wipe()
            figures.wipes += 1
        let_pass(between_s / 2)
        if turn % 2:
            application.kill(turn // 2 % INSTANCES)
            figures.instance_kills += 1
        else:
            broker = cluster.brokers[turn // 2 % BROKERS]
            broker.kill()
            broker.start()
            figures.broker_kills += 1


def _count(message: Message) -> bytes:
    """The text `word count` of a record."""
    (number,) = struct.unpack(">q", message.value() or b"")
    return b"%s %d" % (message.key() or b"", number)


def _latest(reader: CommittedReader) -> tuple[Counter[str], list[str]]:
    """The last count of each word, and complaints about counts that did not grow."""
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for rows in reader.shown.values():
        for offset, text in list(rows):
            word, number = text.decode().split(" ")
            if int(number) <= found[word]:
                wrong.append(f"offset {offset}: {word} goes from {found[word]} to {number}")
            found[word] = int(number)
    return found, wrong


def _wrong(reader: CommittedReader, tally: Mapping[str, int]) -> list[str]:
    found, wrong = _latest(reader)
    differences = [
        f"{word} was counted {found[word]} times, and written {count} times"
        for word, count in sorted(tally.items())
        if found[word] != count
    ]
    return [*wrong[:5], *differences]
