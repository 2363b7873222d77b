"""A group member that reads a topic, and writes records and the group's offsets in transactions.

It follows librdkafka's documentation for such programs. In addition, it replaces a producer that is
stuck.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.rigs.patience import PATIENCE_S, Deadline
from tests.scenarios.onlookers import NO_COORDINATOR

T = TypeVar("T")
SESSION_TIMEOUT_MS = 6_000
QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1_000,
    "socket.timeout.ms": 15_000,
    "log_level": 0,
}
POLL_S = 0.2
CALL_S = 20.0
"""Then the call is repeated."""
STUCK_S = 30.0
"""After a Metadata response without the group's coordinator, librdkafka 2.16 may wait forever in
`send_offsets_to_transaction`, despite its timeout: librdkafka's issues 5456, 5511."""
WAITS = frozenset({*NO_COORDINATOR, KafkaError._TIMED_OUT, KafkaError.UNSTABLE_OFFSET_COMMIT})
"""Errors to retry, although librdkafka does not call each of them retriable in each call."""
NOT_ASSIGNED = frozenset({KafkaError._STATE, KafkaError._UNKNOWN_PARTITION})


class _StuckError(Exception):
    pass


def _within_time(call: Callable[[], object]) -> None:
    """Run the call, and raise what it raises. Raises `_StuckError` if it takes too long; the call
    may then still be running."""
    raised: list[KafkaException] = []
    done = threading.Event()

    def run() -> None:
        try:
            call()
        except KafkaException as error:
            raised.append(error)
        done.set()

    threading.Thread(target=run, daemon=True).start()
    if not done.wait(STUCK_S):
        raise _StuckError
    if raised:
        raise raised[0]


class Copier:
    """Invariant: the records of a transaction were read after the last rebalance. The transaction
    therefore has the group's generation in which they were read."""

    def __init__(
        self, bootstrap: str, transactional_id: str, *, group: str, source: str, batch: int
    ) -> None:
        self.stopping = False
        self.stuck = 0
        """The number of producers that were replaced because a call did not return."""
        self._id = transactional_id
        self._batch = batch
        self._rebalanced = False
        self._where = {"bootstrap.servers": bootstrap, **QUICK}
        self._producer = self._new_producer()
        self._consumer = Consumer(
            {
                **self._where,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": SESSION_TIMEOUT_MS // 4,
            }
        )
        self._consumer.subscribe([source], on_assign=self._moved, on_revoke=self._moved)

    @abstractmethod
    def _write(self, producer: Producer, messages: Sequence[Message]) -> None:
        """Send records for `messages`, in an open transaction."""

    def _new_producer(self) -> Producer:
        """Return a new producer, which fences the previous one."""
        made = Producer({**self._where, "transactional.id": self._id, "linger.ms": 1})
        self._retried(made.init_transactions)
        return made

    def run(self) -> None:
        while not self.stopping:
            self._rebalanced = False
            polled = self._consumer.consume(self._batch, POLL_S)
            messages = [each for each in polled if each.error() is None]
            if self._rebalanced:
                self._rewind()
            elif messages:
                self._copy(messages)
        self._consumer.close()

    def _moved(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._rebalanced = True

    def _copy(self, messages: Sequence[Message]) -> bool:
        """Copy in a transaction. Returns False if it was aborted."""
        try:
            self._in_transaction(messages)
            return True
        except _StuckError:
            self.stuck += 1
            self._producer = self._new_producer()
            self._rewind()
            return False
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._retried(self._producer.abort_transaction)
            self._rewind()
            return False

    def _in_transaction(self, messages: Sequence[Message]) -> None:
        self._producer.begin_transaction()
        self._write(self._producer, messages)
        rows = [TopicPartition(*place, last + 1) for place, (_, last) in spans(messages).items()]
        metadata = self._consumer.consumer_group_metadata()
        producer = self._producer
        _within_time(lambda: self._retried(producer.send_offsets_to_transaction, rows, metadata))
        self._commit()

    def _commit(self) -> None:
        self._retried(self._producer.commit_transaction)

    def _retried(self, call: Callable[..., T], *arguments: Any) -> T:
        deadline = Deadline(f"{call} always fails", 2 * PATIENCE_S)
        while True:
            try:
                return call(*arguments, CALL_S)
            except KafkaException as error:
                if error.args[0].code() not in WAITS and not error.args[0].retriable():
                    raise
            deadline.pause()

    def _rewind(self) -> None:
        """Seek to the committed offsets, or to the beginning of partitions without one."""
        assigned = self._consumer.assignment()
        if not assigned:
            return
        for part in self._retried(self._consumer.committed, assigned):
            try:
                self._consumer.seek(TopicPartition(part.topic, part.partition, max(part.offset, 0)))
            except KafkaException as error:
                if error.args[0].code() not in NOT_ASSIGNED:
                    raise


def place_of(message: Message) -> tuple[str, int, int]:
    """Topic, partition and offset."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset


def spans(messages: Sequence[Message]) -> dict[tuple[str, int], tuple[int, int]]:
    """The first and the last offset of each partition."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for message in messages:
        topic, partition, offset = place_of(message)
        first, _ = found.get((topic, partition), (offset, offset))
        found[topic, partition] = first, offset
    return found
