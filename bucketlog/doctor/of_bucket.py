"""The digest of a log from its bucket alone: a checkpoint, the tails and two passes, as any reader
without a broker. Every batch is read, and its CRC holds. Invariant: each segment is read once; its
batches are taken in ticket order, which is offset order within a partition."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bucketlog.checkpoint import StoredBatch
from bucketlog.doctor.digest import (
    CommittedDigest,
    LogDigest,
    PartitionDigest,
    RecordHash,
    TopicDigest,
    as_clients_show,
)
from bucketlog.errors import ObjectNotFoundError
from bucketlog.model import SegmentId, Ticket, TopicPartition
from bucketlog.wire.batch import CONTROL, read_header
from bucketlog.wire.records import decode_records
from metadata.checkpoint import restored
from metadata.fold import LogState, fold
from tiered_storage import keys
from tiered_storage.bucket import SyncBucket
from tiered_storage.identity import ClusterIdentity, NoLogError
from tiered_storage.log_cut import readable
from tiered_storage.log_reader import read_log
from tiered_storage.segment import check_batch

SEGMENTS_IN_FLIGHT = 16


class _Wanted(NamedTuple):
    ticket: Ticket
    segment: SegmentId
    batches: list[tuple[TopicPartition, StoredBatch]]


def digest_of_bucket(bucket: SyncBucket, place: str = "this bucket") -> LogDigest:
    """All that was acknowledged before the call. Raises `NoLogError`, which names `place`, where
    there is no log, `CorruptObjectError`, `InvalidDataError` and the bucket's errors."""
    try:
        identity = ClusterIdentity.model_validate_json(bytes(bucket.get(keys.CLUSTER).data))
    except ObjectNotFoundError:
        raise NoLogError(place) from None
    snapshot = read_log(bucket)
    state = fold(snapshot.segments, onto=restored(snapshot.checkpoint, keep_producers=False))
    parts = {key: part for key, part in readable(snapshot).items() if key in state.partitions}
    wanted: dict[SegmentId, _Wanted] = {}
    for key, part in parts.items():
        for batch in part.batches:
            at = wanted.setdefault(batch.segment, _Wanted(batch.ticket, batch.segment, []))
            at.batches.append((key, batch))
    hashes = {key: RecordHash() for key in state.partitions}
    for segment, data in _bodies(bucket, sorted(wanted.values(), key=lambda one: one.ticket)):
        for key, batch in sorted(segment.batches, key=lambda one: one[1].row.position):
            _add(hashes[key], keys.segment(segment.segment), data, batch)
    ends = {key: part.end_offset for key, part in parts.items()}
    return LogDigest(
        str(identity.cluster_id),
        _topics(state, hashes, ends),
        _groups(state),
        sum(part.withheld for part in parts.values()),
    )


def _bodies(bucket: SyncBucket, wanted: Sequence[_Wanted]) -> Iterator[tuple[_Wanted, memoryview]]:
    with ThreadPoolExecutor(SEGMENTS_IN_FLIGHT) as pool:
        for start in range(0, len(wanted), SEGMENTS_IN_FLIGHT):
            some = wanted[start : start + SEGMENTS_IN_FLIGHT]
            bodies = pool.map(lambda one: bucket.get(keys.segment(one.segment)).data, some)
            for one, body in zip(some, bodies, strict=True):
                yield one, memoryview(body)


def _add(records: RecordHash, key: str, data: memoryview, batch: StoredBatch) -> None:
    row = batch.row
    stored = data[row.position : row.position + row.length]
    check_batch(key, stored, row)
    if row.attributes & CONTROL:
        return
    for record in decode_records(stored, read_header(stored)):
        records.add(record.offset, record.timestamp, record.key, record.value, record.headers)


def _topics(
    state: LogState, hashes: dict[TopicPartition, RecordHash], ends: dict[TopicPartition, int]
) -> dict[str, TopicDigest]:
    found = {}
    for topic in state.topics.values():
        partitions = []
        for number in range(topic.partitions):
            key = TopicPartition(topic.topic_id, number)
            start, records = state.partitions[key].log_start, hashes[key]
            end = max(start, ends.get(key, 0))
            partitions.append(PartitionDigest(start, end, records.records, records.hex))
        found[topic.name] = TopicDigest(tuple(partitions), dict(topic.configs))
    return found


def _groups(state: LogState) -> dict[str, dict[tuple[str, int], CommittedDigest]]:
    return {
        group: {
            (state.topics[key.topic_id].name, key.partition): CommittedDigest(
                row.offset, row.leader_epoch, as_clients_show(row.metadata)
            )
            for key, row in rows.items()
        }
        for group, rows in state.groups.items()
    }
