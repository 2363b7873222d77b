"""Compares the mirrored partitions of both clusters, record by record, as consumers see them.

Invariant: a comparison continues at the offsets that it has reached, so most of the work is done
while producers still write. In compacted topics, only the latest record of each key is compared,
and only when the source is at rest, because the clusters compact at different times.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, NamedTuple
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.admin import EARLIEST, Admin
from bucketlog.client.kafka_errors import log_error
from bucketlog.inspect.doctor.digest import RecordHash
from bucketlog.log_format.errors import LogError
from bucketlog.mirror.source import Partition

MESSAGES_AT_ONCE = 10_000
DIGEST_BYTES = 16


class ReadRecord(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True)
class PartitionCheck:
    """The comparison of a partition. All records below offset `compared_to` are compared.
    `difference` describes the first difference; None if there is none."""

    compared_to: int
    source_hash: RecordHash = field(default_factory=RecordHash)
    target_hash: RecordHash = field(default_factory=RecordHash)
    source_keys: dict[bytes, bytes] = field(default_factory=dict)
    target_keys: dict[bytes, bytes] = field(default_factory=dict)
    difference: str | None = None


class Comparison:
    """A comparison of two clusters.

    `source` and `target` are configs of consumers. `compacted` has the names of compacted topics.
    `timeout_s` bounds each wait for a record, in seconds.
    """

    def __init__(
        self,
        source: Mapping[str, Any],
        target: Mapping[str, Any],
        compacted: Collection[str],
        *,
        timeout_s: float,
    ) -> None:
        self._configs = source, target
        self._admins = Admin(source, timeout_s=timeout_s), Admin(target, timeout_s=timeout_s)
        self._compacted = compacted
        self._timeout_s = timeout_s
        self.checks: dict[Partition, PartitionCheck] = {}

    def advance(self, ends: Mapping[Partition, int], *, is_at_rest: bool = False) -> None:
        """Compare up to these offsets. Compacted topics are compared only if the source
        `is_at_rest`. Raises `LogError`."""
        if not is_at_rest:
            ends = {each: end for each, end in ends.items() if each.topic not in self._compacted}
        self._begin(ends)
        readers = [ComparedReader(config, self._timeout_s) for config in self._configs]
        try:
            for partition, end in sorted(ends.items()):
                self._compare(partition, end, *readers)
        finally:
            for reader in readers:
                reader.close()

    @property
    def records(self) -> int:
        return sum(each.source_hash.records for each in self.checks.values())

    def differences(self) -> list[str]:
        """One line for each partition that differs; empty if no partition differs."""
        found = []
        for partition, check in sorted(self.checks.items()):
            difference = check.difference
            if difference is None and partition.topic in self._compacted:
                if check.source_keys != check.target_keys:
                    keys = {
                        key
                        for key in check.source_keys.keys() | check.target_keys.keys()
                        if check.source_keys.get(key) != check.target_keys.get(key)
                    }
                    difference = f"the latest records of {len(keys)} keys differ"
            elif difference is None and check.source_hash.hex != check.target_hash.hex:
                difference = "the digests differ"
            if difference is not None:
                found.append(f"{partition}: {difference}")
        return found

    def digests(self) -> dict[str, tuple[int, str]]:
        """The number of records and their digest, by partition."""
        return {
            str(partition): (check.source_hash.records, check.source_hash.hex)
            for partition, check in sorted(self.checks.items())
        }

    def _begin(self, ends: Mapping[Partition, int]) -> None:
        """Begin new partitions at the higher of both log starts, because deleted records cannot be
        compared."""
        new = [partition for partition in ends if partition not in self.checks]
        for topic in {partition.topic for partition in new}:
            numbers = [number for name, number in new if name == topic]
            starts = [
                admin.offsets(topic, numbers, EARLIEST, f"asking for offsets of {topic!r}")
                for admin in self._admins
            ]
            for number in numbers:
                start = max(each[number] for each in starts)
                self.checks[Partition(topic, number)] = PartitionCheck(start)

    def _compare(
        self, partition: Partition, end: int, source: "ComparedReader", target: "ComparedReader"
    ) -> None:
        check = self.checks[partition]
        if end <= check.compared_to:
            return
        ours = source.records(partition, check.compared_to, end)
        theirs = target.records(partition, check.compared_to, end)
        if partition.topic in self._compacted:
            _note_keys(ours, check.source_keys, check.source_hash)
            _note_keys(theirs, check.target_keys, check.target_hash)
        else:
            for one, other in zip_longest(ours, theirs):
                if one is not None:
                    check.source_hash.add(*one)
                if other is not None:
                    check.target_hash.add(*other)
                if one != other and check.difference is None:
                    first = min(each.offset for each in (one, other) if each is not None)
                    check.difference = f"the first difference is at offset {first}"
        check.compared_to = end


def _note_keys(records: Iterator[ReadRecord], keys: dict[bytes, bytes], of_all: RecordHash) -> None:
    """Keep a digest of the latest record of each key in `keys`. A tombstone deletes its key."""
    for record in records:
        of_all.add(*record)
        key = record.key or b""
        if record.value is None:
            keys.pop(key, None)
        else:
            keys[key] = blake2b(repr(record).encode(), digest_size=DIGEST_BYTES).digest()


class ComparedReader:
    """Reads one partition after another with one consumer.

    `timeout_s` bounds each wait for a record, in seconds.
    """

    def __init__(self, config: Mapping[str, Any], timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._consumer = Consumer(
            {
                **config,
                "group.id": f"bucketlog-mirror-{uuid4().hex}",  # required, but not used
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "check.crcs": True,
            }
        )

    def close(self) -> None:
        self._consumer.close()

    def records(self, partition: Partition, start: int, end: int) -> Iterator[ReadRecord]:
        """The committed records from `start` up to, but not including, `end`. Raises `LogError`."""
        self._consumer.assign([KafkaPartition(*partition, start)])
        while True:
            first = self._consumer.poll(self._timeout_s)
            if first is None:
                raise LogError(
                    f"no record of {partition} arrived in {self._timeout_s:.0f} s",
                    code="TIMED_OUT",
                    kafka_code=KafkaError._TIMED_OUT,
                    retriable=True,
                )
            for message in (first, *self._consumer.consume(MESSAGES_AT_ONCE, 0)):  # without waiting
                error, offset = message.error(), int(message.offset() or 0)
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise log_error(error, f"reading {partition}")
                    if offset >= end:
                        return
                    continue
                if offset >= end:
                    return
                yield _record(message, offset)
                if offset == end - 1:
                    return


def _record(message: Any, offset: int) -> ReadRecord:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return ReadRecord(offset, message.timestamp()[1], message.key(), message.value(), headers)
