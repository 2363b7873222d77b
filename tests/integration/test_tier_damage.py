"""What is damaged in tiers is told, and stays where it is; it holds up its own partition alone."""

from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import TierRow
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, Fault
from bucketlog.tiered_storage.partition_segment import HEADER
from tests.integration.test_compaction import PARTITIONS, SOON, compact, damage, tier, write
from tests.integration.test_deletion import names
from tests.integration.test_key_compaction import started
from tests.integration.test_key_compaction import write as write_keys
from tests.rigs.broker_rig import Rig, create_topic
from tests.rigs.several_brokers import Brokers, fetch
from tests.scenarios.retention import EARLIEST, HOUR_MS, RetainedLog, RetentionFigures

NONE = ErrorCode.none
MINUTE_MS = 60_000


def change(brokers: Brokers, kind: str, name: str, make: Callable[[bytes], bytes]) -> str:
    """Another object stands at the key that ends so, by somebody else's hand."""
    (key,) = [kind + found for found in names(brokers, kind) if found.endswith(name)]
    data = bytes(brokers.memory.get(key).data)
    brokers.memory.delete([key])
    assert brokers.memory.create(key, [make(data)])
    return key


def flip(data: bytes) -> bytes:
    at = len(HEADER) + 70
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def reads_of(rig: Rig) -> list[str]:
    """From now on."""
    reads: list[str] = []

    def plan(verb: BucketVerb, key: str) -> Fault | None:
        if verb is BucketVerb.GET:
            reads.append(key)
        return None

    rig.plan = plan
    return reads


def only(rows: list[TierRow]) -> TierRow:
    (row,) = rows
    return row


@pytest.mark.parametrize("batches", [0, 1])
async def test_an_object_that_was_cut_short_is_never_cleaned_away(
    brokers: Brokers, batches: int
) -> None:
    """At a batch's end, too, where every CRC holds."""
    rig = await started(brokers)
    await write_keys(rig, (b"a", b"1"), (b"b", b"1"))
    await compact(rig)
    row = only(tier(rig))
    size = len(HEADER) + row.batch_bytes // 2 if batches else 0
    key = change(brokers, keys.SEGMENTS, row.name, lambda data: data[:size])
    found = damage(brokers)
    assert found[0].key == key
    await write_keys(rig, *[(b"c%d" % number, bytes(50)) for number in range(10)])
    with pytest.raises(CorruptObjectError, match="it ends before byte"):
        await compact(rig)
    assert tier(rig)[0] == row
    assert damage(brokers) == found
    assert (await fetch(rig, 1)).error_code == ErrorCode.kafka_storage_error


async def test_damage_in_one_partition_is_told_and_the_others_are_merged(brokers: Brokers) -> None:
    rig = await brokers.start(**SOON)
    assert await create_topic(rig, "t", 4) is NONE
    await write(rig, 1)
    await compact(rig)
    damaged = change(brokers, keys.SEGMENTS, only(tier(rig, 3)).name, flip)
    reads = reads_of(rig)
    told = []
    for _ in range(12):
        await write(rig, 1)
        try:
            await compact(rig)
            told.append(False)
        except CorruptObjectError:
            told.append(True)
    assert True in told
    assert told == sorted(told)  # and in each round from then on
    assert len(tier(rig, 3)) == 13
    assert max(len(tier(rig, number)) for number in range(3)) < 10
    assert reads.count(damaged) == 1


async def test_a_damaged_log_segment_is_not_read_again_at_once_and_merging_goes_on(
    brokers: Brokers,
) -> None:
    rig = await brokers.start(**SOON)
    assert await create_topic(rig, "t", 4) is NONE
    for _ in range(12):
        await write(rig, 1)
        rig.clock_ms += 100
        await rig.duties.compactor._split()
    before = [len(tier(rig, number)) for number in PARTITIONS]
    await write(rig, 1)
    newest = max(names(brokers, keys.LOG))
    change(brokers, keys.LOG, newest, lambda data: data[:40] + b"\xff" + data[41:])
    with pytest.raises(CorruptObjectError, match="log/"):
        await compact(rig)
    assert max(len(tier(rig, number)) for number in PARTITIONS) < min(before)
    reads = reads_of(rig)
    with pytest.raises(CorruptObjectError, match="log/"):  # it is told all the same
        await compact(rig)
    assert [key for key in reads if key.startswith(keys.LOG)] == []


async def test_a_manifest_that_is_gone_holds_up_its_own_partitions_retention_alone(
    brokers: Brokers,
) -> None:
    retained = RetainedLog(brokers, RetentionFigures(1))
    ten_hours = {"retention.ms": str(10 * HOUR_MS)}
    await retained.start([ten_hours, ten_hours])
    for turn in range(140):
        await retained.write("t0")
        if turn < 3:
            await retained.write("t1")
        retained.wait(MINUTE_MS)
        if turn % 2:
            await retained.compact()
    log = retained.rig.view.log(retained.key("t0"))
    assert log is not None
    assert log.tier.rows[0].manifest
    (key,) = [
        keys.MANIFESTS + name
        for name in names(brokers, keys.MANIFESTS)
        if name.endswith(log.tier.rows[0].name)
    ]
    brokers.memory.delete([key])
    retained.wait(8 * HOUR_MS + 20 * MINUTE_MS)
    with pytest.raises(CorruptObjectError, match="it is gone"):
        await retained.retain()
    assert (await retained.list_offset("t1", EARLIEST))[0] == 3
    assert (await retained.list_offset("t0", EARLIEST))[0] == 0


async def test_an_object_that_is_gone_does_not_make_a_broker_unready(brokers: Brokers) -> None:
    """The store answers; another broker would tell the same."""
    rig = await brokers.start(**SOON)
    assert await create_topic(rig, "t", 4) is NONE
    await write(rig, 3)
    await compact(rig)
    gone = only(tier(rig, 3)).name
    brokers.memory.delete(
        [keys.SEGMENTS + name for name in names(brokers, keys.SEGMENTS) if name.endswith(gone)]
    )
    assert (await fetch(rig, 0, partition=3)).error_code == ErrorCode.kafka_storage_error
    assert rig.health.ready


async def test_a_fetch_has_what_was_there_in_time(brokers: Brokers) -> None:
    rig = await brokers.start(cache_recent_bytes_max=1, fetch_read_ms_max=2_000)
    assert await create_topic(rig, "t", 4) is NONE
    for _ in range(200):
        await write(rig, 1)
    reads: list[str] = []

    def plan(verb: BucketVerb, key: str) -> Fault | None:
        if verb is not BucketVerb.GET or not key.startswith(keys.LOG):
            return None
        reads.append(key)
        return Fault(error=None, delay_ms=0 if len(reads) <= 10 else 60_000)

    rig.plan = plan
    row = await fetch(rig, 0)
    assert row.error_code == NONE
    assert read_header(row.records).base_offset == 0
    assert rig.health.is_degraded(BrokerPart.READING)
