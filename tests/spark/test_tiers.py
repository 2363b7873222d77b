"""`format("bucketlog")` on a real Spark, where most of the log stands in tiers."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.model import TierObject, TierRow, TopicIdPartition
from bucketlog.spark_jobs.replay import replay_to_parquet
from bucketlog.tiered_storage import keys
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import some_records
from tests.rigs.written_tier import Batch, WrittenTier, batches_in
from tests.spark.conftest import Stored
from tests.spark.test_source import as_records, offsets

pytestmark = pytest.mark.long


class Tiered:
    """`orders`: two partitions of 24 batches, with control batches and a void reservation between
    them. Of each, 20 batches stand in five objects, two of which were merged and two are listed in
    a manifest; the last 4 stand in log segments alone."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        log = stored.log
        log.create_topic("orders", 2)
        self.batches: dict[TopicIdPartition, list[Batch]] = {}
        self.rows: dict[TopicIdPartition, list[TierRow]] = {}
        for number in range(24):
            for at in (0, 1):
                if number == 9:
                    log.marker("orders", at)
                    continue
                written = log.append(
                    "orders", at, some_records(20, tag=f"{at}/{number}"), codec=[*Codec][number % 5]
                )
                if number != 5:
                    stored.records.setdefault(("orders", at), []).extend(written)
            if number == 5:
                log.void(log.reserve(log.register()))
                continue
            for part, batch in batches_in(log.flush()):
                self.batches.setdefault(part, []).append(batch)
        self.tier = WrittenTier(log)
        for part, batches in self.batches.items():
            self._fill(part, batches)

    def _fill(self, part: TopicIdPartition, batches: list[Batch]) -> None:
        rows, start = [], 0
        for first in range(0, 20, 4):
            rows.append(self.tier.split(part, batches[first : first + 4], start))
            start = rows[-1].end
            self.stored.log.flush()
        merged = self.tier.merge(part, rows[:2])
        self.tier.list_in_manifest(part, rows[2:4])
        self.stored.log.flush()
        self.rows[part] = [merged, *rows[2:]]


@pytest.fixture
def tiered(stored: Stored) -> Tiered:
    return Tiered(stored)


@pytest.mark.parametrize("tasks", [1, 5])
def test_every_record_comes_back_once(spark: SparkSession, tiered: Tiered, tasks: int) -> None:
    frame = tiered.stored.load(
        spark, subscribe="orders", includeHeaders="true", minPartitions=str(tasks)
    )
    rows = frame.collect()
    assert len(rows) == 2 * 22 * 20
    assert as_records(rows) == tiered.stored.records
    for at in (0, 1):
        mine = [row["offset"] for row in rows if row["partition"] == at]
        assert mine == sorted(mine)


def test_from_a_checkpoint_without_the_log_segments(spark: SparkSession, tiered: Tiered) -> None:
    """They are deleted, as a day later."""
    bucket = tiered.stored.log.bucket
    made = write_checkpoint(bucket)
    used = {each for part in made.partitions for each in made.segments_of(part)}
    ends = {row.writer: row.end for row in made.writers}
    there = [keys.parse_segment(info.key) for info in bucket.list(keys.LOG)]
    gone = [each for each in there if each.seq < ends[each.writer] and each not in used]
    assert len(gone) > 20
    bucket.delete([keys.segment(each) for each in gone])
    rows = tiered.stored.load(spark, subscribe="orders", includeHeaders="true").collect()
    assert as_records(rows) == tiered.stored.records


def test_offsets_cut_objects_where_they_must(spark: SparkSession, tiered: Tiered) -> None:
    frame = tiered.stored.load(
        spark,
        assign='{"orders":[0]}',
        startingOffsets='{"orders":{"0":33}}',
        endingOffsets='{"orders":{"0":205}}',
    )
    wanted = [
        ("orders", 0, record.offset)
        for record in tiered.stored.records["orders", 0]
        if 33 <= record.offset < 205
    ]
    assert offsets(frame) == wanted


def test_replay_counts_what_stands_in_tiers(
    spark: SparkSession, tiered: Tiered, tmp_path: Path
) -> None:
    """It fails unless the Parquet holds as many records as footers and indexes promise."""
    report = replay_to_parquet(spark, tiered.stored.url, ["orders"], str(tmp_path / "lake"))
    assert report.records == 2 * 22 * 20


def test_a_damaged_object_is_named(spark: SparkSession, tiered: Tiered) -> None:
    part = tiered.stored.log.partition("orders", 1)
    row = tiered.rows[part][1]
    key = keys.tier_object(TierObject.of(part, row))
    path = tiered.stored.object_path(key)
    damaged = bytearray(path.read_bytes())
    damaged[200] ^= 1
    path.unlink()
    path.write_bytes(damaged)
    with pytest.raises(PySparkException) as caught:
        tiered.stored.load(spark, subscribe="orders").collect()
    for words in (key, "topic 'orders' partition 1", f"offsets {row.start} to {row.end - 1}"):
        assert words in str(caught.value)
