"""A log with transactions, written to a bucket before a broker starts: brokers write none yet.

Each partition has plain records, committed and aborted transactions that overlap, several of one
producer, and at the end an open transaction with plain records above it. `GROUP` has an offset of
partition 0 from a committed transaction, and one of each partition in the open one.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from tests.rigs.written_log import START_MS, WrittenLog, transactional_id_of

TOPIC = "orders"
GROUP = "copier"
OPEN_PRODUCER = 1 << 45
PRODUCERS = (7, 8, 9)
COMMITTED_OFFSET = 3


@dataclass
class PlantedPartition:
    """Values by offset. `stable_end` is the last stable offset."""

    everything: dict[int, bytes] = field(default_factory=dict)
    committed: dict[int, bytes] = field(default_factory=dict)
    stable_end: int = 0
    end: int = 0


class TransactionalLog:
    def __init__(
        self, bucket: SyncBucket, seed: int, *, partitions: int = 2, steps: int = 60
    ) -> None:
        self.log = WrittenLog(bucket)
        self.random = random.Random(seed)
        self.count = 0
        self.pending: dict[int, list[tuple[int, int, bytes]]] = {}
        assert bucket.create(keys.epoch_claim(1), [b"{}"])
        self.log.create_topic(TOPIC, partitions)
        self.partitions = {number: PlantedPartition() for number in range(partitions)}
        for _ in range(steps):
            self._step()
            if self.random.random() < 0.7:
                self.log.flush()
        for producer_id in PRODUCERS[1:]:
            self.end(producer_id, commit=self.random.random() < 0.5)
        self.append(0, 1, PRODUCERS[0])
        self.log.send_offsets(PRODUCERS[0], GROUP, {self.partition(0): COMMITTED_OFFSET})
        self.end(PRODUCERS[0], commit=True)
        self.log.flush()
        for number, part in self.partitions.items():
            part.stable_end = self.log.next_offset[self.partition(number)]
            self.append(number, 2, OPEN_PRODUCER)
            self._plain(number, below=part.stable_end)
        pending = {self.partition(number): 9 for number in self.partitions}
        self.log.send_offsets(OPEN_PRODUCER, GROUP, pending)
        self.log.flush()
        for number, part in self.partitions.items():
            part.end = self.log.next_offset[self.partition(number)]

    def partition(self, number: int) -> TopicIdPartition:
        return self.log.partition(TOPIC, number)

    @property
    def open_id(self) -> str:
        return transactional_id_of(OPEN_PRODUCER)

    def _step(self) -> None:
        number = self.random.randrange(len(self.partitions))
        what = self.random.random()
        if what < 0.3:
            self._plain(number)
        elif what < 0.8:
            self.append(number, self.random.randint(1, 3), self.random.choice(PRODUCERS))
        elif self.pending:
            self.end(self.random.choice(sorted(self.pending)), commit=self.random.random() < 0.5)
            self.log.flush()  # the next transaction of the producer begins after the end

    def _records(self, count: int) -> list[DecodedRecord]:
        first, self.count = self.count, self.count + count
        values = (b"value-%d" % at for at in range(first, first + count))
        return [DecodedRecord(0, START_MS + self.count, b"key", value) for value in values]

    def _plain(self, number: int, *, below: int | None = None) -> None:
        part = self.partitions[number]
        for record in self.log.append(TOPIC, number, self._records(2)):
            part.everything[record.offset] = record.value or b""
            if below is None or record.offset < below:
                part.committed[record.offset] = record.value or b""

    def append(self, number: int, count: int, producer_id: int) -> None:
        """A batch of a transaction, for the next segment."""
        placed = self.log.append(
            TOPIC, number, self._records(count), producer_id=producer_id, transactional=True
        )
        rows = [(number, record.offset, record.value or b"") for record in placed]
        self.pending.setdefault(producer_id, []).extend(rows)
        self.partitions[number].everything.update({offset: value for _, offset, value in rows})

    def end(self, producer_id: int, *, commit: bool) -> None:
        """The markers, for the next segment."""
        rows = self.pending.pop(producer_id, [])
        if rows:
            self.log.end_transaction(producer_id, commit=commit)
            for number, offset, value in rows if commit else ():
                self.partitions[number].committed[offset] = value

    def expected(self, *, committed_only: bool) -> Mapping[int, list[tuple[int, bytes]]]:
        """Offsets and values by partition, in order."""
        return {
            number: sorted((part.committed if committed_only else part.everything).items())
            for number, part in self.partitions.items()
        }
