"""A consumer that reads committed records during a scenario, and notes what it gets."""

import threading
import time
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.rigs.patience import PATIENCE_S, Deadline

Shown = list[tuple[int, bytes]]
"""Offsets and values, in the order of the responses."""
Text = Callable[[Message], bytes]
"""The part of a record that is compared."""

ENDS_A_READER = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._FATAL})
READ_COMMITTED = {
    "group.id": "unused",
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1_000,
    "log_level": 0,
}


def value_of(message: Message) -> bytes:
    return message.value() or b""


class CommittedReader(threading.Thread):
    """`shown`: the records, by topic and partition. `news`: the times at which records came."""

    def __init__(
        self, bootstrap: str, topics: Sequence[str], partitions: int, text: Text = value_of
    ) -> None:
        super().__init__(name="committed reader")
        self._text = text
        self.failures: list[str] = []
        self.count = 0
        self.news: list[float] = []
        self.shown: dict[tuple[str, int], Shown] = {
            (topic, number): [] for topic in topics for number in range(partitions)
        }
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **READ_COMMITTED})
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        try:
            self._consumer.assign([TopicPartition(*place, 0) for place in self.shown])
            while not self._stopping.is_set() and not self.failures:
                self._read()
        finally:
            self._consumer.close()

    def _read(self) -> None:
        found = 0
        for message in self._consumer.consume(1000, timeout=0.1):
            error, topic, partition = message.error(), message.topic(), message.partition()
            if error is not None:
                if error.code() in ENDS_A_READER or error.fatal():
                    self.failures.append(f"{topic}, partition {partition}: {error}")
                continue
            offset = message.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            self.shown[topic, partition].append((offset, self._text(message)))
            found += 1
        if found:
            self.news.append(time.monotonic())
            self.count += found

    def longest_pause_s(self) -> float:
        """The longest time without a record, between the first and the last record."""
        pairs = zip(self.news, self.news[1:], strict=False)
        return max((after - before for before, after in pairs), default=0.0)


def committed_log(
    bootstrap: str, topics: Sequence[str], partitions: int, text: Text = value_of
) -> dict[tuple[str, int], Shown]:
    """All records that a new consumer gets, up to the ends of the partitions."""
    config = {"bootstrap.servers": bootstrap, **READ_COMMITTED, "enable.partition.eof": True}
    found: dict[tuple[str, int], Shown] = {
        (topic, number): [] for topic in topics for number in range(partitions)
    }
    unread = set(found)
    deadline = Deadline(lambda: f"partitions {unread} do not end", PATIENCE_S)
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(*place, 0) for place in found])
        while unread:
            deadline.check()
            for message in consumer.consume(1000, timeout=0.1):
                error, topic, partition = message.error(), message.topic(), message.partition()
                assert topic is not None
                assert partition is not None
                if error is None:
                    found[topic, partition].append((message.offset() or 0, text(message)))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard((topic, partition))
                else:
                    raise AssertionError(f"{topic}, partition {partition}: {error}")
    finally:
        consumer.close()
    return found
