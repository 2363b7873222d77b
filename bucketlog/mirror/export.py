"""From bucketlog to Apache Kafka: `bucketlog export`.

Kafka assigns offsets, so there are two ways to export.

- In transactions (the default): each transaction has records, and the positions of the source
  behind these records, as offsets of a group in the target. A new export fences a killed export,
  and continues behind its last commit. Markers take offsets, so records get other offsets. The
  offsets of groups are translated.
- With the same offsets: the export writes without transactions, and each record keeps its offset.
  The topic in the target must be empty at the beginning. Partitions of the source must begin at
  offset 0 and have no gaps. The next export continues at the target's end.

Invariant: both ways end with an error if a record would be in the target twice or be missing.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.cimpl import NewTopic

from bucketlog.client.admin import EARLIEST, LATEST, Admin
from bucketlog.client.kafka_errors import log_error
from bucketlog.mirror.copier import MirrorError
from bucketlog.mirror.run import ClusterAccess
from bucketlog.mirror.source import Partition
from bucketlog.mirror.topics import (
    TopicSummary,
    add_partitions,
    changed_topic,
    configs_of,
    identified_topics_of,
    no_topic,
    replaced_topic,
    topic_ids,
    topics_of,
)
from bucketlog.mirror.verify import ComparedReader

OURS_ALONE = frozenset({"mirror.source", "record.validation"})
"""Configs that Apache Kafka does not have, and that are not copied."""
TIMESTAMP_TYPE, APPEND_TIME = "message.timestamp.type", "LogAppendTime"
MESSAGE_BYTES_MAX = 1_000_000_000
"""The largest limit of librdkafka, so that the target decides which records are too large."""
GROUP = "bucketlog-export"
RETRY_S = 0.2
_FENCED = (
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """The settings of an export.

    `keep_offsets`: whether records keep their offsets; then, the export writes without
    transactions. `transaction_records`: the most records of a transaction, or of a step.
    `idle_s`: seconds that a step waits for its first record. `timeout_s`: seconds that the export
    waits for a response.
    """

    keep_offsets: bool = False
    transaction_records: int = 20_000
    idle_s: float = 1.0
    timeout_s: float = 60.0


class Export:
    """A running export. Call `step` in a loop. The process may be killed at any time."""

    def __init__(
        self,
        source: ClusterAccess,
        target: ClusterAccess,
        patterns: Sequence[str],
        settings: ExportSettings,
        report: Callable[[str], None],
    ) -> None:
        self._source, self._target = source, target
        self._settings = settings
        self._report = report
        self.topics = identified_topics_of(source.admin, patterns)
        if not self.topics:
            raise no_topic(patterns)
        self._create_topics()
        config = {
            **target.config,
            "linger.ms": 5,
            "enable.idempotence": True,
            "message.max.bytes": MESSAGE_BYTES_MAX,
        }
        if not settings.keep_offsets:
            config |= {"transactional.id": GROUP, "transaction.timeout.ms": 60_000}
        self._producer = Producer(config)
        self._at_target = Consumer({**target.config, "group.id": GROUP})
        try:
            if not settings.keep_offsets:
                self._producer.init_transactions(settings.timeout_s)
        except KafkaException as error:
            self._producer.close()
            raise log_error(error.args[0], "beginning the export") from error
        self.positions = self._look_up_positions()
        self._consumer = Consumer(
            {
                **source.config,
                "group.id": GROUP,  # librdkafka needs a group id; the group is not used
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
            }
        )
        self._consumer.assign([KafkaPartition(*each, at) for each, at in self.positions.items()])
        self.records = 0
        self._seen: dict[Partition, int] = {}
        """The ends of partitions whose records are all exported."""
        self._ends: dict[Partition, int] = {}

    def close(self) -> None:
        """Close the clients. If Python freed an open producer at its exit, the process could crash,
        because librdkafka still reports deliveries."""
        try:
            self._producer.close()
        except KafkaException:  # a fatal error that the last step has raised
            pass
        self._consumer.close()
        self._at_target.close()

    def wait_for_coordinator(self) -> None:
        """Wait until groups of the target have a coordinator. Raises `LogError`."""
        self._committed([next(iter(self.positions))])

    def lag(self) -> int:
        """The number of offsets of the source that the target lacks."""
        return sum(
            max(end - max(self.positions[each], self._seen.get(each, 0)), 0)
            for each, end in ends_of(self._source.admin, self.topics).items()
        )

    def step(self) -> int:
        """Export the next records. Returns their number. Raises `LogError`, `MirrorError`."""
        first = self._consumer.poll(self._settings.idle_s)
        if first is None:
            return 0
        messages = self._without_ends(
            [first, *self._consumer.consume(self._settings.transaction_records - 1, 0)]
        )
        if not messages:
            return 0
        # after the fetch: until now, the topics had these ids, so the records are from these topics
        _refuse_change(replaced_topic(self.topics, topic_ids(self._source.admin, self.topics)))
        try:
            if self._settings.keep_offsets:
                self._produce(messages)
                self._producer.flush()
            else:
                self._in_transaction(messages)
        except KafkaException as error:
            if error.args[0].code() in _FENCED:
                raise MirrorError(
                    "another export to the same cluster has started, or a transaction has timed "
                    "out",
                    remedy="run only one export to a cluster at a time, and run the command again",
                ) from error
            raise log_error(error.args[0], "writing to the target") from error
        self._note_ends()
        self.records += len(messages)
        return len(messages)

    def _without_ends(self, messages: Sequence[Message]) -> list[Message]:
        """The records among these messages. Notes the ends of partitions, which may be behind the
        last record."""
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
            elif error.code() != KafkaError._PARTITION_EOF:
                raise log_error(error, "reading the source")
            else:
                partition = Partition(str(message.topic()), int(message.partition() or 0))
                self._ends[partition] = int(message.offset() or 0)
        if not records:
            self._note_ends()
        return records

    def _note_ends(self) -> None:
        for partition, end in self._ends.items():
            self._seen[partition] = max(self._seen.get(partition, 0), end)
        self._ends = {}

    def _in_transaction(self, messages: Sequence[Message]) -> None:
        producer, timeout_s = self._producer, self._settings.timeout_s
        producer.begin_transaction()
        after = self._produce(messages)
        producer.send_offsets_to_transaction(
            [
                KafkaPartition(*each, offset, self.topics[each.topic].id_text)
                for each, offset in after.items()
            ],
            self._at_target.consumer_group_metadata(),
            timeout_s,
        )
        producer.commit_transaction(timeout_s)

    def _produce(self, messages: Sequence[Message]) -> Mapping[Partition, int]:
        """Produce the messages. Returns the positions behind them."""
        after: dict[Partition, int] = {}
        for message in messages:
            partition = Partition(str(message.topic()), int(message.partition() or 0))
            offset = int(message.offset() or 0)
            if self._settings.keep_offsets and offset != self.positions[partition]:
                raise MirrorError(
                    f"{partition} has no record at offset {self.positions[partition]}",
                    remedy="Kafka assigns offsets without gaps: delete the topic in the target, "
                    "and export the topic without --keep-offsets",
                )
            timestamp = message.timestamp()[1]
            if timestamp <= 0:
                raise MirrorError(
                    f"{partition}: the record at offset {offset} has the timestamp {timestamp}, "
                    "which the export cannot write: librdkafka replaces it with the current time",
                    remedy="omit the topic from --topics, or delete the records up to this offset",
                )
            while True:
                try:
                    self._producer.produce(
                        partition.topic,
                        message.value(),
                        message.key(),
                        partition.number,
                        on_delivery=self._checked(partition, offset),
                        timestamp=timestamp,
                        headers=message.headers() or [],
                    )
                    break
                except BufferError:  # the queue is full
                    self._producer.poll(0.1)
            self._producer.poll(0)
            after[partition] = self.positions[partition] = offset + 1
        return after

    def _checked(
        self, partition: Partition, offset: int
    ) -> Callable[[KafkaError | None, Message], None]:
        def check(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                if self._settings.keep_offsets:
                    raise log_error(error, f"writing to {partition}")
                return  # the commit of the transaction fails
            if self._settings.keep_offsets and message.offset() != offset:
                raise MirrorError(
                    f"{partition}: the record at offset {offset} got offset {message.offset()} in "
                    "the target",
                    remedy="stop other producers of the topic in the target, delete the topic "
                    "there, and export the topic again",
                )

        return check

    def _create_topics(self) -> None:
        """Create missing topics and partitions. Topics never get LogAppendTime, because Kafka must
        keep the timestamps of records."""
        admin = self._target.admin
        present = topics_of(admin, ["*"])
        configs = configs_of(self._source.admin, self.topics)
        for name, topic in self.topics.items():
            if name in present:
                if present[name].partitions < topic.partitions:
                    self._add_partitions(name, topic.partitions)
                continue
            wanted = {each: v for each, v in configs[name].items() if each not in OURS_ALONE}
            if wanted.get(TIMESTAMP_TYPE) == APPEND_TIME:
                del wanted[TIMESTAMP_TYPE]
                self._report(
                    f"config {TIMESTAMP_TYPE}={APPEND_TIME} of {name!r} is not copied, because "
                    "Kafka would replace the timestamps: set the config after the export"
                )
            new = NewTopic(name, topic.partitions, -1, config=wanted)
            for future in admin.client.create_topics([new]).values():
                admin.wait(future, f"creating topic {name!r}")

    def _add_partitions(self, name: str, count: int) -> None:
        """Add partitions, and wait until the target's Metadata response has them."""
        add_partitions(self._target.admin, name, count)
        deadline = time.monotonic() + self._settings.timeout_s
        while topics_of(self._target.admin, [name])[name].partitions < count:
            if time.monotonic() > deadline:
                raise MirrorError(
                    f"the new partitions of {name!r} are not in the target's Metadata after "
                    f"{self._settings.timeout_s:.0f} s",
                    remedy="run the command again",
                )
            time.sleep(RETRY_S)

    def check_partitions(self) -> None:
        """Check the topics of the source. Raises `MirrorError` if a topic has got partitions, is
        deleted, or was created again."""
        there = identified_topics_of(self._source.admin, list(self.topics))
        _refuse_change(changed_topic(self.topics, there))

    def _look_up_positions(self) -> dict[Partition, int]:
        starts = ends_of(self._source.admin, self.topics, earliest=True)
        there = ends_of(self._target.admin, self.topics)
        if self._settings.keep_offsets:
            for partition, start in starts.items():
                if start > there[partition]:
                    raise MirrorError(
                        f"{partition} begins at offset {start}",
                        remedy="Kafka begins at offset 0: export without --keep-offsets",
                    )
            return there
        committed = self._committed(there)
        self._refuse_foreign_records({each: at for each, at in there.items() if at}, committed)
        return {each: max(committed.get(each, 0), start) for each, start in starts.items()}

    def _committed(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The committed positions of the export. Waits until the group has a coordinator: in tests,
        librdkafka 2.16 crashed when `committed_offsets` asked before."""
        spots = [KafkaPartition(*each) for each in partitions]
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            try:
                rows = self._at_target.committed(spots, timeout=self._settings.timeout_s)
                break
            except KafkaException as error:
                failure = log_error(error.args[0], "asking for the positions of the export")
                if not failure.retriable or time.monotonic() > deadline:
                    raise failure from error
                time.sleep(RETRY_S)
        for row in rows:
            if row.error is not None:
                raise log_error(row.error, "asking for the positions of the export")
            if row.metadata and row.metadata != self.topics[row.topic].id_text:
                raise MirrorError(
                    f"topic {row.topic!r} was deleted and created again since it was exported",
                    remedy="delete the topic in the target, and export the topic again",
                )
        return {Partition(row.topic, row.partition): row.offset for row in rows if row.offset >= 0}

    def _refuse_foreign_records(
        self, ends: Mapping[Partition, int], committed: Collection[Partition]
    ) -> None:
        """Raise `MirrorError` if a partition without a position has records in the target.

        Such a partition may have offsets without records, if an export was killed in its first
        transaction.
        """
        unknown = {each: end for each, end in ends.items() if each not in committed}
        starts = ends_of(
            self._target.admin,
            {each.topic: self.topics[each.topic] for each in unknown},
            earliest=True,
        )
        with closing(ComparedReader(self._target.config, self._settings.timeout_s)) as reader:
            for partition, end in unknown.items():
                start = starts[partition]
                if start < end and next(reader.records(partition, start, end), None) is not None:
                    raise MirrorError(
                        f"{partition} in the target has records that no export has written",
                        remedy="delete the topic in the target, or omit the topic from --topics",
                    )


def _refuse_change(changed: str | None) -> None:
    """`changed` describes a topic of the source. Raises `MirrorError` if it is not None."""
    if changed is not None:
        raise MirrorError(
            f"the source has changed since the export began: topic {changed}",
            remedy="run the command again; if the topic was created again, first delete the topic "
            "in the target",
        )


def ends_of(
    admin: Admin, topics: Mapping[str, TopicSummary], *, earliest: bool = False
) -> dict[Partition, int]:
    """The ends of all partitions; with `earliest`, their log starts. Raises `LogError`."""
    spec: Any = EARLIEST if earliest else LATEST
    return {
        Partition(name, number): offset
        for name, topic in topics.items()
        for number, offset in admin.offsets(
            name, range(topic.partitions), spec, f"asking for offsets of {name!r}"
        ).items()
    }
