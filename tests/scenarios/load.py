"""An idempotent producer that sends on and on, and readers of all there is, each of whom notes what
it was told in a history (tests/models/history.py).

Values name their records: `<producer> <number> <padding>`.
"""

import os
import threading
import time
from abc import abstractmethod
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.models.history import Acknowledged, History, Log, Place, Read, Sent
from tests.rigs.patience import PATIENCE_S, Deadline

PROGRESS_TIMEOUT_S = PATIENCE_S
IN_FLIGHT_RECORDS = 2000
BURST_RECORDS = 40
BURST_PAUSE_S = 0.01
"""Each producer sends at most some 4,000 records a second, so that readers can reach the end."""
PADDING = "." * 100
METADATA_REFRESH_MS = 1000
"""So soon do producers find that a broker is back which others stood in for."""


class Progress(threading.Thread):
    """A producer that notes in `history` what was acknowledged; `acknowledged` counts."""

    def __init__(self, name: str, history: History) -> None:
        super().__init__(name=name)
        self.history = history
        self.acknowledged = 0
        self.failures: list[str] = []
        self.progress = threading.Condition()

    @abstractmethod
    def stop(self) -> None:
        """All that was sent is acknowledged, or it is in `failures`."""

    def was_acknowledged(self, sent: Sent, place: Place) -> None:
        with self.progress:
            self.history.acknowledged.append(Acknowledged(sent, place, time.monotonic()))
            self.acknowledged += 1
            self.progress.notify_all()

    def failed(self, text: str) -> None:
        with self.progress:
            self.failures.append(text)
            self.progress.notify_all()

    def wait_for(self, count: int) -> None:
        """Until so many more are acknowledged. Raises `AssertionError` where none come."""
        with self.progress:
            wanted = self.acknowledged + count
            if not self.progress.wait_for(
                lambda: self.acknowledged >= wanted or self.failures, PROGRESS_TIMEOUT_S
            ):
                raise AssertionError(f"{self.name}: no progress in {PROGRESS_TIMEOUT_S} s")
        if self.failures:
            raise AssertionError(f"{self.name}: {self.failures[:3]}")


class Load(Progress):
    """One idempotent producer of librdkafka. Record n goes to partition n modulo `partitions`."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        history: History,
        *,
        topic: str,
        partitions: int,
        burst_records: int = BURST_RECORDS,
    ) -> None:
        super().__init__(name, history)
        self._servers = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._burst_records = burst_records
        self._burst_pause_s = BURST_PAUSE_S
        self._stopping = threading.Event()
        self._waiting = 0
        self._abandoned = False

    @classmethod
    def several(
        cls,
        count: int,
        bootstrap: str,
        history: History,
        *,
        topic: str,
        partitions: int,
        burst_records: int,
    ) -> list[Self]:
        """Return `count` producers that are not started, named `producer-0` and so on."""
        return [
            cls(
                f"producer-{number}",
                bootstrap,
                history,
                topic=topic,
                partitions=partitions,
                burst_records=burst_records,
            )
            for number in range(count)
        ]

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def slow_down(self, burst_pause_s: float) -> None:
        """Pause so long after each burst from now on."""
        self._burst_pause_s = burst_pause_s

    def abandon(self) -> None:
        """Stop, when all brokers are gone: what is not acknowledged yet never will be."""
        self._abandoned = True
        self.stop()

    def run(self) -> None:
        # its threads are run like this one: librdkafka polls without a pause while it may not have
        # more requests in flight, and would take two cores away from brokers and store
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        self._producer = Producer(
            {
                "bootstrap.servers": self._servers,
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
        try:
            self._send_on()
        except KafkaException as error:  # the producer has met a fatal error
            self.failed(str(error))

    def _send_on(self) -> None:
        number = 0
        while not self._stopping.is_set() and not self.failures:
            if self._waiting >= IN_FLIGHT_RECORDS:
                self._producer.poll(0.05)
                continue
            self._waiting += 1
            self.history.invoke(Sent(self.name, number), time.monotonic())
            self._send(Sent(self.name, number))
            number += 1
            self._producer.poll(0 if number % self._burst_records else self._burst_pause_s)
        if self._abandoned:
            self._producer.purge()
        left = self._producer.flush(PROGRESS_TIMEOUT_S)
        if left:
            self.failed(f"{left} records are neither acknowledged nor refused")

    def _send(self, sent: Sent) -> None:
        def settled(error: KafkaError | None, message: Message) -> None:
            self._waiting -= 1
            if error is not None:
                self.failed(f"{sent}: {error}")
                return
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.was_acknowledged(sent, Place(partition, offset))

        value = f"{sent.producer} {sent.number} {PADDING}"
        self._producer.produce(
            self._topic,
            value,
            partition=sent.number % self._partitions,
            on_delivery=settled,
        )

    def _noticed(self, error: KafkaError) -> None:
        if error.fatal():
            self.failed(f"fatal: {error}")


def read_to_end(
    bootstrap: str,
    history: History,
    *,
    topic: str,
    partitions: int,
    reader: str = "reader",
    bound_s: float = PATIENCE_S,
) -> Log:
    """Everything that consumers can see, from the beginning to the high watermarks, as it stands
    in `history`, too. Raises `AssertionError` if this takes longer than `bound_s`."""
    began = time.monotonic()
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
        deadline = Deadline(lambda: f"partitions {unread} do not end", bound_s)
        while unread:
            deadline.check()
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
    history.reads += [
        Read(reader, partition, 0, mine, began, to_end=True) for partition, mine in rows.items()
    ]
    return rows


def sent_of(value: str | bytes | None) -> Sent:
    """The record that a value names; `<name>.<number>` is from Apache Kafka's producer."""
    assert isinstance(value, bytes)
    words = value.decode().split(" ")
    producer, number = words[:2] if len(words) > 1 else words[0].split(".")
    return Sent(producer, int(number))
