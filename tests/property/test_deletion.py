"""Deletion below floors, at any moment of a cluster that may do anything late: epochs follow each
other, PUTs land long after their keys were deleted, plans are carried out in part and in any order.
A mirror of the bucket keeps everything; whatever a reader believed is held against that.
"""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import pytest

from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.errors import (
    BucketlogError,
    CorruptObjectError,
    InvalidDataError,
    StaleCheckpointError,
)
from bucketlog.log_format.model import Buffer, SegmentId
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint, newest_first
from bucketlog.tiered_storage.deletion import plan_chain, plan_floors
from bucketlog.tiered_storage.floors import Floor, check_not_below, decode_floor, encode_floor
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint, read_tails
from bucketlog.tiered_storage.segment import Seal, encode_seal, is_seal
from tests.property.test_bucket_only_reading import Result
from tests.property.test_checkpointed_reading import CheckpointedCluster, Pass, Work, tails_in
from tests.rigs.checkpoints import indexes_of, made_of
from tests.rigs.readable_log import readable_in
from tests.rigs.written_log import ReservedSegment

pytestmark = pytest.mark.long

IDENTITY = ClusterIdentity(cluster_id=UUID(int=1), format_version=FORMAT_VERSION, created_ms=1)
SAFETY_AGE_STEPS = 15
FLOOR_INTERVAL_STEPS = 5


class Mirrored(MemoryBucket):
    """`everything` keeps what was created first under each key, deleted or not."""

    def __init__(self, everything: MemoryBucket, now: list[int]) -> None:
        super().__init__(lambda: now[0])
        self.everything = everything

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        created = super().create(key, parts, crc32c=crc32c)
        if created:
            self.everything.create(key, parts)
        return created


