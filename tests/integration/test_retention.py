"""Retention by a real broker on virtual time: what goes and what stays is what was computed."""

from random import Random

import pytest

from bucketlog.log_format.model import TierRow
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.tier_reader import read_batches
from tests.rigs.readable_log import readable_in
from tests.rigs.several_brokers import Brokers
from tests.scenarios.retention import (
    BATCH_BYTES,
    EARLIEST,
    FRAMING_BYTES,
    HOUR_MS,
    RetainedLog,
    RetentionFigures,
    walk,
)

pytestmark = pytest.mark.long

MINUTE_MS = 60_000
TEN_HOURS = {"retention.ms": str(10 * HOUR_MS)}
SIX_BATCHES = {"retention.ms": "-1", "retention.bytes": str(6 * BATCH_BYTES)}
NAME = "t0"
PAIR_BYTES = 2 * BATCH_BYTES + FRAMING_BYTES


@pytest.fixture
def retained(brokers: Brokers) -> RetainedLog:
    return RetainedLog(brokers, RetentionFigures(1))


def tier(retained: RetainedLog) -> list[TierRow]:
    log = retained.rig.view.log(retained.key(NAME))
    assert log is not None
    return log.tier.rows


async def begin(retained: RetainedLog) -> int:
    return (await retained.list_offset(NAME, EARLIEST))[0]


@pytest.mark.parametrize("seed", range(3))
async def test_a_random_walk_is_as_the_naive_model_says(retained: RetainedLog, seed: int) -> None:
    await walk(retained, Random(seed), 60)
    assert retained.figures.log_starts_moved > 3
    assert retained.figures.objects_deleted > 10


@pytest.mark.parametrize("compacted", [False, True])
async def test_time_to_the_millisecond(retained: RetainedLog, compacted: bool) -> None:
    """Of a partition segment the youngest batch counts."""
    await retained.start([TEN_HOURS])
    for _ in range(2):
        await retained.write(NAME)
        retained.wait(HOUR_MS)
    if compacted:
        await retained.compact()
        retained.wait(-1_000)
    starts = []
    for wait_ms in (8 * HOUR_MS, 1, HOUR_MS - 1, 1):
        retained.wait(wait_ms)
        await retained.retain()
        await retained.check()
        starts.append(await begin(retained))
    assert starts == ([0, 0, 0, 2] if compacted else [0, 1, 1, 2])


@pytest.mark.parametrize("compacted", [False, True])
async def test_size_is_never_below_what_is_kept(retained: RetainedLog, compacted: bool) -> None:
    await retained.start([SIX_BATCHES])
    starts = []
    for _ in range(11):
        await retained.write(NAME)
    for _ in range(3):
        if compacted:
            await retained.compact()
        await retained.retain()
        await retained.check()
        starts.append(await begin(retained))
        await retained.write(NAME)
    # 11 batches: five go, or two pairs; then one more is there each time
    assert starts == ([4, 6, 6] if compacted else [5, 6, 7])


async def test_objects_go_a_safety_age_later_and_readers_under_way_end_before(
    retained: RetainedLog,
) -> None:
    await retained.start([TEN_HOURS])
    for _ in range(4):
        await retained.write(NAME)
    await retained.compact()
    memory, key = retained.brokers.memory, retained.key(NAME)
    under_way = readable_in(read_log(memory))[key]
    retained.wait(11 * HOUR_MS)
    await retained.retain()
    assert await begin(retained) == 4
    await retained.delete_objects()
    retained.wait(23 * HOUR_MS)
    await retained.delete_objects()
    assert retained.segment_sizes(NAME) == [PAIR_BYTES] * 2
    found = [
        batch.base_offset
        for row in under_way.rows
        for walked in read_batches(memory, key, row)
        for batch in walked.rows
    ]
    assert found == [0, 1, 2, 3]
    retained.wait(HOUR_MS)
    await retained.delete_objects()
    assert retained.segment_sizes(NAME) == []
    await retained.check()


async def test_what_manifests_list_goes_by_time_and_by_delete_records(
    retained: RetainedLog,
) -> None:
    """70 pairs, of which 38 are listed in a manifest."""
    await retained.start([TEN_HOURS])
    for _ in range(140):
        await retained.write(NAME)
        retained.wait(MINUTE_MS)
    begun_ms = retained.now_ms - 140 * MINUTE_MS
    await retained.compact()
    first, *others = tier(retained)
    assert (first.manifest, first.segments, len(others)) == (True, 38, 32)
    await retained.check_times(NAME, [begun_ms + minute * MINUTE_MS for minute in (0, 7, 75, 139)])
    await retained.delete_records(NAME, 11)
    await retained.check()
    await retained.check_times(NAME, [0, begun_ms + 10 * MINUTE_MS, begun_ms + 12 * MINUTE_MS])
    retained.wait(begun_ms + 10 * HOUR_MS + 40 * MINUTE_MS - retained.now_ms)
    await retained.retain()
    await retained.check()
    assert await begin(retained) == 40
    await retained.compact()
    assert (tier(retained)[0].manifest, tier(retained)[0].segments) == (True, 18)
    await retained.delete_all_that_may_go()
    assert retained.segment_sizes(NAME) == [PAIR_BYTES] * 50
    there = keys.tier_of(keys.MANIFESTS, retained.key(NAME))
    assert len(list(retained.brokers.memory.list(there))) == 1
    await retained.check()
    await retained.retain()
    await retained.check()
    assert await begin(retained) == 140
    await retained.delete_all_that_may_go()
    assert retained.segment_sizes(NAME) == []
    assert not list(retained.brokers.memory.list(there))
    await retained.check()
