"""`bucketlog dev` killed with kill -9 under load, and started again on the same data.

At full size, from the repository's root: `make prove WHAT=crash`. Killed are all processes of it:
broker, Valkey, guard and the command itself, in another order each time. Idempotent producers go
on through all of it with their own retries.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.scenarios.history import Log, Place, Sent, broken_promises
from tests.scenarios.round_trip import create_topic

TOPIC = "crash"
PARTITIONS = 3
PRODUCERS = 2
START_TIMEOUT_S = 60.0
PROGRESS_TIMEOUT_S = 120.0
IN_FLIGHT_RECORDS = 2000
BURST_RECORDS = 40
BURST_PAUSE_S = 0.01
"""Each producer sends at most some 4,000 records a second, so that readers can reach the end."""
PADDING = "." * 100
METADATA_REFRESH_MS = 1000
"""So soon do producers find that a broker is back which others stood in for."""


@dataclass(frozen=True, slots=True)
class CrashFigures:
    kills: int
    acknowledged: int
    in_log: int
    broken_promises: int
    slowest_restart_s: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class DevCommand:
    """`bucketlog dev --data …` as a person starts it."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> float:
        """Returns the seconds until it said that it is ready. Its port stays the same."""
        began = time.perf_counter()
        command = str(Path(sys.executable).with_name("bucketlog"))
        self._process = subprocess.Popen(
            [command, "dev", "--data", str(self._data), "--port", str(self._port)],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        output = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], START_TIMEOUT_S)
        line = output.readline().decode() if ready else ""
        if "ready at" not in line:
            raise AssertionError(f"`bucketlog dev` did not come up: {line!r}")
        self._port = int(line.strip().rpartition(":")[2])
        return time.perf_counter() - began

    def kill(self, turn: int) -> int:
        """kill -9 of the command and every process under it; returns how many there were."""
        assert self._process is not None
        process = psutil.Process(self._process.pid)
        family = [process, *process.children(recursive=True)]
        turn %= len(family)
        for member in family[turn:] + family[:turn]:
            try:
                os.kill(member.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended with one that was killed before
        psutil.wait_procs(family, START_TIMEOUT_S)
        self._reap()
        return len(family)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._reap()

    def _reap(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.wait(START_TIMEOUT_S)
        self._process.stdout.close()
        self._process = None


class Load(threading.Thread):
    """One idempotent producer that sends on and on; what was acknowledged, and where.

    Record n goes to partition n modulo `partitions`.
    """

    def __init__(
        self,
        name: str,
        bootstrap: str,
        *,
        topic: str = TOPIC,
        partitions: int = PARTITIONS,
        burst_records: int = BURST_RECORDS,
    ) -> None:
        super().__init__(name=name)
        self._topic = topic
        self._partitions = partitions
        self._burst_records = burst_records
        self.acknowledged: list[tuple[Sent, Place]] = []
        self.failures: list[str] = []
        self.progress = threading.Condition()
        self._stopping = threading.Event()
        self._waiting = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": int(PROGRESS_TIMEOUT_S * 1000),
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
                "error_cb": self._noticed,
                "log_level": 0,
            }
        )

    def stop(self) -> None:
        """All that was sent is acknowledged, or it is in `failures`."""
        self._stopping.set()
        self.join()

    def wait_for(self, count: int) -> None:
        """Until so many more are acknowledged. Raises `AssertionError` where none come."""
        with self.progress:
            wanted = len(self.acknowledged) + count
            if not self.progress.wait_for(
                lambda: len(self.acknowledged) >= wanted or self.failures, PROGRESS_TIMEOUT_S
            ):
                raise AssertionError(f"{self.name}: no progress in {PROGRESS_TIMEOUT_S} s")
        if self.failures:
            raise AssertionError(f"{self.name}: {self.failures[:3]}")

    def run(self) -> None:
        try:
            self._send_on()
        except KafkaException as error:  # the producer has met a fatal error
            self._failed(str(error))

    def _send_on(self) -> None:
        number = 0
        while not self._stopping.is_set() and not self.failures:
            if self._waiting >= IN_FLIGHT_RECORDS:
                self._producer.poll(0.05)
                continue
            self._waiting += 1
            self._send(Sent(self.name, number))
            number += 1
            self._producer.poll(0 if number % self._burst_records else BURST_PAUSE_S)
        left = self._producer.flush(PROGRESS_TIMEOUT_S)
        if left:
            self._failed(f"{left} records are neither acknowledged nor refused")

    def _send(self, sent: Sent) -> None:
        def settled(error: KafkaError | None, message: Message) -> None:
            self._waiting -= 1
            with self.progress:
                if error is not None:
                    self.failures.append(f"{sent}: {error}")
                else:
                    partition, offset = message.partition(), message.offset()
                    assert partition is not None
                    assert offset is not None
                    self.acknowledged.append((sent, Place(partition, offset)))
                self.progress.notify_all()

        value = f"{sent.producer} {sent.number} {PADDING}"
        self._producer.produce(
            self._topic,
            value,
            partition=sent.number % self._partitions,
            on_delivery=settled,
        )

    def _noticed(self, error: KafkaError) -> None:
        if error.fatal():
            self._failed(f"fatal: {error}")

    def _failed(self, text: str) -> None:
        with self.progress:
            self.failures.append(text)
            self.progress.notify_all()