class DeletingCluster(CheckpointedCluster):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.now = [0]
        self.everything = MemoryBucket()
        first = self.log.bucket
        self.bucket = Mirrored(self.everything, self.now)
        for info in first.list(""):
            self.bucket.create(info.key, [first.get(info.key).data])
        self.log.bucket = self.bucket
        assert self.bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        self.landed: list[ReservedSegment] = []
        self.late: list[ReservedSegment] = []
        """PUTs that take longer than their epoch."""
        self.deleted: set[str] = set()
        self.epochs_of: dict[int, int] = {}
        """By identity of somebody's work, the epoch in which it began."""

    def step(self) -> None:
        self.now[0] += 1
        action = self.random.random()
        if action < 0.02:
            self.begin_epoch()
        elif action < 0.12:
            self.delete()
        elif action < 0.15:
            self.land_again()
        elif action < 0.16:
            self.reserved, self.late = self.late, self.reserved
            self.land()
            self.reserved, self.late = self.late, self.reserved
        else:
            super().step()

    def land(self) -> None:
        if self.reserved:
            reserved = self.reserved.pop(self.random.randrange(len(self.reserved)))
            was_deleted = reserved.key in self.deleted
            if self.bucket.create(reserved.key, [reserved.data]):
                self.landed.append(reserved)
                self.seen["written where something was deleted"] += was_deleted

    def land_again(self) -> None:
        """A request that was sent twice arrives the second time."""
        if self.landed:
            again = self.random.choice(self.landed)
            if self.bucket.create(again.key, [again.data]):
                assert again.key in self.deleted
                self.seen["deleted one written again"] += 1

    def begin_epoch(self) -> None:
        """Claim, seal, fold; what is in flight stays in flight."""
        self.late += self.reserved
        self.reserved.clear()
        base = read_checkpoint(self.bucket)
        tails = read_tails(self.bucket, base)
        for writer, tail in tails.items():
            end = tail.chain.end
            while not tail.chain.sealed:
                segment = SegmentId(writer, end)
                seal = encode_seal(Seal(segment, self.log.epoch + 1, 0))
                if self.bucket.create(keys.segment(segment), [seal]):
                    break
                found = self.bucket.head(keys.segment(segment))
                if found is not None and is_seal(found.size_bytes):
                    break
                end += 1
        final = indexes_of(self.bucket, read_tails(self.bucket, base))
        state = fold(final, onto=restored(base))
        self.view = View.of(sorted(final, key=lambda index: index.ticket), base)
        self.log.epoch += 1
        self.log.ticket = 0
        self.log.open.clear()
        self.log.topics = {
            topic.name: (topic.topic_id, topic.partitions) for topic in state.topics.values()
        }
        self.log.next_offset = {key: part.next_offset for key, part in state.partitions.items()}
        self.log.visible.clear()
        self.pending.clear()
        self.decided.clear()
        self.depends.clear()
        self.facts.clear()
        self.live = [self.log.register()]
        self.seen["epoch"] += 1

    # Readers and writers of checkpoints --------------------------------------------------------

    def start_reader(self) -> None:
        if len(self.works) < 4:
            finish = self.random.choice([self.finish_reader, self.write_checkpoint])
            work = Work(read_checkpoint(self.bucket), finish, self.random.choice([0.3, 0.9]))
            self.epochs_of[id(work)] = self.log.epoch
            self.works.append(work)

    def advance_readers(self) -> None:
        for work in list(self.works):
            if self.random.random() < work.pause:
                continue
            now = list(self.bucket.list(keys.LOG)), list(self.bucket.list(keys.WRITERS))
            if work.early is None:
                work.early = now
                continue
            seen = self._seen_in_between(work.early[0], now[0])
            registered = self._seen_in_between(work.early[1], now[1])
            if work.base is not None:
                registered = [info for info in registered if info in work.early[1]]
            else:
                registered = now[1]
            work.early = None
            try:
                tails = tails_in(seen, work.base, registered)
            except (CorruptObjectError, InvalidDataError):
                self.give_up(work)
                continue
            work.passes.append(Pass(tails, {}, {}))
            if len(work.passes) == 2:
                self.works.remove(work)
                work.finish(work)

    def _seen_in_between(
        self, early: Sequence[ObjectInfo], late: Sequence[ObjectInfo]
    ) -> list[ObjectInfo]:
        """What was there all the while is seen, what came or went perhaps."""
        always = set(early) & set(late)
        either = sorted(set(early) | set(late))
        return [info for info in either if info in always or self.random.random() < 0.5]

    def give_up(self, work: Work) -> None:
        """It could not be read: only deletion below a newer floor excuses that."""
        self.works.remove(work)
        with pytest.raises(StaleCheckpointError):
            check_not_below(work.base, self.bucket.list(keys.FLOORS))
        self.seen["begun again"] += 1

    def is_stale(self, work: Work) -> bool:
        try:
            check_not_below(work.base, self.bucket.list(keys.FLOORS))
        except StaleCheckpointError:
            self.seen["begun again"] += 1
            return True
        return False

    def write_checkpoint(self, work: Work) -> None:
        if self.is_stale(work):
            return
        first, second = (each.tails for each in work.passes)
        epoch = self.epochs_of[id(work)]
        made = made_of(self.bucket, work.base, first, second, active_epoch=epoch)
        if made is None or made.ticket.epoch != epoch:
            self.seen["nothing new"] += 1
            return
        if self.bucket.create(keys.checkpoint(made.ticket), [encode_checkpoint(made)]):
            self.checkpoints.append(made)
            self.seen["checkpoint"] += 1
        if work.base is not None:
            base = keys.checkpoint(work.base.ticket)
            listed = newest_first(self.bucket.list(keys.CHECKPOINTS))
            self.bucket.delete([info.key for info in listed if info.key < base])

    def finish_reader(self, work: Work) -> None:
        first, second = work.passes
        try:
            found = self.snapshot(first.tails, second.tails, work.base)
        except BucketlogError:
            assert self.is_stale(work)
            return
        if self.is_stale(work):
            return
        state = fold(found.segments, onto=restored(work.base))
        parts = readable_in(found)
        for key, part in parts.items():
            if key in state.partitions:
                for batch in part.batches:
                    assert self.bucket.head(keys.segment(batch.segment)) is not None, batch
                    self.seen["readable"] += 1
        self.results.append(
            Result(
                {
                    key: [(b.row.base_offset, b.segment) for b in p.batches]
                    for key, p in parts.items()
                },
                {key: part.end_offset for key, part in parts.items()},
            )
        )
        self.seen["with a checkpoint"] += work.base is not None

    def check_checkpoints(self) -> None:
        final = indexes_of(self.everything, read_tails(self.everything, None))
        for made in self.checkpoints:
            below = [index for index in final if index.ticket < made.ticket]
            assert made.segments == len(below), made.ticket
            state, expected = restored(made), fold(below)
            assert state.topics == expected.topics
            assert state.partitions == expected.partitions

    # Deletion ----------------------------------------------------------------------------------

    def delete(self) -> None:
        """A round of the duty, up to some moment of it."""
        newest = newest_first(self.bucket.list(keys.CHECKPOINTS))[:2]
        if len(newest) < 2:
            return
        newer, older = (decode_checkpoint(i.key, self.bucket.get(i.key).data) for i in newest)
        plan = plan_floors(
            older.ticket,
            list(self.bucket.list(keys.FLOORS)),
            now_ms=self.now[0],
            safety_age_ms=SAFETY_AGE_STEPS,
            interval_ms=FLOOR_INTERVAL_STEPS,
        )
        if plan.write is not None:
            data = encode_floor(Floor.of(older, newer))
            assert self.bucket.create(keys.floor(plan.write), [data])
            self.seen["floor"] += 1
        if plan.use is None:
            return
        key = keys.floor(plan.use)
        floor = decode_floor(key, self.bucket.get(key).data)
        self.bucket.delete(self.random.sample(plan.drop, self.random.randint(0, len(plan.drop))))
        for info in list(self.bucket.list(keys.WRITERS)):
            epoch, writer = keys.parse_writer_registration(info.key)
            chain = plan_chain(
                writer,
                epoch,
                list(self.bucket.list(keys.chain(writer))),
                floor=floor,
                sealed_before_ms=self.now[0] - SAFETY_AGE_STEPS,
            )
            for kind in ("seals", "void", "dead"):
                self._delete_some(kind, getattr(chain, kind))
            if chain.over:
                self._delete_some("registrations", [info.key])

    def _delete_some(self, kind: str, wanted: list[str]) -> None:
        some = self.random.sample(wanted, self.random.randint(0, len(wanted)))
        self.bucket.delete(some)
        self.deleted.update(some)
        self.seen[kind] += len(some)


