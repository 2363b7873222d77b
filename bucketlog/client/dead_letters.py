"""Records of dead-letter topics and retry topics: origin, reason, and the record as it was.

`origin_headers` explains the headers. Their names are those of Kafka Connect (KIP-298).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from bucketlog.client.origin_headers import number_in, split_headers
from bucketlog.client.topic import Record, Topic

if TYPE_CHECKING:
    from bucketlog.client.log import Log

POLL_RECORDS = 500
QUEUE_BYTES = 16 * 1024 * 1024
END = 2**63 - 1
"""Beyond all offsets."""


@dataclass(frozen=True, slots=True)
class DeadLetterRecord:
    """A record of a dead-letter topic. Fields are None if the record has no such header.

    `headers` are those of the original record. `exception` is the name of the exception's class.
    """

    record: Record[bytes, bytes]
    headers: tuple[tuple[str, bytes | None], ...]
    origin_topic: str | None
    origin_partition: int | None
    origin_offset: int | None
    stage: str | None
    attempts: int | None
    exception: str | None
    message: str | None
    due_ms: int | None
    """Time at which a record of a retry topic is due, in ms since 1970; None in other topics."""
    timestamp_ms: int
    """Timestamp of the original record; -1: none."""

    @classmethod
    def of(cls, record: Record[bytes, bytes]) -> "DeadLetterRecord":
        kept, added = split_headers(record.headers)
        first_ms = number_in(added, "timestamp_ms")
        return cls(
            record,
            kept,
            added.get("topic"),
            number_in(added, "partition"),
            number_in(added, "offset"),
            added.get("stage"),
            number_in(added, "attempts"),
            added.get("exception.class.name"),
            added.get("exception.message"),
            number_in(added, "due_ms"),
            record.timestamp_ms if first_ms is None else first_ms,
        )

    @property
    def origin(self) -> str | None:
        """`orders[2]@17`."""
        if self.origin_topic is None:
            return None
        partition = "?" if self.origin_partition is None else self.origin_partition
        return f"{self.origin_topic}[{partition}]@{self.origin_offset}"


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which records of a dead-letter topic are read.

    `partitions`: those of the dead-letter topic; None: all. `start` and `until` (exclusive): an
    offset or a time; None: the topic's ends. `origins`: names of origin topics. `reasons`: texts
    that the exception's class or message contains, without regard to case. Empty: all.
    """

    partitions: tuple[int, ...] | None = None
    start: int | datetime | None = None
    until: int | datetime | None = None
    origins: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def accepts(self, letter: DeadLetterRecord) -> bool:
        if self.origins and letter.origin_topic not in self.origins:
            return False
        reason = f"{letter.exception or ''}\n{letter.message or ''}".casefold()
        return not self.reasons or any(text.casefold() in reason for text in self.reasons)


@dataclass(frozen=True, slots=True)
class OffsetSpan:
    """What is read of a partition. `end` None: up to its present end."""

    earliest: int
    latest: int
    start: int
    end: int | None


def spans(log: "Log", topic: str, wanted: DeadLetterFilter) -> dict[int, OffsetSpan]:
    """What the filter's positions mean now, by partition. Raises `LogError`, and
    `ConfigurationError` for a partition that does not exist."""
    rows = log.topics.offsets_of(topic, wanted.partitions)
    chosen = [row.partition for row in rows]
    starts = _offsets(log, topic, chosen, wanted.start)
    ends = _offsets(log, topic, chosen, wanted.until)
    found: dict[int, OffsetSpan] = {}
    for row in rows:
        part, earliest, latest = row.partition, row.earliest, row.latest
        start = min(max(starts.get(part, earliest), earliest), latest)
        end = ends.get(part, latest)
        found[part] = OffsetSpan(earliest, latest, start, end if end < latest else None)
    return found


def _offsets(
    log: "Log", topic: str, partitions: list[int], position: int | datetime | None
) -> dict[int, int]:
    """Return the offsets of a position."""
    if isinstance(position, datetime):
        found = log.topics.offsets_at(topic, partitions, position)
        return {part: END if offset is None else offset for part, offset in found.items()}
    return {} if position is None else dict.fromkeys(partitions, position)


def read_records(
    log: "Log", topic: str, wanted: Mapping[int, OffsetSpan]
) -> Iterator[Record[bytes, bytes]]:
    """All records of the spans, by offset in each partition. Raises `LogError`."""
    mine = {
        part: span
        for part, span in wanted.items()
        if span.start < (span.latest if span.end is None else span.end)
    }
    if not mine:
        return
    with log.consumer(
        Topic(topic),
        start={part: span.start for part, span in mine.items()},
        partitions=mine,
        until={part: span.end for part, span in mine.items() if span.end is not None},
        queue_bytes=QUEUE_BYTES,
    ) as consumer:
        for records in consumer.batches(POLL_RECORDS):
            yield from records
