"""Planted damage: a query of real Spark must fail, and say topic, partition, offsets and key.

At full size, from the repository's root: `make prove WHAT=spark-damage`.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import TierObject, TierRow, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.partition_segment import HEADER, index_span
from bucketlog.tiered_storage.segment import TRAILER_LENGTH
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import ReservedSegment, WrittenLog, some_records
from tests.rigs.written_tier import Batch, WrittenTier, batches_in
from tests.scenarios.large_logs import to_folder

TOPIC = "orders"
PARTITIONS = 2
FLUSHES = 24
IN_TIERS = 16
AN_OBJECT = 4
LISTED = 2
RECORDS = 20
MANY_TASKS = 64
"""So many that every object of a tier is cut, for which its index is read."""

_PLACE = re.compile(r"topic 'orders' partition (\d+) offsets (?:(\d+) to (\d+)|from (\d+) on)")


class Lost(NamedTuple):
    """Offsets that cannot be read any more, the last included."""

    partition: int
    first: int
    last: int


@dataclass
class MadeLog:
    """`flushed` are those log segments that still hold something alone; `objects` and `manifests`
    are of tiers, by partition."""

    bucket: MemoryBucket
    flushed: list[ReservedSegment] = field(default_factory=list)
    objects: list[tuple[TopicIdPartition, TierRow]] = field(default_factory=list)
    manifests: list[tuple[TopicIdPartition, TierRow]] = field(default_factory=list)
    records: int = 0


class Damage(NamedTuple):
    """What becomes of the bytes of `key` (None: the object is gone), and what is lost with it."""

    key: str
    data: bytes | None
    lost: list[Lost]


Query: TypeAlias = Callable[[str, int], int]
"""Reads all that there is at a url, by so many tasks at least; says how many records."""


class Kind(NamedTuple):
    make: Callable[[], MadeLog]
    plant: Callable[[MadeLog, Random], Damage]
    tasks: int = 3


def log_alone() -> MadeLog:
    """No checkpoint, no tiers: planning reads every footer. Two writers, so that the lost object of
    one is not the end of the log."""
    bucket = MemoryBucket()
    log = WrittenLog(bucket)
    log.create_topic(TOPIC, PARTITIONS)
    log.flush()
    made = MadeLog(bucket)
    other = log.register()
    for number in range(FLUSHES):
        _append(log)
        made.flushed.append(log.flush(other if number % 2 else None))
    made.flushed = made.flushed[:-2]  # the end of a chain may be lost without a trace
    made.records = FLUSHES * PARTITIONS * RECORDS
    return made


def log_with_checkpoint() -> MadeLog:
    """Footers of what is covered are not read."""
    made = log_alone()
    write_checkpoint(made.bucket)
    return made


def log_with_tiers() -> MadeLog:
    bucket = MemoryBucket()
    log = WrittenLog(bucket)
    tier = WrittenTier(log)
    log.create_topic(TOPIC, PARTITIONS)
    log.flush()
    made = MadeLog(bucket)
    held: dict[TopicIdPartition, list[Batch]] = {}
    for _ in range(FLUSHES):
        _append(log)
        for part, batch in batches_in(log.flush()):
            held.setdefault(part, []).append(batch)
    for part, batches in held.items():
        rows: list[TierRow] = []
        for first in range(0, IN_TIERS, AN_OBJECT):
            start = rows[-1].end if rows else 0
            rows.append(tier.split(part, batches[first : first + AN_OBJECT], start))
            log.flush()
        made.objects += [(part, row) for row in rows]
        made.manifests.append((part, tier.list_in_manifest(part, rows[:LISTED])))
        log.flush()
    log.flush()
    write_checkpoint(bucket)
    made.records = FLUSHES * PARTITIONS * RECORDS
    return made


def _append(log: WrittenLog) -> None:
    for partition in range(PARTITIONS):
        log.append(TOPIC, partition, some_records(RECORDS))


def lost_segment(made: MadeLog, chance: Random) -> Damage:
    segment = chance.choice(made.flushed)
    return Damage(segment.key, None, list(_held(segment)))


def _held(segment: ReservedSegment) -> Iterator[Lost]:
    for part in segment.index.partitions:
        if part.batches:
            first, last = part.batches[0], part.batches[-1]
            yield Lost(part.partition.partition, first.base_offset, last.next_offset - 1)


def flipped_batch(made: MadeLog, chance: Random) -> Damage:
    segment = chance.choice(made.flushed)
    part = chance.choice(segment.index.partitions)
    row = chance.choice(part.batches)
    data = flipped(segment.data, chance.randrange(row.position, row.position + row.length), chance)
    lost = Lost(part.partition.partition, row.base_offset, row.next_offset - 1)
    return Damage(segment.key, data, [lost])


def flipped(data: bytes, at: int, chance: Random) -> bytes:
    """One bit of one byte."""
    changed = bytearray(data)
    changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _footer_start(segment: ReservedSegment) -> int:
    last = segment.index.partitions[-1].batches[-1]
    return last.position + last.length


def flipped_footer(made: MadeLog, chance: Random) -> Damage:
    segment = chance.choice(made.flushed)
    at = chance.randrange(_footer_start(segment), len(segment.data))
    return Damage(segment.key, flipped(segment.data, at, chance), list(_held(segment)))


def cut_footer(made: MadeLog, chance: Random) -> Damage:
    segment = chance.choice(made.flushed)
    end = chance.randrange(_footer_start(segment), len(segment.data))
    return Damage(segment.key, segment.data[:end], list(_held(segment)))


def cut_segment(made: MadeLog, chance: Random) -> Damage:
    """Somewhere in its batches; nothing at all may be left."""
    segment = chance.choice(made.flushed)
    end = chance.choice((0, chance.randrange(_footer_start(segment))))
    return Damage(segment.key, segment.data[:end], list(_held(segment)))


def cut_trailer(made: MadeLog, chance: Random) -> Damage:
    segment = chance.choice(made.flushed)
    end = len(segment.data) - chance.randint(1, TRAILER_LENGTH)
    return Damage(segment.key, segment.data[:end], list(_held(segment)))


def _tier_damage(
    made: MadeLog, part: TopicIdPartition, row: TierRow, change: Callable[[bytes], bytes | None]
) -> Damage:
    key = keys.tier_object(TierObject.of(part, row))
    lost = Lost(part.partition, row.start, row.end - 1)
    return Damage(key, change(bytes(made.bucket.get(key).data)), [lost])


def lost_object(made: MadeLog, chance: Random) -> Damage:
    return _tier_damage(made, *chance.choice(made.objects), lambda _: None)


def flipped_object(made: MadeLog, chance: Random) -> Damage:
    part, row = chance.choice(made.objects)
    at = len(HEADER) + chance.randrange(row.batch_bytes)
    return _tier_damage(made, part, row, lambda data: flipped(data, at, chance))


def cut_object(made: MadeLog, chance: Random) -> Damage:
    part, row = chance.choice(made.objects)
    end = chance.randrange(len(HEADER) + row.batch_bytes)
    return _tier_damage(made, part, row, lambda data: data[:end])


def flipped_index(made: MadeLog, chance: Random) -> Damage:
    part, row = chance.choice(made.objects)
    span = index_span(row)
    at = span.start + chance.randrange(span.length)
    return _tier_damage(made, part, row, lambda data: flipped(data, at, chance))


def lost_manifest(made: MadeLog, chance: Random) -> Damage:
    return _tier_damage(made, *chance.choice(made.manifests), lambda _: None)


def flipped_manifest(made: MadeLog, chance: Random) -> Damage:
    part, row = chance.choice(made.manifests)
    at = chance.randrange(row.size_bytes)
    return _tier_damage(made, part, row, lambda data: flipped(data, at, chance))


def cut_manifest(made: MadeLog, chance: Random) -> Damage:
    part, row = chance.choice(made.manifests)
    end = chance.randrange(row.size_bytes)
    return _tier_damage(made, part, row, lambda data: data[:end])


KINDS: Mapping[str, Kind] = {
    "log segment gone": Kind(log_alone, lost_segment),
    "bit of a batch": Kind(log_alone, flipped_batch),
    "bit of a footer": Kind(log_alone, flipped_footer),
    "footer cut short": Kind(log_alone, cut_footer),
    "trailer cut short": Kind(log_alone, cut_trailer),
    "log segment cut short": Kind(log_alone, cut_segment),
    "covered log segment gone": Kind(log_with_checkpoint, lost_segment),
    "bit of a covered batch": Kind(log_with_checkpoint, flipped_batch),
    "covered log segment cut short": Kind(log_with_checkpoint, cut_segment),
    "object of a tier gone": Kind(log_with_tiers, lost_object),
    "bit of a batch in a tier": Kind(log_with_tiers, flipped_object),
    "object of a tier cut short": Kind(log_with_tiers, cut_object),
    "bit of an index": Kind(log_with_tiers, flipped_index, MANY_TASKS),
    "object gone whose index is read": Kind(log_with_tiers, lost_object, MANY_TASKS),
    "manifest gone": Kind(log_with_tiers, lost_manifest),
    "bit of a manifest": Kind(log_with_tiers, flipped_manifest),
    "manifest cut short": Kind(log_with_tiers, cut_manifest),
}


def by_spark(spark: SparkSession) -> Query:
    def query(url: str, tasks: int) -> int:
        reader = spark.read.format("bucketlog").option("subscribe", TOPIC)
        return len(reader.option("minPartitions", tasks).load(url).collect())

    return query


def problems_of(query: Query, kind: Kind, made: MadeLog, chance: Random, folder: Path) -> list[str]:
    """What is wrong with how a query fails on planted damage; empty where all is said."""
    shutil.rmtree(folder, ignore_errors=True)
    to_folder(made.bucket, folder / "0")
    damage = kind.plant(made, chance)
    path = folder / "0" / damage.key
    if damage.data is None:
        path.unlink()
    else:
        path.write_bytes(damage.data)
    try:
        found = query(f"file://{folder}", kind.tasks)
    except (PySparkException, BucketlogError) as error:
        return unsaid(str(error), damage)
    return [f"{damage.key}: {found} of {made.records} records, and no error"]


def unsaid(text: str, damage: Damage) -> list[str]:
    """Pure."""
    problems = [] if damage.key in text else [f"no key {damage.key} in: {text[:2000]}"]
    said = [tuple(int(each or -1) for each in match) for match in _PLACE.findall(text)]
    return problems + [
        f"no {lost} in: {text[:2000]}"
        for lost in damage.lost
        if not any(_covers(lost, *each) for each in said)
    ]


def _covers(lost: Lost, partition: int, first: int, last: int, on: int) -> bool:
    if partition != lost.partition:
        return False
    if on >= 0:
        return on <= lost.first
    # a part of what is lost may be named first: the task that fails reads no more than that
    return first <= lost.last and last >= lost.first


def damages(query: Query, of_each: int, folder: Path, seed: int) -> dict[str, list[str]]:
    """Problems by kind of damage. Raises `AssertionError` where an undamaged log is not read."""
    found = {}
    logs: dict[Callable[[], MadeLog], MadeLog] = {}
    for name, kind in KINDS.items():
        if kind.make not in logs:
            logs[kind.make] = kind.make()
            whole = folder / kind.make.__name__
            to_folder(logs[kind.make].bucket, whole / "0")
            assert query(f"file://{whole}", kind.tasks) == logs[kind.make].records
        chance = Random(f"{seed} {name}")
        found[name] = [
            problem
            for _ in range(of_each)
            for problem in problems_of(query, kind, logs[kind.make], chance, folder / "damaged")
        ]
    return found
