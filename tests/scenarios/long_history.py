"""A broker starts beside a long history: a checkpoint whose tiers name partition segments of
128 MiB, one of which is really there, and is read from at random offsets.

At full size, from the repository's root: `make prove WHAT=history`.
"""

import time
from dataclasses import asdict, dataclass, replace
from random import Random
from uuid import uuid4

import psutil

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.checkpoint import BatchColumns, CoveredPartition
from bucketlog.log_format.model import Ticket, TierRow, TopicId, TopicIdPartition
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.checkpoint_state import encode_state
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.checkpoint import encode_checkpoint
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from bucketlog.tiered_storage.partition_segment import PartitionSegmentWriter
from tests.proofs.shortfall import Figures
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.wire_client import WireClient, fetch_values
from tests.rigs.written_log import WrittenLog
from tests.servers.cluster import running_cluster

MIB = 1 << 20
EPOCH = 1
TOPIC = "old"
SEGMENT_BYTES = 128 * MIB
SEGMENT_BATCHES = 1_221
"""8,192 segments hold ten million batches."""
FETCHES = 5
STARTED_MS = time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class HistoryFigures:
    partitions: int
    segments: int
    batches: int
    history_bytes: int
    checkpoint_bytes: int
    start_s: float
    """Until it listens."""
    start_cpu_s: float
    broker_rss_mib: int
    slowest_fetch_ms: float
    fetch_gets: int
    """For all fetches at random offsets together."""

    def as_json(self) -> Figures:
        return asdict(self)


def long_history(segments: int, partitions: int, seed: int = 1) -> HistoryFigures:
    """Raises `AssertionError` where a fetch gives another batch; nothing is left running."""
    chance = Random(seed)
    with running_cluster(0, late=1) as cluster:
        bucket = cluster.open_bucket()
        topic_id = _write_log(bucket, partitions)
        there = TopicIdPartition(topic_id, chance.randrange(partitions))
        start = chance.randrange(segments // partitions) * SEGMENT_BATCHES
        row = _write_one(bucket, there, start)
        checkpoint_bytes = _write_history(bucket, there, segments, partitions, row)
        (broker,) = cluster.brokers
        began = time.perf_counter()
        broker.start()
        start_s = time.perf_counter() - began
        process = psutil.Process(broker.running.process.pid)
        used, rss = process.cpu_times(), process.memory_info().rss
        gets = 'bucketlog_bucket_requests_total{verb="get"}'
        before = broker.running.metrics()[gets]
        slowest = 0.0
        with WireClient(broker.bootstrap) as client:
            for _ in range(FETCHES):
                offset = chance.randrange(row.start, row.end)
                asked = time.perf_counter()
                wanted = fetch_values(TOPIC, {there.partition: offset})
                answer = client.call(ApiKey.FETCH, 11, **wanted)
                slowest = max(slowest, time.perf_counter() - asked)
                data = bytes(answer.responses[0].partitions[0].records or b"")
                size = read_header(data).size_bytes
                assert data[:size] == _batch(offset), f"another batch at offset {offset}"
        after = broker.running.metrics()[gets]
        bucket.close()
    return HistoryFigures(
        partitions=partitions,
        segments=segments,
        batches=segments * SEGMENT_BATCHES,
        history_bytes=segments * row.batch_bytes,
        checkpoint_bytes=checkpoint_bytes,
        start_s=round(start_s, 2),
        start_cpu_s=round(used.user + used.system, 2),
        broker_rss_mib=rss // MIB,
        slowest_fetch_ms=round(slowest * 1000, 1),
        fetch_gets=round(after - before),
    )


def _write_log(bucket: SyncBucket, partitions: int) -> TopicId:
    """One that created the topic."""
    identity = ClusterIdentity(
        cluster_id=uuid4(), format_version=FORMAT_VERSION, created_ms=STARTED_MS
    )
    assert bucket.create(keys.CLUSTER, [identity.model_dump_json().encode()])
    assert bucket.create(keys.epoch_claim(EPOCH), [b"{}"])
    log = WrittenLog(bucket, epoch=EPOCH)
    topic_id = log.create_topic(TOPIC, partitions)
    log.flush()
    log.flush()  # a checkpoint covers what is below the last one
    return topic_id


def _batch(offset: int) -> bytes:
    value = (b"%d." % offset) * (SEGMENT_BYTES // SEGMENT_BATCHES)
    record = DecodedRecord(
        offset, STARTED_MS, None, value[: SEGMENT_BYTES // SEGMENT_BATCHES - 80], ()
    )
    return encode_batch([record])


def _write_one(bucket: SyncBucket, partition: TopicIdPartition, start: int) -> TierRow:
    writer = PartitionSegmentWriter(partition, start)
    for offset in range(start, start + SEGMENT_BATCHES):
        batch = _batch(offset)
        writer.describe(offset, offset + 1, len(batch), 1, STARTED_MS)
        writer.append(batch)
    name = keys.tier_name(Ticket(EPOCH, 0), f"{start // SEGMENT_BATCHES:016x}")
    made = writer.finish(start + SEGMENT_BATCHES, name, STARTED_MS)
    assert bucket.create(keys.tier_object(made.there), made.parts)
    return made.row


def _write_history(
    bucket: SyncBucket, there: TopicIdPartition, segments: int, partitions: int, like: TierRow
) -> int:
    """The newest checkpoint names so many segments, `like` among them; its size."""
    made = write_checkpoint(bucket, active_epoch=EPOCH)
    state = restored(made)
    covered = {}
    for number in range(partitions):
        partition = TopicIdPartition(there.topic_id, number)
        entry = state.partitions[partition]
        for at in range(number, segments, partitions):
            start = at // partitions * SEGMENT_BATCHES
            name = keys.tier_name(Ticket(EPOCH, 0), uuid4().hex[:16])
            if (partition, start) == (there, like.start):
                name = like.name
            row = like._replace(start=start, end=start + SEGMENT_BATCHES, name=name)
            entry.tier.rows.append(row)
        entry.tier.end = entry.next_offset = entry.tier.rows[-1].end
        covered[partition] = CoveredPartition(entry.next_offset, BatchColumns())
    data = encode_checkpoint(replace(made, partitions=covered, state=encode_state(state)))
    bucket.delete([keys.checkpoint(made.ticket)])
    assert bucket.create(keys.checkpoint(made.ticket), [data])
    return len(data)
