"""Key compaction by a real broker: the latest record of each key stays, offsets keep their numbers,
and consumers from any offset get to the end."""

from random import Random

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.records import DecodedRecord, decode_records
from bucketlog.tiered_storage import keys
from tests.integration.test_compaction import SOON, compact, tier
from tests.integration.test_deletion import names
from tests.rigs.broker_rig import Rig, create_topic, end_of, produce
from tests.rigs.several_brokers import Brokers, fetch
from tests.rigs.wire_client import Keyed

NONE = ErrorCode.none
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}


async def started(brokers: Brokers, **configs: str) -> Rig:
    rig = await brokers.start(**SOON)
    named = {name.replace("_", "."): text for name, text in configs.items()}
    assert await create_topic(rig, "t", configs=COMPACTED | named) is NONE
    return rig


async def records(rig: Rig, offset: int = 0) -> list[DecodedRecord]:
    """From that offset on, as a consumer reads them; it must get to the end."""
    found: list[DecodedRecord] = []
    end = await end_of(rig)
    while offset < end:
        row = await fetch(rig, offset)
        assert row.error_code == NONE
        data, at = bytes(row.records or b""), 0
        assert data, f"a consumer is stuck at {offset} of {end}"
        while at < len(data):
            header = read_header(data, at)
            batch = decode_records(data[at : at + header.size_bytes], header)
            found += [record for record in batch if record.offset >= offset]
            at, offset = at + header.size_bytes, header.next_offset
    return found


async def write(rig: Rig, *pairs: tuple[bytes, bytes | None]) -> None:
    for key, value in pairs:
        assert (await produce(rig, Keyed(key, value)))[0] is NONE


async def test_the_latest_of_each_key_stays_where_it_was(brokers: Brokers) -> None:
    rig = await started(brokers)
    await write(rig, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1"), (b"a", b"3"))
    await compact(rig)
    found = await records(rig)
    assert [(record.offset, record.key, record.value) for record in found] == [
        (1, b"b", b"1"),
        (3, b"c", b"1"),
        (4, b"a", b"3"),
    ]
    await write(rig, (b"b", b"2"), (b"d", b"1"))
    await compact(rig)
    assert [record.offset for record in await records(rig)] == [3, 4, 5, 6]
    assert len(tier(rig)) == 1


@pytest.mark.parametrize("seed", range(6))
async def test_any_history_from_any_offset(brokers: Brokers, seed: int) -> None:
    random = Random(seed)
    rig = await started(brokers, delete_retention_ms=random.choice(["0", "1000", "100000000"]))
    latest: dict[bytes, tuple[int, bytes | None]] = {}
    offset = 0
    for number in range(60):
        key = b"k%d" % random.randrange(12)
        value = None if random.random() < 0.2 else b"%d" % number
        await write(rig, (key, value))
        latest[key] = offset, value
        offset += 1
        if random.random() < 0.15:
            await compact(rig, later_ms=random.choice([100, 5_000]))
    await compact(rig)
    await compact(rig)
    expected = {key: row for key, row in latest.items() if row[1] is not None}
    for start in (0, *(random.randrange(offset) for _ in range(5))):
        found = {}
        for record in await records(rig, start):
            assert record.key is not None
            found[record.key] = record.offset, record.value
        live = {key: row for key, row in found.items() if row[1] is not None}
        assert live == {key: row for key, row in expected.items() if row[0] >= start}
    assert names(brokers, keys.SEGMENTS)
    beside = await brokers.start(**SOON)
    assert await records(beside) == await records(rig)


async def test_young_records_and_clean_partitions_are_left_alone(brokers: Brokers) -> None:
    rig = await started(brokers, min_compaction_lag_ms="1000000000000000")
    await write(rig, (b"a", b"1"), (b"a", b"2"))
    await compact(rig)
    assert len(await records(rig)) == 2
    clean = tier(rig)
    assert await compact(rig) == 0
    assert tier(rig) == clean
