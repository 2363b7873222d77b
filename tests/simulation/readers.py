"""Readers of the bucket alone: the real, synchronous one, stepped through virtual time.

Invariants that they hold the log to: what was acknowledged before a reading began is in what it
kept; what it shows of a partition, from its log start on, is byte for byte what the log has there
in the end, whichever objects it stood in.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from crc32c import crc32c

from bucketlog.log_format.errors import BucketlogError, StaleCheckpointError
from bucketlog.log_format.model import BatchIndex, Buffer, SegmentId, TopicIdPartition
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix, SyncBucket
from bucketlog.tiered_storage.log_cut import LogSnapshot, ReadablePartition, readable
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.tier_reader import read_batches, read_rows
from tests.simulation.bucket import Store, merged
from tests.simulation.trace import Trace
from tests.simulation.truth import Truth

T = TypeVar("T")
REQUEST_S = 0.02
SLOW_REQUEST_S = 1.5
SLOW_REQUESTS_SHARE = 0.03
"""In slow readings. A reading has about a thousand requests, and must be over before what it has
listed may be deleted."""


class _Stepped(Generic[T]):
    """A synchronous call in a thread, one step of which is done at a time: it runs while the event
    loop stands still, until it asks the bucket or ends."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._moved = threading.Semaphore(0)
        self._go_on = threading.Semaphore(0)
        self._asked: Callable[[], Any] | None = None
        self._answer: Any = None
        self._ended: T | BucketlogError | None = None

    def ask(self, look: Callable[[], Any]) -> Any:
        """In the thread: wait for the loop to do this."""
        self._asked = look
        self._moved.release()
        self._go_on.acquire()
        if isinstance(self._answer, BucketlogError):
            raise self._answer
        return self._answer

    def _run(self) -> None:
        try:
            self._ended = self._call()
        except BucketlogError as error:
            self._ended = error
        finally:
            self._moved.release()

    async def run(self, pause: Callable[[], float]) -> T:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        while True:
            self._moved.acquire()
            look, self._asked = self._asked, None
            if look is None:
                break
            await asyncio.sleep(pause())
            try:
                self._answer = look()
            except BucketlogError as error:
                self._answer = error
            self._go_on.release()
        thread.join()
        if isinstance(self._ended, BucketlogError):
            raise self._ended
        assert self._ended is not None, "the reader's thread has failed"
        return self._ended


class _Bucket:
    """A `SyncBucket` of one reading."""

    def __init__(self, store: Store, random: Random) -> None:
        self._store = store
        self._random = random
        self.stepped: _Stepped[Any]

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        raise AssertionError("a reader writes nothing")

    def delete(self, keys: Sequence[str]) -> None:
        raise AssertionError("a reader deletes nothing")

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        body: Body = self.stepped.ask(lambda: self._store.get(key, span))
        return body

    def head(self, key: str) -> ObjectInfo | None:
        info: ObjectInfo | None = self.stepped.ask(lambda: self._store.head(key))
        return info

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        def look() -> Sequence[ObjectInfo]:
            return list(self._store.list(prefix, start_after=start_after))

        before = self.stepped.ask(look)
        yield from merged(before, self.stepped.ask(look), self._random)

    def close(self) -> None:
        pass


class Shown(NamedTuple):
    """A batch, whose bytes have that CRC32C."""

    base_offset: int
    next_offset: int
    crc32c: int


@dataclass(frozen=True)
class Reading:
    """By partition: what was shown, the log start, and the offset after what was shown."""

    name: str
    batches: dict[TopicIdPartition, list[Shown]]
    starts: dict[TopicIdPartition, int]
    ends: dict[TopicIdPartition, int]
    withheld: int


class _Read(NamedTuple):
    snapshot: LogSnapshot
    parts: dict[TopicIdPartition, ReadablePartition]
    tiers: dict[TopicIdPartition, list[Shown]]


