"""The digest of a log from its bucket alone: a checkpoint, the tails and two passes, as any reader
without a broker. Every batch that `read_committed` consumers see is read, and its CRC is checked.
Invariant: each object is read once; a partition's tier is read first, then log segments in ticket
order, so that its batches come in offset order."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from bucketlog.inspect.doctor.digest import (
    CommittedDigest,
    LogDigest,
    PartitionDigest,
    RecordHash,
    TopicDigest,
    as_clients_show,
)
from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.checkpoint import StoredBatch
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import BatchIndex, Buffer, SegmentId, Ticket, TopicIdPartition
from bucketlog.log_format.records import decode_records
from bucketlog.log_reader.isolation import committed_only, transactions_of
from bucketlog.log_reader.unsealing import with_data_keys
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals
from bucketlog.tiered_storage.encryption.reading_keys import KeyOptions, partition_seals
from bucketlog.tiered_storage.identity import read_cluster_sync
from bucketlog.tiered_storage.log_cut import ReadablePartition, readable
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.segment import check_batch
from bucketlog.tiered_storage.tier_reader import read_batches, read_rows

SEGMENTS_IN_FLIGHT = 16


class _Hash(NamedTuple):
    """The records of a partition; `seals` open its batches if its topic is encrypted."""

    records: RecordHash
    seals: PartitionSeals | None

    def opened(self, stored: memoryview) -> tuple[Buffer, BatchHeader]:
        header = read_header(stored)
        if not header.is_sealed or self.seals is None:
            return stored, header
        batch = self.seals.open(stored, header)
        return batch.joined(), batch.header


class _SegmentBatches(NamedTuple):
    ticket: Ticket
    segment: SegmentId
    batches: list[tuple[TopicIdPartition, StoredBatch]]


def digest_of_bucket(
    bucket: SyncBucket, place: str = "this bucket", access: KeyAccess | None = None
) -> LogDigest:
    """All that was acknowledged before the call. `access` says how the keys of encrypted topics are
    reached; None: by the environment. Raises `NoLogError`, which names `place`, where there is no
    log, `CorruptObjectError`, `InvalidDataError`, `KeyUnavailableError` and the bucket's errors."""
    identity = read_cluster_sync(bucket, place)
    snapshot = read_log(bucket)
    state = restored(snapshot.checkpoint, keep_producers=False)
    before = transactions_of(state)
    fold(snapshot.segments, onto=state)
    tiers = partition_tiers(state)
    parts = with_data_keys(
        committed_only(snapshot, before, readable(snapshot, tiers), tiers), state
    )
    hashes = {
        key: _Hash(
            RecordHash(),
            partition_seals(
                access or KeyOptions().access(),
                state.topics[key.topic_id].name,
                key.partition,
                part.data_keys,
            ),
        )
        for key, part in parts.items()
    }
    _add_tiers(bucket, state, parts, hashes)
    wanted: dict[SegmentId, _SegmentBatches] = {}
    for key, part in parts.items():
        for batch in part.batches:
            at = wanted.setdefault(batch.segment, _SegmentBatches(batch.ticket, batch.segment, []))
            at.batches.append((key, batch))
    for segment, data in _bodies(bucket, sorted(wanted.values(), key=lambda one: one.ticket)):
        for key, batch in sorted(segment.batches, key=lambda one: one[1].row.position):
            row = batch.row
            stored = data[row.position : row.position + row.length]
            check_batch(keys.segment(segment.segment), stored, row)
            plain, header = hashes[key].opened(stored)
            with _named(state, key, row):
                _add(hashes[key].records, plain, header, parts[key].log_start)
    ends = {key: part.end_offset for key, part in parts.items()}
    return LogDigest(
        str(identity.cluster_id),
        _topics(state, hashes, ends),
        _groups(state),
        sum(part.withheld for part in parts.values()),
    )


def _bodies(
    bucket: SyncBucket, wanted: Sequence[_SegmentBatches]
) -> Iterator[tuple[_SegmentBatches, memoryview]]:
    with ThreadPoolExecutor(SEGMENTS_IN_FLIGHT) as pool:
        for start in range(0, len(wanted), SEGMENTS_IN_FLIGHT):
            some = wanted[start : start + SEGMENTS_IN_FLIGHT]
            bodies = pool.map(lambda one: bucket.get(keys.segment(one.segment)).data, some)
            for one, body in zip(some, bodies, strict=True):
                yield one, memoryview(body)


def _add_tiers(
    bucket: SyncBucket,
    state: LogState,
    parts: Mapping[TopicIdPartition, ReadablePartition],
    hashes: Mapping[TopicIdPartition, _Hash],
) -> None:
    for key, rows in read_rows(bucket, {key: part.rows for key, part in parts.items()}).items():
        for row in rows:
            if row.end <= parts[key].log_start:  # in a manifest whose end is above it
                continue
            for walked in read_batches(bucket, key, row):
                for batch, stored in walked.batches():
                    plain, header = hashes[key].opened(stored)
                    with _named(state, key, batch):
                        _add(hashes[key].records, plain, header, parts[key].log_start)


@contextmanager
def _named(state: LogState, key: TopicIdPartition, row: BatchIndex) -> Iterator[None]:
    """Brokers store batches as they come: one may hold what is not records."""
    try:
        yield
    except InvalidDataError as error:
        place = f"{state.topics[key.topic_id].name}[{key.partition}]"
        raise InvalidDataError(
            f"{place}, offsets {row.base_offset} to {row.next_offset - 1}: {error.message}",
            remedy="a producer sent it so, and no consumer can read it: delete it (DeleteRecords), "
            "or its topic",
        ) from error


def _add(records: RecordHash, batch: Buffer, header: BatchHeader, log_start: int) -> None:
    if header.is_control:
        return
    for record in decode_records(batch, header):
        if record.offset >= log_start:
            records.add(record.offset, record.timestamp, record.key, record.value, record.headers)


def _topics(
    state: LogState, hashes: Mapping[TopicIdPartition, _Hash], ends: dict[TopicIdPartition, int]
) -> dict[str, TopicDigest]:
    found = {}
    for topic in state.topics.values():
        partitions = []
        for number in range(topic.partitions):
            key = TopicIdPartition(topic.topic_id, number)
            start, records = state.partitions[key].log_start, hashes[key].records
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
