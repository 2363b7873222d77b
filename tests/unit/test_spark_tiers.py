"""What Spark tasks read of tiers, without a Spark: whole objects, cut ones, and how many GETs."""

import pytest

from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError
from bucketlog.log_format.model import TierObject, TopicIdPartition
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.plan import (
    TaskLimits,
    TaskPiece,
    TierPiece,
    count_records,
    objects_to_cut,
    plan_tasks,
    wanted_rows,
)
from bucketlog.log_reader.planning import with_segments
from bucketlog.log_reader.ranges import OffsetRange, resolve_ranges, select
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Span
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.tier_reader import parts_of, read_indexes
from tests.rigs.readable_log import readable_in
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.rigs.written_tier import Batch, WrittenTier, batches_in
from tests.unit.test_spark_plan import PATH, CountingBucket, read_all

LARGE = [DecodedRecord(0, START_MS, None, bytes(40_000), ())] * 2
"""A batch of some 80 kB: each gets a row in the sparse index."""


class TieredLog:
    """Partition 0 of `a`: 40 batches of two records. The tier has objects of 4, 24 and 8 batches,
    the first two of them behind a manifest; the last 4 batches stand in log segments."""

    def __init__(self) -> None:
        self.log = WrittenLog(MemoryBucket())
        self.log.create_topic("a")
        self.log.create_topic("b")
        self.log.append("b", 0, some_records(10))
        batches: list[Batch] = []
        for _ in range(40):
            self.log.append("a", 0, LARGE)
            batches += [each for part, each in batches_in(self.log.flush()) if part == self.part]
        self.tier = WrittenTier(self.log)
        self.rows = [
            self.tier.split(self.part, batches[first:end], first * 2)
            for first, end in ((0, 4), (4, 28), (28, 36))
        ]
        self.log.flush()
        self.manifest = self.tier.list_in_manifest(self.part, self.rows[:2])
        self.log.flush()

    @property
    def part(self) -> TopicIdPartition:
        return self.log.partition("a", 0)

    def plan(
        self, limits: TaskLimits | None = None, **options: str
    ) -> tuple[list[tuple[TaskPiece, ...]], int]:
        """As the source plans it, and the requests beyond those of reading the log."""
        snapshot = read_log(self.log.bucket)
        found = readable_in(snapshot)
        state = fold(snapshot.segments, onto=restored(snapshot.checkpoint))
        parsed = parse_options({**PATH, **options})
        wanted = resolve_ranges(parsed, select(parsed.selection, state), found, {})
        bucket = CountingBucket(self.log.bucket)
        parts = with_segments(bucket, wanted, found)
        limits = limits or TaskLimits(1 << 30)
        indexes = read_indexes(bucket, objects_to_cut(wanted, parts, limits))
        return plan_tasks(wanted, parts, limits, indexes), bucket.gets


@pytest.fixture(scope="module")
def tiered() -> TieredLog:
    return TieredLog()


def tier_pieces(planned: list[tuple[TaskPiece, ...]]) -> list[list[TierPiece]]:
    return [[each for each in task if isinstance(each, TierPiece)] for task in planned]


def test_whole_objects_need_no_index(tiered: TieredLog) -> None:
    planned, gets = tiered.plan(subscribe="a")
    ((*pieces,),) = tier_pieces(planned)
    assert gets == 1, "the manifest"
    assert [(piece.row, piece.span) for piece in pieces] == [
        (row, Span(16, row.batch_bytes)) for row in tiered.rows
    ]
    assert len(planned[0]) == 3 + 4
    assert read_all(tiered.log, planned) == list(range(80))


def test_an_object_is_cut_where_offsets_are(tiered: TieredLog) -> None:
    planned, gets = tiered.plan(
        subscribe="a",
        startingOffsets='{"a":{"0":21}}',
        endingOffsets='{"a":{"0":41}}',
    )
    ((piece,),) = tier_pieces(planned)
    size = tiered.rows[1].batch_bytes // 24
    assert gets == 2, "the manifest, an index"
    assert piece.span == Span(16 + 6 * size, 11 * size)
    assert read_all(tiered.log, planned) == list(range(21, 41))


