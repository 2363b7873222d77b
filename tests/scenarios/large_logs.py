"""Logs of many segments, made in memory as a cluster makes them, and copied to where they are read.

A segment of `many_segments` has a batch of each of eight partitions, in turn of the one half of the
topic's and of the other; a few writers take turns.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from random import Random

from bucketlog.log_format.model import TierRow, TopicIdPartition
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import SyncBucket
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import START_MS, WrittenLog
from tests.rigs.written_tier import Batch, WrittenTier, batches_in

TOPIC = "orders"
PARTITIONS = 16
WRITERS = 3
MIB = 1 << 20
PUTS_IN_FLIGHT = 16
LISTED_MAX = 1_024
"""So many rows a manifest has at most, as brokers write them."""


def many_segments(segments: int, tail: int) -> MemoryBucket:
    """A checkpoint covers all but the last `tail` segments; nothing stands in tiers."""
    log = WrittenLog(MemoryBucket())
    chance = Random(1)
    log.create_topic(TOPIC, PARTITIONS)
    turns = cycle([log.register() for _ in range(WRITERS)])
    log.flush()
    for number in range(1, segments):
        if number == segments - tail:
            write_checkpoint(log.bucket)
        _append(log, number, chance)
        log.flush(next(turns))
    assert isinstance(log.bucket, MemoryBucket)
    return log.bucket


def _append(log: WrittenLog, number: int, chance: Random) -> None:
    for half in range(PARTITIONS // 2):
        count = chance.randint(1, 6)
        records = [
            DecodedRecord(0, START_MS + number, b"key-%d" % at, bytes(chance.randint(10, 300)))
            for at in range(count)
        ]
        log.append(TOPIC, half + number % 2 * PARTITIONS // 2, records)


def tiered_segments(segments: int, tail: int, batches_an_object: int) -> MemoryBucket:
    """The same, but batches move into tiers when a partition has so many of them; older objects are
    listed in manifests. Covered log segments are still there, as within a safety age."""
    log = WrittenLog(MemoryBucket())
    tier = WrittenTier(log)
    chance = Random(2)
    log.create_topic(TOPIC, PARTITIONS)
    turns = cycle([log.register() for _ in range(WRITERS)])
    log.flush()
    waiting: dict[TopicIdPartition, list[Batch]] = {}
    rows: dict[TopicIdPartition, list[TierRow]] = {}
    for number in range(1, segments):
        if number == segments - tail:
            for part, mine in rows.items():
                for first in range(0, len(mine) * 3 // 4, LISTED_MAX):
                    last = min(first + LISTED_MAX, len(mine) * 3 // 4)
                    tier.list_in_manifest(part, mine[first:last])
            log.flush()
            write_checkpoint(log.bucket)
        _append(log, number, chance)
        for part, batch in batches_in(log.flush(next(turns))):
            held = waiting.setdefault(part, [])
            held.append(batch)
            if len(held) == batches_an_object and number < segments - tail:
                start = rows[part][-1].end if part in rows else 0
                rows.setdefault(part, []).append(tier.split(part, held, start))
                held.clear()
    assert isinstance(log.bucket, MemoryBucket)
    return log.bucket


def large_batches(segments: int, objects: int, object_bytes: int) -> MemoryBucket:
    """Batches of 1 MiB: log segments of 8 MiB, and objects of tiers, of eight partitions."""
    log = WrittenLog(MemoryBucket())
    tier = WrittenTier(log)
    chance = Random(3)
    log.create_topic(TOPIC, 8)
    log.flush()
    for number in range(objects):
        part = log.partition(TOPIC, number % 8)
        log_start = log.next_offset.get(part, 0)
        batches: list[Batch] = []
        for _ in range(object_bytes // MIB):
            log.append(TOPIC, part.partition, _mebibyte(chance))
            batches += [batch for _, batch in batches_in(log.flush())]
        tier.split(part, batches, log_start)
        log.flush()
    write_checkpoint(log.bucket)
    for _ in range(segments):
        for number in range(8):
            log.append(TOPIC, number, _mebibyte(chance))
        log.flush()
    assert isinstance(log.bucket, MemoryBucket)
    return log.bucket


def _mebibyte(chance: Random) -> Sequence[DecodedRecord]:
    return [DecodedRecord(0, START_MS, None, chance.randbytes(MIB // 64 - 16)) for _ in range(64)]


def to_folder(made: MemoryBucket, folder: Path) -> None:
    """As `FileBucket(folder)` has it, not fsynced."""
    for info in made.list(""):
        path = folder / info.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.get(info.key).data)


def to_bucket(made: MemoryBucket, bucket: SyncBucket) -> None:
    with ThreadPoolExecutor(PUTS_IN_FLIGHT) as pool:
        keys = [info.key for info in made.list("")]
        assert all(pool.map(lambda key: bucket.create(key, [made.get(key).data]), keys))
