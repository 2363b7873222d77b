"""Checkpoints between the steps of a small cluster that may do anything late: each holds exactly
what will ever be committed below its ticket, and readers that begin with one find at least what
readers of everything find, and nothing that changes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import Ticket, WriterId
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint
from bucketlog.tiered_storage.log_cut import LogSnapshot, cut_log, wanted_footers
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint, read_footers, read_tails
from bucketlog.tiered_storage.tails import chains_of, tail_starts, whole_log
from tests.property.test_bucket_only_reading import Cluster, Result
from tests.rigs.checkpoints import Tails, indexes_of, made_of
from tests.rigs.readable_log import readable_in

pytestmark = pytest.mark.long


def tails_in(
    seen: Sequence[ObjectInfo], base: Checkpoint | None, registered: Iterable[ObjectInfo]
) -> Tails:
    if base is None:
        return whole_log(seen, registered)
    return {
        start.writer: start.read(
            info
            for info in seen
            if info.key.startswith(start.prefix) and info.key > start.start_after
        )
        for start in tail_starts(base, registered)
    }


class Pass(NamedTuple):
    """One listing, in which each key was seen at one of two moments, put to three uses: as it is
    done after a checkpoint, where registrations are listed first; after a checkpoint, with the
    registrations of the end; and without a checkpoint."""

    tails: Tails
    late: Tails
    whole: Tails


@dataclass
class Work:
    """Somebody's two passes."""

    base: Checkpoint | None
    finish: "Callable[[Work], None]"
    pause: float
    """How likely it does nothing in a step: slow ones see much happen during a listing."""
    passes: list[Pass] = field(default_factory=list)
    early: tuple[list[ObjectInfo], list[ObjectInfo]] | None = None


class CheckpointedCluster(Cluster):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.works: list[Work] = []
        self.checkpoints: list[Checkpoint] = []

    def start_reader(self) -> None:
        if len(self.works) < 4:
            finish = self.random.choice([self.finish_reader, self.write_checkpoint])
            newest = read_checkpoint(self.log.bucket)
            older = self.random.choice([None, *self.checkpoints])
            base = newest if self.random.random() < 0.7 else older
            self.works.append(Work(base, finish, self.random.choice([0.4, 0.95])))

    def advance_readers(self) -> None:
        for work in list(self.works):
            if self.random.random() < work.pause:
                continue
            listing = list(self.log.bucket.list(keys.LOG))
            registered = list(self.log.bucket.list(keys.WRITERS))
            if work.early is None:
                work.early = listing, registered
                continue
            early = {info.key for info in work.early[0]}
            seen = [i for i in listing if i.key in early or self.random.random() < 0.5]
            late, whole = (tails_in(seen, base, registered) for base in (work.base, None))
            tails = whole if work.base is None else tails_in(seen, work.base, work.early[1])
            work.passes.append(Pass(tails, late, whole))
            work.early = None
            if len(work.passes) == 2:
                self.works.remove(work)
                work.finish(work)

    def write_checkpoint(self, work: Work) -> None:
        first, second = (each.tails for each in work.passes)
        made = made_of(self.log.bucket, work.base, first, second, active_epoch=1)
        if made is None:
            self.seen["nothing new"] += 1
            return
        key, data = keys.checkpoint(made.ticket), encode_checkpoint(made)
        assert decode_checkpoint(key, data) == made
        self.log.bucket.create(key, [data])
        self.checkpoints.append(made)
        self.seen["checkpoint"] += 1
        self.seen["closed"] += sum(row.closed for row in made.writers)
        self.seen["on another"] += work.base is not None

    def finish_reader(self, work: Work) -> None:
        first, second = work.passes
        late = self.snapshot(first.late, second.late, work.base)
        whole = self.snapshot(first.whole, second.whole, None)
        with_checkpoint = fold(late.segments, onto=restored(work.base))
        without = fold(whole.segments)
        assert with_checkpoint.topics == without.topics
        assert with_checkpoint.partitions == without.partitions
        late_parts = readable_in(late)
        for key, part in readable_in(whole).items():
            if key in with_checkpoint.partitions:
                assert late_parts[key].batches[: len(part.batches)] == part.batches
        found = self.snapshot(first.tails, second.tails, work.base)
        parts = readable_in(found)
        fold(found.segments, onto=restored(work.base))
        self.seen["with a checkpoint"] += work.base is not None
        self.results.append(
            Result(
                {
                    key: [(b.row.base_offset, b.segment) for b in p.batches]
                    for key, p in parts.items()
                },
                {key: part.end_offset for key, part in parts.items()},
            )
        )

    def snapshot(
        self,
        first: Tails,
        second: Tails,
        base: Checkpoint | None,
    ) -> LogSnapshot:
        chains = chains_of(second)
        footers = read_footers(self.log.bucket, wanted_footers(chains), requests_in_flight=1)
        known = {index.segment: index for index in footers}
        return cut_log(chains_of(first), chains, known, base)

    def check_checkpoints(self) -> None:
        """Hold each against all that was ever committed."""
        tails = read_tails(self.log.bucket, None)
        final = indexes_of(self.log.bucket, tails)
        for made in self.checkpoints:
            below = [index for index in final if index.ticket < made.ticket]
            assert made.segments == len(below), made.ticket
            state, expected = restored(made), fold(below)
            assert state.topics == expected.topics
            assert state.partitions == expected.partitions
            ends: dict[WriterId, int] = {}
            for index in below:
                ends[index.segment.writer] = ends.get(index.segment.writer, 0) + 1
            assert ends == {row.writer: row.end for row in made.writers if row.end}
            for row in made.writers:
                chain = tails[row.writer].chain
                assert not row.closed or (chain.sealed and chain.end == row.end)
            self.seen["covered"] += len(below)
            self.seen["left for later"] += len(final) - len(below)


def run(seed: int, steps: int = 250) -> Counter[str]:
    cluster = CheckpointedCluster(seed)
    for _ in range(steps):
        cluster.step()
    while cluster.reserved:
        cluster.land()
    cluster.check_checkpoints()
    cluster.check(cluster.results)
    return cluster.seen


EVENTS = (
    "checkpoint",
    "on another",
    "nothing new",
    "closed",
    "covered",
    "left for later",
    "with a checkpoint",
    "read",
    "crossed",
    "sealed",
    "deleted",
)


@pytest.mark.parametrize("block", range(8))
def test_checkpoints_hold_what_is_below_their_tickets(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * 30, block * 30 + 30):
        seen += run(seed)
    for event in EVENTS:
        assert seen[event] > 0, f"no run had {event!r}: it proves nothing"


def test_a_segment_below_a_checkpoint_that_lacks_it_stops_readers() -> None:
    for seed in range(200):
        cluster = CheckpointedCluster(seed)
        for _ in range(150):
            cluster.step()
        base = cluster.checkpoints[-1] if cluster.checkpoints else None
        if base is not None and any(row.end and not row.closed for row in base.writers):
            break
    assert base is not None
    wrong = Checkpoint(
        Ticket(1, 10_000), 1, base.segments, base.writers, base.partitions, base.state
    )
    tails = {
        start.writer: start.read(
            cluster.log.bucket.list(start.prefix, start_after=start.start_after)
        )
        for start in tail_starts(wrong, cluster.log.bucket.list(keys.WRITERS))
    }
    assert any(tail.chain.committed for tail in tails.values())
    with pytest.raises(CorruptObjectError, match="it lacks"):
        cluster.snapshot(tails, tails, wrong)
