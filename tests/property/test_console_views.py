"""The console's view of a log that grows: figures from an earlier view equal those of a new view.

Segments land late, writers are sealed, topics are deleted, transactions end, batches move into
tiers, and checkpoints are written between the views.
"""

import random
from collections.abc import Sequence
from itertools import count

import pytest

from bucketlog.console.log_view import LogView, view_of
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.log_cut_reading import read_log
from tests.property.test_bucket_only_reading import Cluster
from tests.property.test_committed_reading import split_once
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.transactional_log import OPEN_PRODUCER, TransactionalLog
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_verify import IDENTITY

SEEDS = range(20)
STEPS = 200


class WatchedViews:
    """Reads a log again and again. `kept` counts figures that a view took from the earlier view,
    and `computed` counts the other figures."""

    def __init__(self, bucket: SyncBucket) -> None:
        self._bucket = bucket
        self._known: LogView | None = None
        self.kept = self.computed = 0

    @property
    def withheld(self) -> int:
        """The number of batches that the last view withholds."""
        assert self._known is not None
        return sum(each.withheld for each in self._known.figures.values())

    def look(self) -> None:
        snapshot = read_log(self._bucket, requests_in_flight=1)
        if snapshot.is_empty:
            return
        found = view_of(IDENTITY, snapshot, 0, self._known)
        assert found.figures == view_of(IDENTITY, snapshot, 0).figures
        before = {} if self._known is None else self._known.figures
        kept = sum(before.get(key) is figures for key, figures in found.figures.items())
        self.kept += kept
        self.computed += len(found.figures) - kept
        self._known = found


@pytest.mark.parametrize("seed", SEEDS)
def test_figures_of_a_cluster_that_does_anything_late(seed: int) -> None:
    cluster, chance = Cluster(seed), random.Random(seed)
    watched = WatchedViews(cluster.log.bucket)
    for _ in range(STEPS):
        cluster.step()
        if chance.random() < 0.7:
            watched.look()
    assert watched.kept > watched.computed > 0


class WatchedBucket(MemoryBucket):
    """A bucket whose log the console reads after some of the new log segments."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance = random.Random(seed)
        self.watched: WatchedViews | None = None

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        created = super().create(key, parts, crc32c=crc32c)
        if key.startswith(keys.LOG) and self.watched is not None and self.chance.random() < 0.4:
            self.watched.look()
        return created


@pytest.mark.parametrize("seed", SEEDS)
def test_figures_with_transactions_tiers_and_checkpoints(seed: int) -> None:
    bucket, chance = WatchedBucket(seed), random.Random(seed)
    bucket.watched = WatchedViews(bucket)
    planted = TransactionalLog(bucket, seed, partitions=4, steps=60)
    names = count()
    while split_once(planted, names):
        planted.append(chance.randrange(4), 1, OPEN_PRODUCER)
        planted.log.flush()
        if chance.random() < 0.5:
            write_checkpoint(bucket)
    planted.log.end_transaction(OPEN_PRODUCER, commit=chance.random() < 0.5)
    planted.log.flush()
    while split_once(planted, names):
        pass
    assert next(names) > 2
    assert bucket.watched.kept > 0


def test_batches_that_only_a_checkpoint_lists() -> None:
    """Segments are written and covered between two views. Only the last segment is never
    covered."""
    log = WrittenLog(MemoryBucket())
    watched = WatchedViews(log.bucket)
    log.create_topic("t", 3)
    log.flush()
    for _ in range(2):
        for number in range(2):
            log.append("t", number, some_records(2))
            log.flush()
        write_checkpoint(log.bucket)
        watched.look()
    assert watched.kept == 1, "the third partition has not changed"


def test_a_stamp_shows_withheld_batches() -> None:
    log = WrittenLog(MemoryBucket())
    watched = WatchedViews(log.bucket)
    first, second = log.first_writer, log.register()
    log.create_topic("t")
    log.flush(first)
    log.append("t", 0, some_records(1))
    never = log.reserve(first)
    log.append("t", 0, some_records(1))
    log.flush(second)
    watched.look()
    assert watched.withheld == 1
    log.void(never)
    log.stamp("t", 0)
    log.flush(second)
    watched.look()
    assert watched.withheld == 0
