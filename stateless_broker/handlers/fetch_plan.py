"""The partitions of a Fetch: planned reads, results, and records of the response. Pure.

Invariant: the batches for a `read_committed` consumer end at or before the last stable offset of
the plan, and the response lists the aborted transactions of those batches that come from log
segments. Tiers hold neither markers nor aborted records: if the response listed a transaction
without its marker, the consumer would drop the producer's later records. Source: KIP-98; Kafka's
UnifiedLog.read, and CompletedFetch of its consumer.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer, StoredObject, TopicId, TopicIdPartition
from bucketlog.log_format.transactions import AbortedTransaction
from bucketlog.log_format.wire import fetch
from bucketlog.metadata.partition_log import PartitionLog, StoredRange, Stretch

_OVERTAKEN = (ErrorCode.none, ErrorCode.kafka_storage_error)
_ABORTED_BYTES = 17
_RESULT_BYTES = 68
"""Size of a partition in a topic that has no other, without the name: a topic id, lengths, offsets,
tags."""
FEW_PARTITIONS = 16
"""Plans of up to this number of partitions keep their rows as objects, which are used again."""


class PlannedPartition(NamedTuple):
    """A partition of a request: an error, or the log to read."""

    topic: str
    topic_id: TopicId | None
    number: int
    fetch_offset: int
    max_bytes: int
    error: ErrorCode
    log: PartitionLog | None
    committed_only: bool

    @property
    def end(self) -> int:
        """The offset up to which the consumer may read now. It never decreases."""
        if self.log is None:
            return 0
        return self.log.readable_end(committed_only=self.committed_only)

    def aborted_in(self, offset: int, stretch: Stretch) -> Sequence[AbortedTransaction]:
        """The aborted transactions in the stretch, which begins at or after `offset`. The view must
        not have changed since the stretch was taken."""
        if self.log is None or not self.committed_only or not stretch.ranges:
            return ()
        return self.log.transactions.aborted_in(offset, stretch.end)


class PlannedPartitions:
    """The partitions of a request, with the log or the error of each. Nothing else of a request is
    kept while it waits: 36 bytes for each partition, because a request may have many."""

    __slots__ = (
        "_committed_only",
        "_errors",
        "_few",
        "_logs",
        "has_failed_reads",
        "has_logs",
        "wanted",
    )

    def __init__(self, wanted: fetch.FetchPartitions, *, committed_only: bool) -> None:
        self.wanted = wanted
        self.has_logs = False
        """Whether at least one partition exists, and the client may read it."""
        self.has_failed_reads = False
        """Whether a partition exists and has an error."""
        self._committed_only = committed_only
        self._logs: list[PartitionLog | None] = []
        self._errors: dict[int, ErrorCode] = {}
        """Errors by row."""
        self._few: list[PlannedPartition] | None = None
        """All rows, if they are few; None if they are not made, or have changed."""

    def add(self, error: ErrorCode, log: PartitionLog | None = None) -> None:
        """Plan the next of the wanted partitions."""
        self._few = None
        if log is not None:
            self.has_logs = True
        if error is not ErrorCode.none:
            self._errors[len(self._logs)] = error
            if log is not None:
                self.has_failed_reads = True
        self._logs.append(log)

    def fail(self, row: int, error: ErrorCode) -> None:
        """Fail a partition that exists."""
        self._few = None
        self._errors[row] = error
        self.has_failed_reads = True

    def forget_from(self, start: int) -> None:
        """Forget the plan of these rows."""
        self._few = None
        for row in range(start, len(self._logs)):
            self._errors.pop(row, None)
        del self._logs[start:]
        self.has_logs = any(log is not None for log in self._logs)
        self.has_failed_reads = any(self._logs[row] is not None for row in self._errors)

    @property
    def is_due(self) -> bool:
        """Whether the response must not wait for records. Partitions that are unknown, or that the
        client may not read, do not end the wait for others (Kafka: ReplicaManager)."""
        return self.has_failed_reads or not self.has_logs

    @property
    def answer_bytes(self) -> int:
        """The bytes of a response to these partitions without records, rounded up."""
        return len(self._logs) * _RESULT_BYTES + self.wanted.name_bytes()

    def with_logs(self) -> Iterator[tuple[int, TopicIdPartition]]:
        """The partitions that exist, with their rows."""
        for row, log in enumerate(self._logs):
            if log is not None:
                yield row, log.partition

    def __len__(self) -> int:
        return len(self._logs)

    def rows(self, rows: Iterable[int]) -> Iterator[tuple[int, PlannedPartition]]:
        """Return these partitions with their rows."""
        few = self._kept()
        for row in rows:
            if few is not None:
                yield row, few[row]
            else:
                yield row, self._planned(row, self.wanted[row], self._logs[row])

    def _kept(self) -> list[PlannedPartition] | None:
        """All rows, if they are few."""
        if self._few is None and len(self._logs) <= FEW_PARTITIONS:
            self._few = list(self._each())
        return self._few

    def __iter__(self) -> Iterator[PlannedPartition]:
        few = self._kept()
        return iter(few) if few is not None else self._each()

    def _each(self) -> Iterator[PlannedPartition]:
        for row, (wanted, log) in enumerate(zip(self.wanted, self._logs, strict=True)):
            yield self._planned(row, wanted, log)

    def _planned(
        self, row: int, wanted: fetch.FetchedPartition, log: PartitionLog | None
    ) -> PlannedPartition:
        return PlannedPartition(
            wanted.topic,
            wanted.topic_id,
            wanted.partition,
            wanted.fetch_offset,
            wanted.max_bytes,
            self._errors.get(row, ErrorCode.none),
            log,
            self._committed_only and log is not None,
        )


class ReadableBytes:
    """The bytes that a waiting Fetch could read, by row. Only rows with bytes take memory."""

    __slots__ = ("_by_row", "total")

    def __init__(self) -> None:
        self._by_row: dict[int, int] = {}
        self.total = 0

    def put(self, row: int, size: int) -> None:
        self.total += size - self._by_row.pop(row, 0)
        if size:
            self._by_row[row] = size

    def take_rows(self) -> list[int]:
        """Forget all counts; returns the rows that had bytes."""
        rows, self._by_row, self.total = list(self._by_row), {}, 0
        return rows


class FetchedRecords(NamedTuple):
    """Batches of a partition with their aborted transactions, or the error."""

    error: ErrorCode
    parts: list[Buffer]
    aborted: Sequence[AbortedTransaction] = ()

    @property
    def is_nothing(self) -> bool:
        return self.error is ErrorCode.none and not self.parts

    @property
    def size_bytes(self) -> int:
        return sum(len(part) for part in self.parts)


NOTHING = FetchedRecords(ErrorCode.none, [])


class PlannedRead(NamedTuple):
    """A read that has not begun. `size`: bytes of the batches; for the tier, an upper bound.
    `start` reads them. Its argument has the number of bytes that the response takes from each log
    segment, or is empty. `aborted`: number of aborted transactions in the response. `ranges`: the
    ranges of log segments to read."""

    size: int
    start: Callable[[Mapping[StoredObject, int]], Awaitable[FetchedRecords]]
    aborted: int = 0
    ranges: Sequence[StoredRange] = ()

    @property
    def answer_bytes(self) -> int:
        return self.size + _ABORTED_BYTES * self.aborted


class LogOffsets(NamedTuple):
    """The offsets of a partition after its records were read; -1 if the partition is gone."""

    high_watermark: int
    last_stable_offset: int
    log_start: int


def result_of(
    part: PlannedPartition, offsets: LogOffsets, records: FetchedRecords
) -> fetch.FetchPartitionData:
    high_watermark, last_stable_offset, log_start = offsets
    failed = part.error if part.error is not ErrorCode.none else records.error
    if failed is ErrorCode.none and high_watermark < 0:
        failed = ErrorCode.unknown_topic_or_partition  # deleted while the fetch waited
    elif failed in _OVERTAKEN and part.fetch_offset < log_start:
        failed = ErrorCode.offset_out_of_range  # the log start moved past it while the fetch waited
    if failed is ErrorCode.offset_out_of_range:
        high_watermark = last_stable_offset = log_start = -1  # as Kafka answers
    return fetch.FetchPartitionData(
        part.topic,
        part.topic_id,
        part.number,
        failed,
        high_watermark,
        last_stable_offset,
        log_start,
        records.parts if failed is ErrorCode.none else [],
        (records.aborted if failed is ErrorCode.none else ()) if part.committed_only else None,
    )
