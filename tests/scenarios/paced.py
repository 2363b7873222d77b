"""Producers at a steady pace, by three kinds of clients, that tell how long acknowledgements took.

The schedule is fixed: a record's time runs from when it was due, so that a producer that was held
up is not flattered. Invariant: whatever a client gives up, or was never settled, is in `failures`.
"""

import asyncio
import re
import signal
import subprocess
import threading
import time
from abc import abstractmethod
from functools import partial
from pathlib import Path

import aiokafka
import confluent_kafka

from tests.rigs.patience import PATIENCE_S, let_pass_async
from tests.servers.kafka_tools import KafkaTools

RECORD_BYTES = 10_000
WINDOW_MS = 1000
_VALUE = b"x" * RECORD_BYTES
_GIVEN_UP = re.compile(r"^(\S+(Exception|Error))\b", re.MULTILINE)
_WINDOW = re.compile(r"(\d+) records sent, .* ([\d.]+) ms max latency")


class Paced(threading.Thread):
    """`bytes_per_s` of records of 10 kB, until `stop`."""

    def __init__(self, name: str, bootstrap: str, topic: str, *, bytes_per_s: float) -> None:
        super().__init__(name=name)
        self.acknowledged = 0
        self.failures: list[str] = []
        self.seconds: list[tuple[float, float]] = []
        """When a record was acknowledged, and how long after it was due."""
        self._where = bootstrap
        self._topic = topic
        self._pause_s = RECORD_BYTES / bytes_per_s
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        ended = False
        try:
            self._send_on()
            ended = True
        finally:
            if not ended:
                self.failures.append("it ended with an error: see its traceback")

    @abstractmethod
    def _send_on(self) -> None: ...

    def _settled(self, due: float, error: object) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        now = time.monotonic()
        self.acknowledged += 1
        self.seconds.append((now, now - due))


class PacedLibrdkafka(Paced):
    def _send_on(self) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self._where, "enable.idempotence": True, "log_level": 0}
        )
        due = time.monotonic()
        while not self._stopping.is_set():
            producer.produce(
                self._topic,
                _VALUE,
                on_delivery=partial(self._reported, due),
            )
            due += self._pause_s
            producer.poll(max(0.0, due - time.monotonic()))
        if left := producer.flush(PATIENCE_S):
            self.failures.append(f"{left} records were never settled")

    def _reported(
        self, due: float, error: confluent_kafka.KafkaError | None, message: object
    ) -> None:
        self._settled(due, error)


class PacedAiokafka(Paced):
    def _send_on(self) -> None:
        asyncio.run(self._send_all())

    async def _send_all(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._where, enable_idempotence=True, max_batch_size=1 << 20
        )
        await producer.start()
        waiting: set[asyncio.Future[object]] = set()
        due = time.monotonic()
        try:
            while not self._stopping.is_set():
                told = await producer.send(self._topic, _VALUE)
                waiting.add(told)
                told.add_done_callback(waiting.discard)
                told.add_done_callback(
                    lambda told, due=due: self._settled(
                        due, "cancelled" if told.cancelled() else told.exception()
                    )
                )
                due += self._pause_s
                await let_pass_async(due - time.monotonic())
            if waiting:
                await asyncio.wait(set(waiting), timeout=PATIENCE_S)
            if waiting:
                self.failures.append(f"{len(waiting)} records were never settled")
        finally:
            await producer.stop()


class PacedJava(Paced):
    """Apache Kafka's producer performance tool. It tells mean and maximum of each second:
    `windows`; its `seconds` stay empty, and what is on its way when it is stopped is not told."""

    def __init__(
        self, name: str, bootstrap: str, topic: str, *, bytes_per_s: float, folder: Path
    ) -> None:
        super().__init__(name, bootstrap, topic, bytes_per_s=bytes_per_s)
        self.windows: list[tuple[float, float]] = []
        """When it told, and the longest that an acknowledgement took, in seconds."""
        self._complaints = folder / f"{name}.log"
        self._tools = KafkaTools(bootstrap)

    def _send_on(self) -> None:
        with self._complaints.open("wb") as complaints:
            process = self._tools.start(
                "kafka-producer-perf-test",
                *("--topic", self._topic, "--num-records", str(10**9)),
                *("--record-size", str(RECORD_BYTES), "--throughput", f"{1 / self._pause_s:.1f}"),
                *("--command-property", "acks=all", "batch.size=1048576", "linger.ms=5"),
                *("--reporting-interval", str(WINDOW_MS)),
                complaints=complaints,
            )
        ending = threading.Thread(target=self._end, args=(process,), name=f"end of {self.name}")
        ending.start()
        assert process.stdout is not None
        for line in process.stdout:
            if found := _WINDOW.search(line):
                self.acknowledged += int(found[1])
                self.windows.append((time.monotonic(), float(found[2]) / 1000))
            elif complaint := _GIVEN_UP.match(line):
                self.failures.append(complaint[1])
        code = process.wait()
        self._stopping.set()
        ending.join()
        if code not in (0, 128 + signal.SIGTERM, -signal.SIGTERM):
            self.failures.append(f"exit code {code}")
        self.failures += [each[0] for each in _GIVEN_UP.findall(self._complaints.read_text())]

    def _end(self, process: "subprocess.Popen[str]") -> None:
        self._stopping.wait()
        process.send_signal(signal.SIGTERM)