def read_log(bootstrap: str, topic: str = TOPIC, partitions: int = PARTITIONS) -> Log:
    """Everything that consumers can see, from the beginning to the high watermarks."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    rows: dict[int, list[tuple[int, Sent]]] = {number: [] for number in range(partitions)}
    unread = set(rows)
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in rows])
        deadline = time.monotonic() + PROGRESS_TIMEOUT_S
        while unread:
            if time.monotonic() > deadline:
                raise AssertionError(f"partitions {unread} do not end in {PROGRESS_TIMEOUT_S} s")
            for message in consumer.consume(1000, timeout=0.1):
                error, partition, offset = message.error(), message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if error is None:
                    rows[partition].append((offset, sent_of(message.value())))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(partition)
                else:
                    raise AssertionError(str(error))
    finally:
        consumer.close()
    return rows


def sent_of(value: str | bytes | None) -> Sent:
    """The record that a value names."""
    assert isinstance(value, bytes)
    producer, number, _ = value.decode().split(" ")
    return Sent(producer, int(number))


def crash(data: Path, kills: int, *, records_between: int) -> CrashFigures:
    """`kills` times: let both producers get `records_between` acknowledged, kill, start again and
    hold the log against all acknowledgements so far. Raises `AssertionError`; nothing is left
    running."""
    began = time.perf_counter()
    command = DevCommand(data)
    try:
        slowest = command.start()
        create_topic(command.bootstrap, TOPIC, PARTITIONS)
        loads = [Load(f"producer-{number}", command.bootstrap) for number in range(PRODUCERS)]
        restart_s, complaints = _under_load(command, loads, kills, records_between)
        failures = [text for load in loads for text in load.failures]
        log = read_log(command.bootstrap)
    finally:
        command.stop()
    acknowledged = [row for load in loads for row in load.acknowledged]
    complaints += broken_promises(acknowledged, log)
    if failures or complaints:
        raise AssertionError("\n".join(failures[:10] + complaints[:20]))
    return CrashFigures(
        kills=kills,
        acknowledged=len(acknowledged),
        in_log=sum(len(rows) for rows in log.values()),
        broken_promises=len(complaints),
        slowest_restart_s=round(max(slowest, restart_s), 2),
        seconds=round(time.perf_counter() - began, 1),
    )


def _under_load(
    command: DevCommand, loads: Sequence[Load], kills: int, records_between: int
) -> tuple[float, list[str]]:
    """The slowest restart in seconds, and the promises that were seen broken."""
    slowest = 0.0
    complaints: list[str] = []
    for load in loads:
        load.start()
    try:
        for turn in range(kills):
            for load in loads:
                load.wait_for(records_between)
            command.kill(turn)
            before = [row for load in loads for row in list(load.acknowledged)]
            slowest = max(slowest, command.start())
            complaints += broken_promises(before, read_log(command.bootstrap))
        for load in loads:
            load.wait_for(records_between)
    finally:
        for load in loads:
            load.stop()
    return slowest, complaints
