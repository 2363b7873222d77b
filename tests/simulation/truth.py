"""What clients were told, held against itself while the run goes on, and against the bucket in the
end.

Invariants that it holds the log to: a record's offset is its own for ever; what was acknowledged,
and what was read, is in the log in the end; between two records that a reader got one after the
other there is nothing; an idempotent producer's records are there once and in order.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.records import decode_records
from tests.simulation.log_starts import LogStarts
from tests.simulation.trace import Trace

Records = list[tuple[int, bytes]]


def decode(data: bytes) -> tuple[Records, int]:
    """Offsets and values of whole batches, and the offset after the last batch (0: none)."""
    found: Records = []
    at = end = 0
    while at < len(data):
        header = read_header(data, at)
        records = decode_records(data[at : at + header.size_bytes], header)
        found += [(record.offset, bytes(record.value or b"")) for record in records]
        at += header.size_bytes
        end = header.base_offset + header.last_offset_delta + 1
    return found, end


@dataclass(frozen=True)
class ReadRange:
    """All that a reader got of a partition between two offsets."""

    reader: str
    partition: TopicIdPartition
    begin: int
    end: int
    records: tuple[tuple[int, bytes], ...]


class Truth:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.log_starts = LogStarts(trace)
        self.placed: dict[TopicIdPartition, dict[int, tuple[bytes, str]]] = {}
        """What stands where, and who was told so first."""
        self.acknowledged_bases: dict[TopicIdPartition, list[int]] = {}
        """Of batches, in the order of their acknowledgements."""
        self.deleted: set[TopicIdPartition] = set()
        """What may be gone with its topic."""
        self.compacted: set[TopicIdPartition] = set()
        """What may be gone because a later record has its key."""
        self.ranges: list[ReadRange] = []
        self.sent: set[bytes] = set()
        self.batches = 0
        self._producer_ids: dict[int, str] = {}

    def give_producer_id(self, who: str, producer_id: int) -> None:
        if producer_id in self._producer_ids:
            owner = self._producer_ids[producer_id]
            self._trace.violate("producer ids", f"{producer_id} is {owner}'s, and now {who}'s")
        self._producer_ids[producer_id] = who

    def acknowledge(
        self, who: str, partition: TopicIdPartition, base: int, values: Sequence[bytes]
    ) -> None:
        self.batches += 1
        self.acknowledged_bases.setdefault(partition, []).append(base)
        for delta, value in enumerate(values):
            self._place(f"acknowledged to {who}", partition, base + delta, value)

    def read(self, who: str, partition: TopicIdPartition, records: Records) -> None:
        last = -1
        for offset, value in records:
            if offset <= last:
                self._trace.violate("order", f"{who} got {offset} after {last} of {partition}")
            last = offset
            self._place(f"read by {who}", partition, offset, value)

    def _place(self, how: str, partition: TopicIdPartition, offset: int, value: bytes) -> None:
        if value not in self.sent:
            self._trace.violate("invented", f"{value!r} {how} at {offset} of {partition}")
        there = self.placed.setdefault(partition, {}).setdefault(offset, (value, how))
        if there[0] != value:
            self._trace.violate(
                "moved", f"{partition} {offset}: {there[0]!r} {there[1]}, {value!r} {how}"
            )

    # In the end ------------------------------------------------------------------------------

    def check(self, log: Mapping[TopicIdPartition, Mapping[int, bytes]]) -> None:
        """`log` is all that is committed, of partitions that exist."""
        for partition, placed in self.placed.items():
            found = log.get(partition, {})
            if partition in self.deleted:
                continue
            for offset, (value, how) in placed.items():
                if found.get(offset) != value:
                    told = f"{value!r} at {offset} of {partition} was {how}"
                    self._trace.violate("lost", f"{told}; there stands {found.get(offset)!r}")
        for read in self.ranges:
            self._check_range(read, log)
        for partition, records in log.items():
            self._check_producers(partition, records)

    def _check_range(
        self, read: ReadRange, log: Mapping[TopicIdPartition, Mapping[int, bytes]]
    ) -> None:
        found = log.get(read.partition)
        if found is None:
            return
        wanted = [(at, found[at]) for at in sorted(found) if read.begin <= at < read.end]
        if list(read.records) != wanted:
            missed = [row for row in wanted if row not in read.records]
            extra = [row for row in read.records if row not in wanted]
            self._trace.violate(
                "withdrawn or passed over",
                f"{read.reader} of {read.partition} {read.begin}-{read.end}: "
                f"not read {missed[:3]}, not there any more {extra[:3]}",
            )

    def _check_producers(self, partition: TopicIdPartition, records: Mapping[int, bytes]) -> None:
        """Values of idempotent producers are `i<producer>:<number>`, counted from 0."""
        seen: Counter[bytes] = Counter()
        for offset in sorted(records):
            value = records[offset]
            if not value.startswith(b"i"):
                continue
            producer, _, number = value.partition(b":")
            if int(number) != seen[producer]:
                self._trace.violate(
                    "once and in order",
                    f"{value!r} at {offset} of {partition} comes where {seen[producer]} must",
                )
                return
            seen[producer] += 1