def _read(bucket: SyncBucket) -> _Read:
    """All requests of a reading."""
    snapshot = read_log(bucket, requests_in_flight=1)
    state = fold(snapshot.segments, onto=restored(snapshot.checkpoint))
    parts = readable(snapshot, partition_tiers(state))
    rows = read_rows(bucket, {key: part.rows for key, part in parts.items()}, requests_in_flight=1)
    return _Read(
        snapshot,
        parts,
        {
            key: [
                Shown(batch.base_offset, batch.next_offset, crc32c(stored))
                for row in rows[key]
                if row.end > part.log_start
                for walked in read_batches(bucket, key, row)
                for batch, stored in walked.batches()
                if batch.next_offset > part.log_start
            ]
            for key, part in parts.items()
        },
    )


class BucketReader:
    def __init__(self, name: str, store: Store, truth: Truth, trace: Trace, random: Random) -> None:
        self._name = name
        self._store = store
        self._truth = truth
        self._trace = trace
        self._random = random
        self.readings: list[Reading] = []
        self.is_ending = False

    async def run(self) -> None:
        while not self.is_ending:
            await asyncio.sleep(3.0 + self._random.random() * 5.0)
            await self.read()

    async def read(self) -> Reading | None:
        name = f"{self._name}.{len(self.readings)}"
        known = {part: len(bases) for part, bases in self._truth.acknowledged_bases.items()}
        told = dict(self._truth.log_starts.told)
        try:
            found = await self._read()
        except StaleCheckpointError:
            self._trace.count("reader: began again too often")
            return None
        except BucketlogError as error:
            self._trace.violate("bucket reader", f"{name}: {error!r}")
            return None
        self._check_complete(name, found, known)
        parts = found.parts
        reading = Reading(
            name,
            {
                partition: found.tiers[partition]
                + [shown(self._store, batch.segment, batch.row) for batch in part.batches]
                for partition, part in parts.items()
            },
            {partition: part.log_start for partition, part in parts.items()},
            {partition: part.end_offset for partition, part in parts.items()},
            sum(part.withheld for part in parts.values()),
        )
        self._check_starts(reading, told)
        self._trace.add(name, f"shows {sum(reading.ends.values())}, withholds {reading.withheld}")
        self._trace.count("reader: readings")
        self.readings.append(reading)
        return reading

    def _check_starts(self, reading: Reading, told: dict[TopicIdPartition, int]) -> None:
        """`told` are those that anybody was told before the reading began."""
        for partition, start in reading.starts.items():
            if start < told.get(partition, 0):
                self._trace.violate(
                    "bucket reader",
                    f"{reading.name} begins {partition} at {start}, not {told[partition]}",
                )
            self._truth.log_starts.note(partition, start)

    async def _read(self) -> _Read:
        bucket = _Bucket(self._store, self._random)
        stepped = _Stepped(lambda: _read(bucket))
        bucket.stepped = stepped
        slow = self._random.random() < 0.3

        def pause() -> float:
            longest_s = (
                SLOW_REQUEST_S
                if slow and self._random.random() < SLOW_REQUESTS_SHARE
                else REQUEST_S
            )
            return self._random.random() * longest_s

        return await stepped.run(pause)

    def _check_complete(self, name: str, found: _Read, known: dict[TopicIdPartition, int]) -> None:
        """What was acknowledged before is kept, shown or withheld, or below the log start."""
        kept: dict[TopicIdPartition, set[int]] = {}
        snapshot = found.snapshot
        for index in snapshot.segments:
            for part in index.partitions:
                kept.setdefault(part.partition, set()).update(r.base_offset for r in part.batches)
        for partition, count in known.items():
            there = found.parts.get(partition)
            bases = kept.get(partition, set())
            if there is not None:
                bases = bases | {batch.base_offset for batch in found.tiers[partition]}
                bases |= {batch.row.base_offset for batch in there.batches}
            told = self._truth.acknowledged_bases[partition][:count]
            start = there.log_start if there is not None else 0
            missing = [base for base in told if base not in bases and base >= start]
            if missing and partition not in self._truth.deleted | self._truth.compacted:
                self._trace.violate(
                    "bucket reader", f"{name} has not {missing[:3]} of {partition}, acknowledged"
                )


def shown(store: Store, segment: SegmentId, row: BatchIndex) -> Shown:
    """A batch of a log segment, whose object may be gone."""
    data = memoryview(store.history[keys.segment(segment)])
    stored = data[row.position : row.position + row.length]
    return Shown(row.base_offset, row.next_offset, crc32c(stored))
