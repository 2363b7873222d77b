"""Batches of one partition and partition segments of them, for tests: real bytes, in few words."""

from collections.abc import Sequence
from typing import NamedTuple

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import (
    NO_TIMESTAMP,
    Buffer,
    Ticket,
    TierObject,
    TopicId,
    TopicIdPartition,
)
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.partition_segment import FinishedSegment, PartitionSegmentWriter

PARTITION = TopicIdPartition(TopicId(b"t" * 16), 3)
NAME = keys.tier_name(Ticket(2, 17), "0123456789abcdef")
WRITTEN_MS = 1_700_000_000_000


class Planned(NamedTuple):
    """A batch to write: so many offsets are left out before it; `timestamp` is that of its last
    record, the highest; `filler` bytes make it large."""

    gap: int
    records: int
    timestamp: int
    filler: int = 0


def made(planned: Sequence[Planned], start: int = 0) -> list[bytes]:
    batches = []
    for each in planned:
        start += each.gap
        stamps = [min(each.timestamp, 0)] * (each.records - 1) + [each.timestamp]
        batches.append(
            encode_batch(
                [
                    DecodedRecord(start + at, stamp, None, b"v%d" % at + bytes(each.filler))
                    for at, stamp in enumerate(stamps)
                ]
            )
        )
        start += each.records
    return batches


def next_of(batches: Sequence[bytes], start: int) -> int:
    return read_header(batches[-1]).next_offset if batches else start


def described(writer: PartitionSegmentWriter, batch: Buffer) -> None:
    header = read_header(batch)
    writer.describe(
        header.base_offset,
        header.next_offset,
        len(batch),
        header.record_count,
        header.max_timestamp,
    )


def written(
    batches: Sequence[bytes], start: int = 0, end: int | None = None, name: str = NAME
) -> FinishedSegment:
    writer = PartitionSegmentWriter(PARTITION, start)
    for batch in batches:
        described(writer, batch)
        writer.append(batch)
    return writer.finish(next_of(batches, start) if end is None else end, name, WRITTEN_MS)


def joined(segment: FinishedSegment) -> tuple[TierObject, bytes]:
    return segment.there, b"".join(segment.parts)


def highest(batches: Sequence[bytes]) -> int:
    return max((read_header(each).max_timestamp for each in batches), default=NO_TIMESTAMP)
