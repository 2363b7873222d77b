"""Readers of the bucket alone, between the steps of a small cluster that may do anything late.

Writers reserve, their PUTs land in any order and however late, some are sealed; topics come, grow
and go; listings see each key at one of two moments. Whatever a reader believed is held against the
log in the end.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from bucketlog.log_format.model import (
    SegmentId,
    SegmentIndex,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.metadata.fold import fold
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.chains import Chain, read_chains
from bucketlog.tiered_storage.log_cut import LogSnapshot, cut_log, wanted_footers
from bucketlog.tiered_storage.log_cut_reading import read_footers
from bucketlog.tiered_storage.segment import Seal, encode_seal, is_seal
from tests.rigs.readable_log import readable_in
from tests.rigs.written_log import ReservedSegment, WrittenLog, some_records

pytestmark = pytest.mark.long

NAMES = ("a", "b", "c")
GAPS_CHECKED = 25
"""Steps between two checks of the view's gaps."""


@dataclass
class Reader:
    """`sampled` are the keys whose presence was decided by the first of a pass's two moments."""

    visible_before: set[SegmentId]
    passes: list[dict[WriterId, Chain]] = field(default_factory=list)
    early: list[ObjectInfo] | None = None
    sampled: set[str] = field(default_factory=set)


@dataclass
class Result:
    batches: dict[TopicIdPartition, list[tuple[int, SegmentId]]]
    ends: dict[TopicIdPartition, int]


