"""Saying what is lost with a damaged object: topics, partitions and offsets, beside its key.

Where a footer is what is damaged, nothing says any more what stood in its segment: then it is the
offsets that no other object holds, as far as tickets allow. They may have been void.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter

from bucketlog.log_format.checkpoint import Checkpoint, StoredBatch
from bucketlog.log_format.errors import (
    BucketError,
    BucketlogError,
    CorruptObjectError,
    InvalidDataError,
)
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, TierObject, TopicIdPartition
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.log_cut import ReadablePartition
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint, read_footers
from bucketlog.tiered_storage.segment import is_seal
from bucketlog.tiered_storage.tails import all_starts, registered_after, tail_starts

PLACES_MAX = 5
_AGAIN = "if reading took longer than objects are kept after they are replaced, begin again; "
READ_REMEDY = (
    f"{_AGAIN}else restore the object, or leave these offsets out by startingOffsets or "
    "endingOffsets"
)
PLAN_REMEDY = f"{_AGAIN}else restore the object from a version or a copy of the bucket"

UNREADABLE_REMEDY = (
    "set failOnUnreadable=false to skip the batch, or exclude its offsets with startingOffsets or "
    "endingOffsets"
)

Names = Iterable[tuple[str, TopicIdPartition]]


class UnreadableBatchError(InvalidDataError):
    """A batch with a correct CRC whose records do not decode. The batch was produced this way, so a
    copy of the object does not help. Brokers accept it only with `record.validation=header`."""

    code = "UNREADABLE_BATCH"


def damaged(
    error: CorruptObjectError, places: Sequence[str], remedy: str = READ_REMEDY
) -> CorruptObjectError:
    """The same, with the places that `place` names."""
    more = f" and {len(places) - PLACES_MAX} more" if len(places) > PLACES_MAX else ""
    reason = f"{error.reason}: {'; '.join(places[:PLACES_MAX])}{more}"
    return CorruptObjectError(error.key, error.position, reason, remedy=remedy)


def place(topic: str, partition: int, first: int, last: int | None) -> str:
    """`last` None: there may be any number of offsets from `first` on."""
    end = f"offsets {first} to {last}" if last is not None else f"offsets from {first} on"
    return f"topic {topic!r} partition {partition} {end}"


@contextmanager
def placing(names: Names, parts: Mapping[TopicIdPartition, ReadablePartition]) -> Iterator[None]:
    """Around requests for objects of `parts`, whose topics are in `names`."""
    try:
        yield
    except CorruptObjectError as error:
        places = [
            place(topic, partition.partition, first, last)
            for topic, partition in names
            for first, last in _in_object(error.key, parts[partition])
        ]
        if not places:
            raise
        raise damaged(error, places, PLAN_REMEDY) from error


def _in_object(key: str, part: ReadablePartition) -> Iterator[tuple[int, int | None]]:
    for row in part.rows:
        if keys.tier_object(TierObject.of(part.partition, row)) == key:
            yield row.start, row.end - 1
            return
    with suppress(InvalidDataError):  # of an object that a manifest lists
        there = keys.parse_tier_object(key)
        if there.partition == part.partition:
            yield there.start, None
    mine = [each.row for each in part.batches if keys.segment(each.segment) == key]
    if mine:
        yield mine[0].base_offset, mine[-1].next_offset - 1


def without_footer(
    bucket: SyncBucket, error: CorruptObjectError, select: Callable[[LogState], Names]
) -> CorruptObjectError:
    """`error` with what may have stood in its segment of the partitions that `select` gives; as it
    is where that cannot be found out."""
    with suppress(BucketlogError, KeyError):
        lost = keys.parse_segment(error.key)
        checkpoint = read_checkpoint(bucket)
        indexes = _sound_footers(bucket, checkpoint)
        state = fold(
            (each for each in indexes if checkpoint is None or each.ticket >= checkpoint.ticket),
            onto=restored(checkpoint, keep_producers=False, keep_groups=False),
        )
        after, before = _tickets_around(lost, indexes)
        places = [
            place(topic, partition.partition, first, last)
            for topic, partition in select(state)
            for first, last in _missing(partition, checkpoint, indexes, after, before)
        ]
        if places:
            return damaged(error, places, PLAN_REMEDY)
    return error


def _sound_footers(bucket: SyncBucket, checkpoint: Checkpoint | None) -> list[SegmentIndex]:
    """Return the readable footers after `checkpoint`, by ticket."""
    if checkpoint is None:
        starts = all_starts(bucket.list(keys.WRITERS))
    else:
        registered = bucket.list(keys.WRITERS, start_after=registered_after(checkpoint))
        starts = tail_starts(checkpoint, registered)
    found: list[SegmentIndex] = []
    for start in starts:
        for info in bucket.list(start.prefix, start_after=start.start_after):
            if not is_seal(info.size_bytes):
                with suppress(CorruptObjectError, InvalidDataError, BucketError):
                    found += read_footers(bucket, [keys.parse_segment(info.key)])
    return sorted(found, key=attrgetter("ticket"))


def _tickets_around(
    lost: SegmentId, indexes: Iterable[SegmentIndex]
) -> tuple[Ticket | None, Ticket | None]:
    """Of its neighbours in its chain."""
    mine = [each for each in indexes if each.segment.writer == lost.writer]
    after = max((each.ticket for each in mine if each.segment.seq < lost.seq), default=None)
    before = min((each.ticket for each in mine if each.segment.seq > lost.seq), default=None)
    return after, before


def _missing(
    partition: TopicIdPartition,
    checkpoint: Checkpoint | None,
    indexes: Iterable[SegmentIndex],
    after: Ticket | None,
    before: Ticket | None,
) -> Iterator[tuple[int, int | None]]:
    """First and last offset of what no segment holds that is between the two tickets."""
    covered = checkpoint.partitions.get(partition) if checkpoint is not None else None
    end, ticket = (covered.high_watermark if covered is not None else 0), Ticket(0, 0)
    batches = [
        StoredBatch(index.segment, index.ticket, row)
        for index in indexes
        for part in index.partitions
        if part.partition == partition
        for row in part.batches
        if row.base_offset >= end
    ]
    for batch in batches:
        is_between = (before is None or ticket < before) and (after is None or batch.ticket > after)
        if batch.row.base_offset > end and is_between:
            yield end, batch.row.base_offset - 1
        end, ticket = batch.row.next_offset, batch.ticket
    if before is None or ticket < before:
        yield end, None
