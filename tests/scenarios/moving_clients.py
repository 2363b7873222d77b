"""Producers and consumer groups that move from one Kafka cluster to another.

Producers write until the cluster stops them, and continue at the new one. Every consumer notes
which offsets it was given, so a record that it missed or got twice is seen.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from tests.rigs.patience import let_pass

BATCH = 50
ABORTED_EVERY = 4
KEYS = 40
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VALUE = b"v" * 80
WAIT_S = 30


@dataclass(slots=True)
class MovingProducer:
    """Writes to its topics in turn, all over one connection. Of topics whose name begins with txn,
    each batch is a transaction, and some are aborted."""

    number: int
    topics: Sequence[str]
    source: str
    where: Callable[[], str]
    """The cluster of the moment."""
    pause_s: float = 0.0
    acknowledged: int = 0
    refused: int = 0
    last_at_source_s: float = 0.0
    first_at_target_s: float | None = None
    error: BaseException | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    _is_refused: bool = False

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self._write_at(self.where())
        except (KafkaException, AssertionError, OSError, ValueError) as error:
            self.error = error

    def _write_at(self, bootstrap: str) -> None:
        """Until the producers move. Each incarnation has other ids, as after a restart."""
        config = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 2,
            "compression.type": CODECS[self.number % len(CODECS)],
            "enable.idempotence": True,
            "logger": _silent(),
        }
        plain = Producer(config)
        transactional: Producer | None = None
        round_number = 0
        while not self.stop.is_set() and self.where() == bootstrap:
            topic = self.topics[round_number % len(self.topics)]
            round_number += 1
            if topic.startswith("txn"):
                name = f"mover-{self.number}-{bootstrap}"
                transactional = transactional or _initialised({**config, "transactional.id": name})
                done = transactional is not None and self._transaction(
                    transactional, topic, round_number
                )
                if not done:
                    transactional = None
            else:
                done = self._batch(plain, topic)
            if done:
                self._note(bootstrap)
            while self._is_refused and self.where() == bootstrap and not self.stop.is_set():
                let_pass(0.05)  # as an application that has stopped at the error
            self._is_refused = False
            let_pass(self.pause_s if done else 0.1)

    def _note(self, bootstrap: str) -> None:
        now = time.monotonic()
        if bootstrap == self.source:
            self.last_at_source_s = now
        elif self.first_at_target_s is None:
            self.first_at_target_s = now

    def _batch(self, producer: Producer, topic: str) -> bool:
        failed: list[KafkaError] = []
        for number in range(BATCH):
            key = f"{self.number}-{number % KEYS}".encode()
            producer.produce(
                topic,
                VALUE + str(self.acknowledged + number).encode(),
                key=key,
                headers={"by": str(self.number).encode()},
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        producer.flush()
        self.acknowledged += BATCH - len(failed)
        self._note_refused(failed)
        return not failed

    def _note_refused(self, failed: list[KafkaError]) -> None:
        self.refused += len(failed)
        self._is_refused |= any(each.code() == KafkaError.MSG_SIZE_TOO_LARGE for each in failed)

    def _transaction(self, producer: Producer, topic: str, number: int) -> bool:
        failed: list[KafkaError] = []
        try:
            producer.begin_transaction()
            for _ in range(BATCH):
                producer.produce(
                    topic,
                    VALUE,
                    key=str(self.number).encode(),
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
            producer.flush()
            if number % ABORTED_EVERY == 0:
                producer.abort_transaction(WAIT_S)
            else:
                producer.commit_transaction(WAIT_S)
                self.acknowledged += BATCH
        except KafkaException:
            self._note_refused(failed)
            try:
                producer.abort_transaction(WAIT_S)
            except KafkaException:
                return False
            return False
        return True


def _initialised(config: dict[str, Any]) -> Producer | None:
    """None where the cluster still ends a transaction of the same id."""
    producer = Producer(config)
    try:
        producer.init_transactions(WAIT_S)
    except KafkaException:
        return None
    return producer


def _silent() -> logging.Logger:
    logger = logging.getLogger("tests.moving")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


@dataclass(slots=True)
class MovingGroup:
    """A group with one member, in one cluster after the other."""

    name: str
    topic: str
    seen: dict[int, list[int]] = field(default_factory=dict)
    """Offsets by partition, in the order of their delivery."""
    error: BaseException | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, bootstrap: str, pause_s: float) -> None:
        try:
            self._read(bootstrap, pause_s)
        except (KafkaException, AssertionError, OSError, ValueError) as error:
            self.error = error

    def _read(self, bootstrap: str, pause_s: float) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": self.name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 30_000,
                "logger": _silent(),
            }
        )
        consumer.subscribe([self.topic])
        try:
            while not self.stop.is_set():
                messages = consumer.consume(500, 0.5)
                for message in messages:
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    self.seen.setdefault(int(message.partition() or 0), []).append(
                        int(message.offset() or 0)
                    )
                if messages:
                    consumer.commit(asynchronous=False)
                let_pass(pause_s)
        finally:
            consumer.close()
