"""Idempotent producers that are other people's: aiokafka, and Apache Kafka's verifiable producer.

As `tests.scenarios.load.Load`: each sends on and on, notes in a history what was acknowledged, and
takes whatever its client gives up for a failure.
"""

import asyncio
import json
import signal
import threading
import time
from abc import abstractmethod
from pathlib import Path

import aiokafka

from tests.models.history import History, Place, Sent
from tests.rigs.patience import let_pass_async
from tests.scenarios.load import PADDING, PROGRESS_TIMEOUT_S, Progress, sent_of
from tests.servers.kafka_tools import KafkaTools

IN_FLIGHT_RECORDS = 500
JAVA_CONFIG = f"""\
enable.idempotence=true
acks=all
retries=2147483647
delivery.timeout.ms={int(PROGRESS_TIMEOUT_S * 1000)}
request.timeout.ms=20000
retry.backoff.ms=20
reconnect.backoff.ms=10
reconnect.backoff.max.ms=100
metadata.max.age.ms=1000
"""


class ForeignLoad(Progress):
    """About `records_a_second`."""

    def __init__(self, name: str, bootstrap: str, history: History, *, topic: str) -> None:
        super().__init__(name, history)
        self._where = bootstrap
        self._topic = topic
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
                self.failed(f"{self.name} ended with an error: see its traceback")

    @abstractmethod
    def _send_on(self) -> None: ...


class AioLoad(ForeignLoad):
    def __init__(
        self,
        name: str,
        bootstrap: str,
        history: History,
        *,
        topic: str,
        partitions: int,
        pause_s: float,
    ) -> None:
        super().__init__(name, bootstrap, history, topic=topic)
        self._partitions = partitions
        self._pause_s = pause_s

    def _send_on(self) -> None:
        asyncio.run(self._send_all())

    async def _send_all(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._where,
            enable_idempotence=True,
            retry_backoff_ms=20,
            metadata_max_age_ms=1000,
        )
        await producer.start()
        slots, number = asyncio.Semaphore(IN_FLIGHT_RECORDS), 0
        waiting: set[asyncio.Future[aiokafka.structs.RecordMetadata]] = set()
        try:
            while not self._stopping.is_set() and not self.failures:
                await slots.acquire()
                sent = Sent(self.name, number)
                self.history.invoke(sent, time.monotonic())
                value = f"{sent.producer} {sent.number} {PADDING}".encode()
                told = await producer.send(self._topic, value, partition=number % self._partitions)
                number += 1
                waiting.add(told)
                told.add_done_callback(lambda told, sent=sent: self._settled(sent, told))
                told.add_done_callback(waiting.discard)
                told.add_done_callback(lambda _: slots.release())
                await let_pass_async(self._pause_s)
            if waiting:
                await asyncio.wait(waiting, timeout=PROGRESS_TIMEOUT_S)
        finally:
            await producer.stop()

    def _settled(self, sent: Sent, told: "asyncio.Future[aiokafka.structs.RecordMetadata]") -> None:
        error = None if told.cancelled() else told.exception()
        if told.cancelled() or error is not None:
            self.failed(f"{sent}: {error!r}")
        else:
            self.was_acknowledged(sent, Place(told.result().partition, told.result().offset))


class JavaLoad(ForeignLoad):
    """Apache Kafka's verifiable producer; its values are `<number>.<number>`. Raises
    `ConfigurationError` where Apache Kafka's tools are not installed."""

    def __init__(
        self,
        prefix: int,
        bootstrap: str,
        history: History,
        *,
        topic: str,
        folder: Path,
        records_a_second: int,
    ) -> None:
        super().__init__(f"{prefix}", bootstrap, history, topic=topic)
        self._config = folder / f"java-producer-{prefix}.properties"
        self._config.write_text(JAVA_CONFIG)
        self._records_a_second = records_a_second
        self._tools = KafkaTools(bootstrap)

    def _send_on(self) -> None:
        with self._config.with_suffix(".log").open("wb") as complaints:  # it warns of each retry
            process = self._tools.start(
                "kafka-verifiable-producer",
                *("--topic", self._topic, "--throughput", str(self._records_a_second)),
                *("--value-prefix", self.name, "--command-config", str(self._config)),
                complaints=complaints,
            )

        def end() -> None:
            self._stopping.wait()
            process.send_signal(signal.SIGTERM)

        ending = threading.Thread(target=end, name=f"end of {self.name}")
        ending.start()
        output = process.stdout
        assert output is not None
        try:
            for line in output:
                if line.startswith("{"):
                    self._note(line)
            process.wait(PROGRESS_TIMEOUT_S)
            if not self._stopping.is_set():
                self.failed(f"it ended by itself, exit code {process.returncode}")
        finally:
            self._stopping.set()
            ending.join()
            process.kill()
            process.wait(PROGRESS_TIMEOUT_S)
            output.close()

    def _note(self, line: str) -> None:
        event = json.loads(line)
        if event["name"] == "producer_send_success":
            sent = sent_of(event["value"].encode())
            self.was_acknowledged(sent, Place(event["partition"], event["offset"]))
        elif event["name"] == "producer_send_error":
            self.failed(f"{event['value']}: {event.get('exception')}: {event.get('message')}")
