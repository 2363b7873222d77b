"""One instance of a copy job, a process of its own: from topic `in` to all topics of `out`.

    python -m tests.scenarios.copy_process --bootstrap … --id copy-0 --group copy --batch 100 \\
        --source in --target out --target also-out

It is a member of a group, and the group's offsets are a part of its transactions. It copies each
record to the partition from which it came. SIGTERM ends it between two transactions. Any error that
the documentation of librdkafka calls fatal ends it with a traceback.
"""

import argparse
import signal
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.rigs.patience import PATIENCE_S

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
NOT_ASSIGNED = frozenset({KafkaError._STATE, KafkaError._UNKNOWN_PARTITION})


class CopyProcess:
    """Invariant: what it sends in a transaction was read since the last rebalance, so that the
    group's generation in the transaction is the one in which it was read."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.stopping = False
        self._batch: int = args.batch
        self._targets: Sequence[str] = args.target
        self._rebalanced = False
        where = {"bootstrap.servers": args.bootstrap, **QUICK}
        self._producer = Producer({**where, "transactional.id": args.id, "linger.ms": 1})
        self._retried(self._producer.init_transactions)
        self._consumer = Consumer(
            {
                **where,
                "group.id": args.group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": SESSION_TIMEOUT_MS // 4,
            }
        )
        self._consumer.subscribe([args.source], on_assign=self._moved, on_revoke=self._moved)

    def run(self) -> None:
        while not self.stopping:
            self._rebalanced = False
            messages = [each for each in self._consumer.consume(self._batch, POLL_S) if _fine(each)]
            if self._rebalanced:
                self._rewind()
            elif messages:
                self._copy(messages)
        self._consumer.close()

    def _moved(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._rebalanced = True

    def _copy(self, messages: Sequence[Message]) -> None:
        try:
            self._in_transaction(messages)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._retried(self._producer.abort_transaction)
            self._rewind()

    def _in_transaction(self, messages: Sequence[Message]) -> None:
        self._producer.begin_transaction()
        offsets: dict[tuple[str, int], int] = {}
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert partition is not None
            assert offset is not None
            offsets[topic, partition] = offset + 1
            for target in self._targets:
                self._producer.produce(target, message.value(), partition=partition)
        rows = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        metadata = self._consumer.consumer_group_metadata()
        self._retried(self._producer.send_offsets_to_transaction, rows, metadata)
        self._retried(self._producer.commit_transaction)

    def _retried(self, call: Callable[..., T], *arguments: Any) -> T:
        while True:
            try:
                return call(*arguments, PATIENCE_S)
            except KafkaException as error:
                # `committed` does not say that an error which its caller may retry is retriable
                is_moving = error.args[0].code() == KafkaError.NOT_COORDINATOR
                if not is_moving and not error.args[0].retriable():
                    raise

    def _rewind(self) -> None:
        """To what is committed, or to the beginning of the partition."""
        assigned = self._consumer.assignment()
        if not assigned:
            return
        for part in self._retried(self._consumer.committed, assigned):
            try:
                self._consumer.seek(TopicPartition(part.topic, part.partition, max(part.offset, 0)))
            except KafkaException as error:
                if error.args[0].code() not in NOT_ASSIGNED:
                    raise


def _fine(message: Message) -> bool:
    return message.error() is None


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--bootstrap", "--id", "--group", "--source"):
        parser.add_argument(name, required=True)
    parser.add_argument("--target", action="append", required=True)
    parser.add_argument("--batch", type=int, required=True)
    process = CopyProcess(parser.parse_args())

    def stop(*_: object) -> None:
        process.stopping = True

    signal.signal(signal.SIGTERM, stop)
    process.run()


if __name__ == "__main__":
    main()