def test_a_small_object_is_read_whole(tiered: TieredLog) -> None:
    planned, gets = tiered.plan(subscribe="a", endingOffsets='{"a":{"0":3}}')
    ((piece,),) = tier_pieces(planned)
    assert (gets, piece.span) == (1, Span(16, tiered.rows[0].batch_bytes))
    assert read_all(tiered.log, planned) == [0, 1, 2]


@pytest.mark.parametrize("count", [2, 3, 7, 20])
def test_objects_are_cut_where_more_tasks_are_wanted(tiered: TieredLog, count: int) -> None:
    planned, _ = tiered.plan(TaskLimits(1 << 30, count), subscribe="a")
    assert count * 0.8 <= len(planned) <= count
    assert read_all(tiered.log, planned) == list(range(80))
    sizes = [sum(piece.span.length for piece in task) for task in tier_pieces(planned)]
    assert max(sizes) <= 1.5 * sum(sizes) / count + 160_000


def test_an_object_is_read_by_ranges(tiered: TieredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches lie across their edges."""
    monkeypatch.setattr(parts_of, "__defaults__", (100_001,))
    planned, _ = tiered.plan(subscribe="a")
    bucket = CountingBucket(tiered.log.bucket)
    (task,) = planned
    found = read_pieces(bucket, task, ["offset"], max_decompressed_bytes=1 << 20)
    offsets = [offset for batch in found for offset in batch.column(0).to_pylist()]
    assert offsets == list(range(80))
    assert bucket.gets == sum(-(-row.batch_bytes // 100_001) for row in tiered.rows) + 4


def test_records_below_the_log_start_are_cut_off() -> None:
    tiered = TieredLog()
    tiered.tier.begin_at(tiered.part, 33)
    tiered.log.flush()
    planned, _ = tiered.plan(subscribe="a")
    assert read_all(tiered.log, planned) == list(range(33, 80))
    with pytest.raises(ConfigurationError, match="the bucket holds 33 to 80"):
        tiered.plan(subscribe="a", startingOffsets='{"a":{"0":32}}')


def test_indexes_count_records_of_whole_objects(tiered: TieredLog) -> None:
    snapshot = read_log(tiered.log.bucket)
    found = readable_in(snapshot)
    wanted = [OffsetRange("a", tiered.part, 0, 80)]
    parts = with_segments(tiered.log.bucket, wanted, found)
    rows = [(each.partition, row) for each, row in wanted_rows(wanted, parts)]
    indexes = read_indexes(tiered.log.bucket, rows)
    assert count_records(wanted, parts, indexes) == 80
    cut = [OffsetRange("a", tiered.part, 1, 80)]
    assert count_records(cut, parts, indexes) is None


def test_a_damaged_or_lost_object_of_the_tier_is_named() -> None:
    tiered = TieredLog()
    planned, _ = tiered.plan(subscribe="a")
    key = keys.tier_object(TierObject.of(tiered.part, tiered.rows[1]))
    sound = bytes(tiered.log.bucket.get(key).data)
    for damaged, reason in (
        (sound[:16] + bytes(12) + sound[28:], "batch"),
        (sound[:90] + b"?" + sound[91:], "CRC"),
        (sound[:500_000], "bytes are there"),
        (None, "it is gone"),
    ):
        tiered.log.bucket.delete([key])
        if damaged is not None:
            assert tiered.log.bucket.create(key, [damaged])
        with pytest.raises(CorruptObjectError, match=reason) as caught:
            read_all(tiered.log, planned)
        assert caught.value.key == key
        assert "topic 'a' partition 0 offsets 8 to 55" in str(caught.value)
