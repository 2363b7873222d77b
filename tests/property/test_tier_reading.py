"""Readers of the bucket alone while tiers are made: whatever was swapped, listed in manifests or
deleted, wherever the log was begun, from whichever checkpoint they begin: the same batches."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from bucketlog.model import Ticket, TopicPartition
from metadata.fold import LogState
from tests.checkpoints import write_checkpoint
from tests.readable_log import contents_of
from tests.written_log import Reserved, WrittenLog, some_records
from tests.written_tier import Batch, WrittenTier, batches_in
from tiered_storage import keys
from tiered_storage.backends.memory import MemoryBucket
from tiered_storage.bucket import ObjectInfo
from tiered_storage.log_reader import read_checkpoint

PARTITIONS = 2


class HidingBucket(MemoryBucket):
    """Lists no checkpoints above `newest`, where that is set."""

    newest: Ticket | None = None

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        for info in super().list(prefix, start_after=start_after):
            is_hidden = (
                self.newest is not None
                and info.key.startswith(keys.CHECKPOINTS)
                and keys.parse_checkpoint(info.key) > self.newest
            )
            if not is_hidden:
                yield info


class History:
    """What was ever committed stays in `batches`, whatever is deleted."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bucket = HidingBucket()
        self.log = WrittenLog(self.bucket)
        self.log.create_topic("t", PARTITIONS)
        self.tier = WrittenTier(self.log)
        self.parts = [self.log.partition("t", number) for number in range(PARTITIONS)]
        self.batches: dict[TopicPartition, list[Batch]] = {part: [] for part in self.parts}
        self.checkpoints: list[Ticket] = []
        self.state = LogState()
        self.open: Reserved | None = None
        self.seen: Counter[str] = Counter()
        self.state.apply(self.log.flush().index)

    def flush(self) -> None:
        for number in range(PARTITIONS):
            for _ in range(self.random.choice([0, 0, 1, 2])):
                self.log.append("t", number, some_records(self.random.randint(1, 3)))
        if self.open is None and self.random.random() < 0.2:
            self.open = self.log.reserve(self.log.register())  # it will be void
            return
        if self.open is not None and self.random.random() < 0.5:
            self.log.void(self.open)
            self.open = None
            self.seen["void"] += 1
        flushed = self.log.flush()
        self.state.apply(flushed.index)
        for part, batch in batches_in(flushed):
            self.batches[part].append(batch)

    def visible_end(self, part: TopicPartition) -> int:
        """What is reserved behind something open is not visible: no job is planned on it."""
        held = self.open.index.partitions if self.open is not None else ()
        bases = [row.base_offset for each in held if each.partition == part for row in each.batches]
        return min([*bases, self.state.partitions[part].next_offset])

    def step(self) -> None:
        part = self.random.choice(self.parts)
        jobs = [self.flush, self.checkpoint, self.thin_out]
        jobs += [lambda: self.split(part), lambda: self.rewrite(part), lambda: self.begin(part)]
        self.random.choices(jobs, [6, 2, 1, 4, 3, 1])[0]()

    def split(self, part: TopicPartition) -> None:
        start = self.state.partitions[part].tier.end
        end = self.visible_end(part)
        late = [batch for batch in self.batches[part] if start <= batch.base_offset < end]
        if not late:
            return
        some = late[: self.random.randint(1, len(late))]
        for _ in range(self.random.choice([1, 1, 2])):  # by two brokers at once
            self.tier.split(part, some, start)
        self.flush()
        self.seen["split"] += 1

    def rewrite(self, part: TopicPartition) -> None:
        rows = self.state.partitions[part].tier.rows
        first = self.random.randrange(len(rows) + 1)
        some = rows[first : first + self.random.randint(2, 4)]
        if len(some) < 2 or any(row.manifest for row in some):
            return
        if self.random.random() < 0.5:
            self.tier.merge(part, some)
            self.seen["merged"] += 1
        else:
            self.tier.list_in_manifest(part, some)
            self.seen["manifest"] += 1
        self.flush()

    def begin(self, part: TopicPartition) -> None:
        """Anywhere, inside of batches, too."""
        if self.random.random() < 0.5:
            low = self.state.partitions[part].log_start
            high = max(low, self.visible_end(part))
            self.tier.begin_at(part, self.random.randint(low, high))
            self.flush()
            self.seen["begun later"] += 1

    def checkpoint(self) -> None:
        if (
            self.open is None
            and self.log.ticket > (self.checkpoints[-1].number if self.checkpoints else 0) + 2
        ):
            self.log.flush()
            self.checkpoints.append(write_checkpoint(self.bucket).ticket)
            self.seen["checkpoint"] += 1

    def thin_out(self) -> None:
        """Segments that no batch of the newest checkpoint stands in; readers begin with it."""
        newest = read_checkpoint(self.bucket)
        if newest is None:
            return
        used = {each for part in newest.partitions for each in newest.segments_of(part)}
        gone = [
            info.key
            for info in self.bucket.list(keys.LOG)
            if (segment := keys.parse_segment(info.key)) not in used
            and any(
                row.writer == segment.writer and segment.seq < row.end for row in newest.writers
            )
        ]
        self.bucket.delete(gone)
        self.checkpoints = [newest.ticket]
        self.seen["thinned out"] += bool(gone)

    def check(self) -> None:
        """From every checkpoint that still has all it names, and from none."""
        everything = [] if self.seen["thinned out"] else [Ticket(0, 0)]
        for newest in [*everything, *self.checkpoints]:
            self.bucket.newest = newest
            found = contents_of(self.bucket)
            self.bucket.newest = None
            for part in self.parts:
                start = self.state.partitions[part].log_start
                wanted = [b.data for b in self.batches[part] if b.next_offset > start]
                shown = found[part]
                assert (shown.log_start, shown.batches) == (start, wanted[: len(shown.batches)])
                assert len(shown.batches) + shown.withheld == len(wanted)
                self.seen["shown"] += len(shown.batches)
                self.seen["withheld"] += shown.withheld


EVENTS = ("split", "merged", "manifest", "begun later", "checkpoint", "thinned out", "void")


@pytest.mark.parametrize("block", range(4))
def test_readers_see_the_same_whatever_was_swapped(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * 15, block * 15 + 15):
        history = History(seed)
        for _ in range(40):
            history.step()
            history.check()
        seen += history.seen
    for event in (*EVENTS, "shown", "withheld"):
        assert seen[event] > 0, f"no run had {event!r}: it proves nothing"