class Cluster:
    """A sequencer by the protocol's rules, over the offsets and tickets of a `WrittenLog`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.log = WrittenLog(MemoryBucket())
        self.live = [self.log.first_writer]
        self.reserved: list[ReservedSegment] = []
        self.pending: list[SegmentId] = []
        self.decided: set[SegmentId] = set()
        self.visible: set[SegmentId] = set()
        self.depends: dict[SegmentId, set[SegmentId]] = {}
        self.facts: dict[SegmentId, list[tuple[str, tuple[TopicId, int] | None]]] = {}
        """By segment: names it has facts of, with what the topic was before."""
        self.readers: list[Reader] = []
        self.results: list[Result] = []
        self.shown: list[SegmentIndex] = []
        self.view = View()
        """The view of a broker, with all segments in `shown`."""
        self.seen: Counter[str] = Counter()

    def step(self) -> None:
        actions = [
            (self.reserve, 10),
            (self.land, 9),
            (self.publish, 9),
            (self.seal, 2),
            (self.register, 1),
            (self.start_reader, 2),
            (self.advance_readers, 8),
        ]
        names, weights = zip(*actions, strict=True)
        self.random.choices(names, weights)[0]()

    def register(self) -> None:
        if len(self.live) < 3:
            self.live.append(self.log.register())

    def _may_touch(self, writer: WriterId, name: str) -> bool:
        """No topic entry of another writer is open."""
        return all(
            segment.writer == writer
            for segment, facts in self.facts.items()
            if segment in self.log.open and any(fact[0] == name for fact in facts)
        )

    def reserve(self) -> None:
        if not self.live:
            return
        writer = self.random.choice(self.live)
        facts: list[tuple[str, tuple[TopicId, int] | None]] = []
        for name in self.random.sample(NAMES, self.random.randint(1, 3)):
            if not self._may_touch(writer, name):
                self.seen["wait"] += 1
                continue
            if name not in self.log.topics:
                self.log.create_topic(name, 1)
                facts.append((name, None))
                continue
            before = self.log.topics[name]
            partitions = before[1]
            action = self.random.random()
            if action < 0.06:
                self.log.delete_topic(name)
                facts.append((name, before))
                self.seen["deleted"] += 1
                continue
            if action < 0.15:
                self.log.add_partitions(name, partitions + 1)
                facts.append((name, before))
                partitions += 1
            at = self.random.randrange(partitions)
            if action < 0.3:
                self.log.stamp(name, at)
            else:
                self.log.append(name, at, some_records(self.random.randint(1, 2)))
        open_before = list(self.log.open.values())
        reserved = self.log.reserve(writer)
        segment = reserved.index.segment
        self.facts[segment] = facts
        mine = self._touched(reserved)
        self.depends[segment] = {
            other.index.segment
            for other in open_before
            if self._touched(other) & mine
            or other.index.segment == SegmentId(writer, segment.seq - 1)
        }
        self.reserved.append(reserved)
        self.pending.append(segment)

    def _touched(self, reserved: ReservedSegment) -> set[object]:
        facts = self.facts.get(reserved.index.segment, [])
        parts = {part.partition for part in reserved.index.partitions if part.batches}
        for _, before in facts:  # a topic entry touches all partitions of the topic
            if before is not None:
                parts |= {TopicIdPartition(before[0], number) for number in range(before[1])}
        return {*(name for name, _ in facts), *parts}

    def land(self) -> None:
        if self.reserved:
            reserved = self.reserved.pop(self.random.randrange(len(self.reserved)))
            self.log.bucket.create(reserved.key, [reserved.data])

    def publish(self) -> None:
        for writer in list(self.live):
            first = self._first_pending(writer)
            if first is not None and self._holds_segment(first):
                self._decide(first)

    def _first_pending(self, writer: WriterId) -> SegmentId | None:
        return min((segment for segment in self.pending if segment.writer == writer), default=None)

    def _holds_segment(self, segment: SegmentId) -> bool:
        found = self.log.bucket.head(keys.segment(segment))
        return found is not None and not is_seal(found.size_bytes)

    def _decide(self, segment: SegmentId) -> None:
        self.pending.remove(segment)
        self.decided.add(segment)
        self._cascade()

    def _cascade(self) -> None:
        """Visible: decided, and no dependency open."""
        for segment in sorted(self.decided, key=lambda s: self.log.open[s].index.ticket):
            if not self.depends[segment] & self.log.open.keys():
                self.decided.remove(segment)
                self.visible.add(segment)
                self.shown.append(self.log.open[segment].index)
                self.view.apply(self.shown[-1])
                self.log.publish(self.log.open[segment])

    def seal(self) -> None:
        waiting = sorted({segment.writer for segment in self.pending})
        if not waiting:
            return
        writer = self.random.choice(waiting)
        while (first := self._first_pending(writer)) is not None:
            body = encode_seal(Seal(first, 1, 0))
            if self.log.bucket.create(keys.segment(first), [body]):
                break
            self._decide(first)
        if first is None:
            return
        self.seen["sealed"] += 1
        self.live = [other for other in self.live if other != writer]
        for segment in sorted((s for s in self.pending if s.writer == writer), reverse=True):
            self.pending.remove(segment)
            del self.log.open[segment]
            for name, before in reversed(self.facts[segment]):
                self.log.topics.pop(name, None)
                if before is not None:
                    self.log.topics[name] = before
        self._cascade()

    def start_reader(self) -> None:
        if len(self.readers) < 3:
            self.readers.append(Reader(set(self.visible)))

    def advance_readers(self) -> None:
        for reader in list(self.readers):
            if self.random.random() < 0.4:
                continue
            listing = list(self.log.bucket.list(keys.LOG))
            if reader.early is None:
                reader.early = listing
                continue
            early = {info.key for info in reader.early}
            seen = [i for i in listing if i.key in early or self.random.random() < 0.5]
            reader.passes.append(read_chains(seen))
            reader.early = None
            if len(reader.passes) == 2:
                self.readers.remove(reader)
                self.results.append(self.finish(reader))

    def finish(self, reader: Reader) -> Result:
        first, second = reader.passes
        footers = read_footers(self.log.bucket, wanted_footers(second), requests_in_flight=1)
        snapshot = cut_log(first, second, {index.segment: index for index in footers})
        kept = {index.segment for index in snapshot.segments}
        assert reader.visible_before <= kept
        fold(snapshot.segments)
        self.seen["left out"] += len(footers) - len(kept)
        found = readable_in(snapshot)
        self.seen["withheld"] += sum(part.withheld for part in found.values())
        return Result(
            {
                key: [(batch.row.base_offset, batch.segment) for batch in part.batches]
                for key, part in found.items()
            },
            {key: part.end_offset for key, part in found.items()},
        )

    def check_gaps(self) -> None:
        """The view's gaps are where readers of only the visible segments stop."""
        stamps: dict[TopicIdPartition, int] = {}
        for index in self.shown:
            for part in index.partitions:
                stamps[part.partition] = max(stamps.get(part.partition, 0), part.hw_stamp)
        ordered = sorted(self.shown, key=lambda index: index.ticket)
        snapshot = LogSnapshot(None, None, tuple(ordered), stamps)
        stalled = {key for key, part in readable_in(snapshot).items() if part.withheld}
        assert self.view.gaps.ends.keys() == stalled
        self.seen["stalled"] += len(stalled)

    def check(self, results: Sequence[Result]) -> None:
        """Hold what was read against the log in the end."""
        chains = read_chains(self.log.bucket.list(keys.LOG))
        segments = [keys.parse_segment(i.key) for chain in chains.values() for i in chain.committed]
        final: dict[TopicIdPartition, list[tuple[int, SegmentId]]] = {}
        for index in read_footers(self.log.bucket, segments, requests_in_flight=1):
            for part in index.partitions:
                final.setdefault(part.partition, []).extend(
                    (row.base_offset, index.segment) for row in part.batches
                )
        for result in results:
            for key, read in result.batches.items():
                now = sorted(at for at in final.get(key, []) if at[0] < result.ends[key])
                assert read == now, key
                self.seen["read"] += len(read)
                bases = [base for base, _ in read]
                gaps = sum(after - before > 2 for before, after in pairwise(bases))
                self.seen["crossed"] += gaps


def run(seed: int, steps: int = 250) -> Counter[str]:
    cluster = Cluster(seed)
    for at in range(steps):
        cluster.step()
        if at % GAPS_CHECKED == 0:
            cluster.check_gaps()
    while cluster.reserved:
        cluster.land()
    cluster.check(cluster.results)
    return cluster.seen


@pytest.mark.parametrize("block", range(10))
def test_what_a_reader_believed_stays_true(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * 30, block * 30 + 30):
        seen += run(seed)
    for event in (
        "read",
        "withheld",
        "stalled",
        "left out",
        "sealed",
        "deleted",
        "wait",
        "crossed",
    ):
        assert seen[event] > 0, f"no run had {event!r}: it proves nothing"
