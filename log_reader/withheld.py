"""Finds and reports committed records behind offsets that a broker may still be writing. Pure.

A reader of the bucket alone cannot distinguish such offsets from void ones
(`tiered_storage.log_cut`). It leaves out the records behind them until it can. A batch read of the
newest records logs a warning.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_reader.bounds import LATEST, Bound, TimestampBound
from bucketlog.log_reader.ranges import OffsetRange
from bucketlog.tiered_storage.log_cut import ReadablePartition

PARTITIONS_NAMED = 10


class WithheldRecords(NamedTuple):
    """`records` is the number of withheld records of one partition."""

    topic: str
    partition: int
    records: int


def withheld_of(
    ranges: Sequence[OffsetRange],
    parts: Mapping[TopicIdPartition, ReadablePartition],
    ending: Bound | None,
) -> list[WithheldRecords]:
    """The withheld records of partitions that are read up to their newest record. A range that ends
    at a given offset, or at a time that an earlier record has reached, lacks nothing."""
    return [
        WithheldRecords(wanted.topic, wanted.partition.partition, part.withheld_records)
        for wanted in ranges
        if (part := parts[wanted.partition]).withheld_records
        and wanted.end >= part.end_offset
        and _is_open_ended(ending, wanted)
    ]


def _is_open_ended(ending: Bound | None, wanted: OffsetRange) -> bool:
    if isinstance(ending, Mapping):
        return ending[wanted.topic][wanted.partition.partition] == LATEST
    return ending in (None, "latest") or isinstance(ending, TimestampBound)


def warning_of(withheld: Sequence[WithheldRecords]) -> str:
    """A message: how many records are withheld, why, and what to do."""
    records = sum(each.records for each in withheld)
    named = ", ".join(f"{topic}-{number}" for topic, number, _ in withheld[:PARTITIONS_NAMED])
    more = len(withheld) - PARTITIONS_NAMED
    also = f" and {more} more" if more > 0 else ""
    return (
        f"left out: {records} of the newest records, in {named}{also}. A broker may still be "
        "writing offsets below them. Read again in a few seconds; if records are left out for "
        "longer, check that a broker is running and can write"
    )
