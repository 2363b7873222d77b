"""`segment gc --dry-run` beside brokers: what it lists as due now is what their next round deletes;
what it lists for later is what a round deletes once it is old enough."""

import asyncio
import logging

import pytest

from bucketlog.inspect.garbage import GarbageReport, find_garbage
from bucketlog.tiered_storage.deletion import GarbageKind
from tests.integration.test_compaction import SOON, compact, everything, write
from tests.integration.test_deletion import (
    HOUR_MS,
    Clock,
    delete_topic,
    second_epoch,
    write_two,
)
from tests.rigs.broker_rig import Rig, create_topic
from tests.rigs.several_brokers import Brokers
from tests.servers.own_valkey import OwnValkey

AGE_MS = 24 * HOUR_MS


@pytest.fixture
def clock(brokers: Brokers) -> Clock:
    return Clock(brokers)


def found(brokers: Brokers) -> GarbageReport:
    return find_garbage(brokers.memory, safety_age_ms=AGE_MS)


def due(brokers: Brokers, when: str) -> dict[str, GarbageKind]:
    return {one.key: one.kind for one in found(brokers).garbage if one.due == when}


def there(brokers: Brokers) -> set[str]:
    return {info.key for info in brokers.memory.list("")}


async def round_deletes(rig: Rig, brokers: Brokers) -> set[str]:
    before = there(brokers)
    await rig.duties.deleter.round()
    return before - there(brokers)


async def test_chains_of_an_earlier_epoch(
    valkey: OwnValkey, brokers: Brokers, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bucketlog.stateless_broker.duties.deletion")
    rig, chain = await second_epoch(valkey, brokers)
    assert found(brokers).garbage == [], "no checkpoint covers anything"
    await delete_topic(rig, "t")
    await create_topic(rig, "t", 4)
    await write_two(rig)
    assert due(brokers, "now") == {}
    later = due(brokers, "later")
    assert {kind for key, kind in later.items() if key.startswith(chain)} == {
        GarbageKind.SEALS,
        GarbageKind.SEGMENTS,
    }
    assert list(later.values()).count(GarbageKind.REGISTRATIONS) == 1
    assert not await round_deletes(rig, brokers), "it lays the floor"
    clock.pass_hours(23)
    await write_two(rig)
    assert due(brokers, "now") == {}
    clock.pass_hours(1)
    await write_two(rig)
    now = due(brokers, "now")
    assert later.keys() <= now.keys()
    assert await round_deletes(rig, brokers) == now.keys()
    counted = rig.epochs.work._broker.counts.upkeep.deleted_by_kind
    for kind in (GarbageKind.SEALS, GarbageKind.SEGMENTS, GarbageKind.REGISTRATIONS):
        assert counted[kind] == list(now.values()).count(kind) > 0
        assert any(
            record.message.endswith(f": {counted[kind]} {kind}") for record in caplog.records
        )
    assert due(brokers, "now") == {}


async def test_tiers(brokers: Brokers, clock: Clock) -> None:
    a, b = await brokers.pair(**SOON)
    await write(a)
    await asyncio.gather(compact(a), compact(b))
    for _ in range(9):
        await write(a, 1)
        await compact(a)
    before = await everything(a)
    await write(a, 1)
    assert await a.checkpointer.write() is not None
    later = due(brokers, "later")
    assert list(later.values()).count(GarbageKind.ORPHANS) == 4
    assert {GarbageKind.TIER_OBJECTS, GarbageKind.SEGMENTS} <= set(later.values())
    deleted: set[str] = set()
    for _ in range(4):
        for _ in range(2):
            await write(a, 1)
            assert await a.checkpointer.write() is not None
        now = due(brokers, "now")
        gone = await round_deletes(a, brokers)
        assert gone == now.keys()
        deleted |= gone
        clock.pass_hours(25)
    assert later.keys() <= deleted
    assert not {GarbageKind.TIER_OBJECTS, GarbageKind.ORPHANS} & set(due(brokers, "later").values())
    assert [rows[: len(before[0])] for rows in await everything(a)] == before


async def test_a_safety_age_of_0_deletes_nothing(brokers: Brokers, clock: Clock) -> None:
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    await write_two(rig)
    found(brokers)
    assert find_garbage(brokers.memory, safety_age_ms=0).garbage == []
