"""The part of `segment verify` below a floor, where the log may have been thinned out: what is left
is compared with the oldest sound checkpoint at or above the floor, and that is begun with."""

from collections.abc import Collection, Iterable, Mapping

from bucketlog.inspect.verify_report import VerifyReport
from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, TopicIdPartition, WriterId
from bucketlog.metadata.checkpoint import restored
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, SyncBucket
from bucketlog.tiered_storage.chains import Chain, read_chain
from bucketlog.tiered_storage.checkpoint import check_stored_bytes, decode_checkpoint


def find_base(
    bucket: SyncBucket, checkpoints: Iterable[ObjectInfo], floor: Ticket, report: VerifyReport
) -> Checkpoint | None:
    """None, and damage, where no checkpoint says any more what may be missing."""
    for info in checkpoints:
        try:
            if keys.parse_checkpoint(info.key) >= floor:
                check_stored_bytes(info)
                found = decode_checkpoint(info.key, bucket.get(info.key).data)
                restored(found)
                return found
        except BucketlogError:  # the checkpoints are checked, and named, later
            continue
    reason = "no sound checkpoint is at or above it: what it covers may be gone"
    report.found(keys.floor(floor), 0, reason)
    return None


def chains_after(
    base: Checkpoint, objects: Iterable[ObjectInfo], registered: Mapping[WriterId, int]
) -> dict[WriterId, Chain]:
    """Of those that may continue after it, the part that it does not cover."""
    starts = {row.writer: row.end for row in base.writers}
    listed: dict[WriterId, list[ObjectInfo]] = {}
    for info in objects:
        writer, seq = keys.parse_segment(info.key)
        if registered.get(writer, 0) >= base.ticket.epoch and seq >= starts.get(writer, 0):
            listed.setdefault(writer, []).append(info)
    return {
        writer: read_chain(writer, infos, starts.get(writer, 0)) for writer, infos in listed.items()
    }


def check_registered(
    objects: Iterable[ObjectInfo],
    indexes: Mapping[SegmentId, SegmentIndex],
    registered: Collection[WriterId],
    base: Checkpoint | None,
    report: VerifyReport,
) -> None:
    """Below a floor, what came late to a chain that is deleted may lie about."""
    for writer in sorted({keys.parse_segment(info.key).writer for info in objects}):
        newest = [index.ticket for name, index in indexes.items() if name.writer == writer]
        counts = base is None or any(ticket >= base.ticket for ticket in newest)
        if writer not in registered and counts:
            report.found(keys.chain(writer), 0, "the chain of a writer that never registered")


def check_covered(
    base: Checkpoint, indexes: Mapping[SegmentId, SegmentIndex], report: VerifyReport
) -> None:
    """Each batch that it knows of is in its segment, as it says."""
    missing: set[SegmentId] = set()
    for partition in base.partitions:
        for batch in base.batches(partition):
            index = indexes.get(batch.segment)
            report.batches += 1
            report.records += batch.row.record_count
            if index is None:
                missing.add(batch.segment)
            elif not any(
                part.partition == partition and batch.row in part.batches
                for part in index.partitions
            ):
                report.found(
                    keys.checkpoint(base.ticket),
                    0,
                    f"it has a batch at offset {batch.row.base_offset} that is not in "
                    f"{keys.segment(batch.segment)!r}",
                )
    damaged = {damage.key for damage in report.damage}
    for segment in sorted(missing):
        if keys.segment(segment) not in damaged:
            report.found(keys.segment(segment), 0, "a segment is missing here")


def covered_ends(base: Checkpoint | None) -> dict[TopicIdPartition, tuple[int, SegmentId]]:
    """Per partition with batches, the end of the last one, and the place of that batch."""
    ends: dict[TopicIdPartition, tuple[int, SegmentId]] = {}
    for partition, part in base.partitions.items() if base is not None else ():
        for segment in base.segments_of(partition) if base is not None else ():
            ends[partition] = part.high_watermark, segment
    return ends