def run(seed: int, steps: int = 400) -> Counter[str]:
    cluster = DeletingCluster(seed)
    for _ in range(steps):
        cluster.step()
    cluster.reserved += cluster.late
    while cluster.reserved:
        cluster.land()
    base = read_checkpoint(cluster.bucket)
    last = fold(indexes_of(cluster.bucket, read_tails(cluster.bucket, base)), onto=restored(base))
    assert verify_log(cluster.bucket, requests_in_flight=1).damage == []
    cluster.log.bucket = cluster.everything
    cluster.check_checkpoints()
    cluster.check(cluster.results)
    everything = fold(indexes_of(cluster.everything, read_tails(cluster.everything, None)))
    assert last.topics == everything.topics
    assert last.partitions == everything.partitions
    return cluster.seen


EVENTS = (
    "epoch",
    "checkpoint",
    "floor",
    "seals",
    "void",
    "dead",
    "registrations",
    "begun again",
    "with a checkpoint",
    "readable",
    "written where something was deleted",
    "deleted one written again",
)


@pytest.mark.parametrize("block", range(8))
def test_what_is_deleted_is_missed_by_nobody(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * 25, block * 25 + 25):
        seen += run(seed)
    for event in EVENTS:
        assert seen[event] > 0, f"no run had {event!r}: it proves nothing"
