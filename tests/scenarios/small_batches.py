"""A log of many small batches, as a cluster of one broker would have left it: each log segment has
one idempotent batch of each partition. Checkpoints are written on the way."""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID, uuid4

from crc32c import crc32c

from bucketlog.log_format.batch import CRC_START
from bucketlog.log_format.model import (
    NO_TIMESTAMP,
    BatchIndex,
    FactEntry,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.metadata.facts import TopicCreated, encode_fact
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from bucketlog.tiered_storage.segment import HEADER, encode_footer
from tests.rigs.checkpoints import write_checkpoint

TOPIC = "small"
EPOCH = 1
BATCH_BYTES = 500
CHECKPOINT_SEGMENTS = 2_500
AGE_MS = 2 * 3_600_000
"""Older than what is left to the readers of the log's end."""
FIRST_PRODUCER_ID = 10
_OFFSET, _CRC, _TIMES, _SEQUENCE = (struct.Struct(layout) for layout in (">q", ">I", ">qq", ">i"))


@dataclass(frozen=True, slots=True)
class SmallBatches:
    """What was written. `digests` are over all bytes of a partition's batches, by its number."""

    topic_id: TopicId
    segments: int
    partitions: int
    digests: tuple[str, ...]
    log_bytes: int

    @property
    def partition_bytes(self) -> int:
        return self.segments * BATCH_BYTES

    def partition(self, number: int) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, number)


class SmallBatch:
    """The batches of one partition, by offset, which is their producer's sequence, too: one that
    was encoded, with fields set anew and another checksum, since millions are written."""

    def __init__(self, number: int) -> None:
        value = b"%020d of %d;" % (0, number)
        self._batch = bytearray()
        while len(self._batch) < BATCH_BYTES:
            value += b"."
            record = DecodedRecord(0, 0, None, value, ())
            self._batch = bytearray(
                encode_batch([record], producer_id=FIRST_PRODUCER_ID + number, producer_epoch=0)
            )
        assert len(self._batch) == BATCH_BYTES
        self._value_at = self._batch.index(value)

    def at(self, offset: int, timestamp_ms: int) -> bytes:
        batch = self._batch
        _TIMES.pack_into(batch, 27, timestamp_ms, timestamp_ms)
        _SEQUENCE.pack_into(batch, 53, offset)
        batch[self._value_at : self._value_at + 20] = b"%020d" % offset
        _CRC.pack_into(batch, 17, crc32c(memoryview(batch)[CRC_START:]))
        _OFFSET.pack_into(batch, 0, offset)
        return bytes(batch)


def write_small_batches(bucket: SyncBucket, segments: int, partitions: int) -> SmallBatches:
    """Into an empty bucket."""
    begin_ms = time.time_ns() // 1_000_000 - AGE_MS
    topic_id = uuid4()
    writer = WriterId(uuid4().hex)
    identity = ClusterIdentity(
        cluster_id=uuid4(), format_version=FORMAT_VERSION, created_ms=begin_ms
    )
    assert bucket.create(keys.CLUSTER, [identity.model_dump_json().encode()])
    assert bucket.create(keys.epoch_claim(EPOCH), [b"{}"])
    assert bucket.create(keys.writer_registration(EPOCH, writer), [b"{}"])
    created = encode_fact(TopicCreated(topic_id=topic_id, name=TOPIC, partitions=partitions))
    digests = [blake2b(digest_size=16) for _ in range(partitions)]
    made = [SmallBatch(number) for number in range(partitions)]
    size = _write(bucket, writer, 0, begin_ms, topic_id, [], [created])
    for offset in range(segments):
        batches = [small.at(offset, begin_ms + offset) for small in made]
        for digest, batch in zip(digests, batches, strict=True):
            digest.update(batch)
        size += _write(bucket, writer, offset + 1, begin_ms + offset, topic_id, batches, [])
        if (offset + 1) % CHECKPOINT_SEGMENTS == 0:
            write_checkpoint(bucket, active_epoch=EPOCH)
    if segments % CHECKPOINT_SEGMENTS:
        write_checkpoint(bucket, active_epoch=EPOCH)
    old = sorted(info.key for info in bucket.list(keys.CHECKPOINTS))[:-2]
    bucket.delete(old)
    return SmallBatches(
        TopicId(topic_id.bytes),
        segments,
        partitions,
        tuple(digest.hexdigest() for digest in digests),
        size,
    )


def _write(
    bucket: SyncBucket,
    writer: WriterId,
    seq: int,
    created_ms: int,
    topic_id: UUID,
    batches: Sequence[bytes],
    facts: Sequence[FactEntry],
) -> int:
    """The next log segment; its number is its ticket. Returns its size."""
    offset = seq - 1
    parts = []
    for number in range(len(batches)):
        row = BatchIndex(
            offset,
            len(HEADER) + number * BATCH_BYTES,
            BATCH_BYTES,
            1,
            0,
            created_ms if batches else NO_TIMESTAMP,
            FIRST_PRODUCER_ID + number,
            0,
            0,
            offset,
        )
        partition = TopicIdPartition(TopicId(topic_id.bytes), number)
        parts.append(PartitionIndex(partition, offset, (row,)))
    segment = SegmentId(writer, seq)
    index = SegmentIndex(segment, Ticket(EPOCH, seq), seq, created_ms, tuple(parts), tuple(facts))
    data = [HEADER, *batches, encode_footer(index)]
    assert bucket.create(keys.segment(segment), data)
    return sum(map(len, data))
