"""A broker whose lifeline has ended is dead before its time-out, on a real server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import ormsgpack
import pytest
from redis import Redis as SyncRedis

from bucketlog.log_format.errors import SequencerUnavailableError
from bucketlog.log_format.model import WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.live_brokers import BrokerAddress, LiveBrokers
from bucketlog.metadata.sequencer.redis_url import connect_redis
from bucketlog.metadata.sequencer.requests import OverdueReason, OverdueWriter
from tests.rigs.broker_rig import until
from tests.rigs.patience import Deadline
from tests.servers.sequencing import Sequencing

GRACE_MS = 50
SESSION_MS = 100_000
"""Nobody is silent for so long here."""


def nothing() -> None:
    pass


async def beat(
    fresh: Sequencing,
    incarnation: str,
    node: int | None = None,
    writer: WriterId | None = None,
    *,
    grace_ms: int = GRACE_MS,
    sequencer: Sequencer | None = None,
) -> LiveBrokers:
    answer = await (sequencer or fresh.sequencer).heartbeat(
        incarnation,
        node_id=node,
        address=BrokerAddress("h", 1, ""),
        writer=writer,
        session_timeout_ms=SESSION_MS,
        role_timeout_ms=SESSION_MS,
        serves=True,
        lifeline_grace_ms=grace_ms,
    )
    assert isinstance(answer, LiveBrokers), answer
    return answer


def names(answer: LiveBrokers) -> list[str]:
    return [member.incarnation for member in answer.members]


@asynccontextmanager
async def lifeline(
    fresh: Sequencing, incarnation: str, heard: Callable[[], None] = nothing
) -> AsyncIterator[None]:
    """The server sees it in the block, and not after it."""
    begun = asyncio.Event()

    def note() -> None:
        begun.set()
        heard()

    holding = asyncio.create_task(fresh.sequencer.hold_lifeline(incarnation, note, lambda: False))
    await begun.wait()
    yield
    holding.cancel()
    await asyncio.wait([holding])
    await _closed(fresh, incarnation)


async def _closed(fresh: Sequencing, incarnation: str) -> None:
    channel = f"{fresh.key('brokers')}:{incarnation}"
    deadline = Deadline("the server does not close the lifeline")
    while dict(await fresh.redis.pubsub_numsub(channel)).popitem()[1]:
        await deadline.pause_async()


async def with_lifeline_lost(fresh: Sequencing, writer: WriterId | None = None) -> None:
    """Broker `a`, with node id 0."""
    async with lifeline(fresh, "a"):
        assert (await beat(fresh, "a", 0, writer)).has_lifeline


async def test_who_lost_its_lifeline_is_dead_after_the_grace(sequencing: Sequencing) -> None:
    await with_lifeline_lost(sequencing, sequencing.a)
    first = await beat(sequencing, "b", 1)
    assert names(first) == ["a", "b"]
    assert first.look_again_ms == GRACE_MS
    sequencing.now_ms += GRACE_MS - 1
    again = await beat(sequencing, "b", 1)
    assert names(again) == ["a", "b"]
    assert again.look_again_ms == 1
    assert await sequencing.sequencer.overdue(1, silent_ms=10_000, pending_ms=10_000) == []
    sequencing.now_ms += 1
    last = await beat(sequencing, "b", 1)
    assert names(last) == ["b"]
    assert last.look_again_ms is None
    overdue = await sequencing.sequencer.overdue(1, silent_ms=10_000, pending_ms=10_000)
    assert overdue == [OverdueWriter(sequencing.a, 1, OverdueReason.SILENT)]
    assert names(await beat(sequencing, "successor", 0)) == ["successor", "b"]


async def test_whoever_starts_again_with_its_node_id_waits_for_the_grace_alone(
    fresh: Sequencing,
) -> None:
    await with_lifeline_lost(fresh)
    with pytest.raises(AssertionError, match="NodeIdConflict"):
        await beat(fresh, "successor", 0)
    fresh.now_ms += GRACE_MS
    assert names(await beat(fresh, "successor", 0)) == ["successor"]


async def test_a_heartbeat_after_the_end_of_the_lifeline_is_life(fresh: Sequencing) -> None:
    await with_lifeline_lost(fresh)
    await beat(fresh, "b", 1)
    fresh.now_ms += GRACE_MS - 1
    assert not (await beat(fresh, "a", 0)).has_lifeline
    fresh.now_ms += 10 * GRACE_MS
    answer = await beat(fresh, "b", 1)
    assert names(answer) == ["a", "b"]
    assert answer.look_again_ms is None


async def test_a_lifeline_that_came_back_is_life(fresh: Sequencing) -> None:
    await with_lifeline_lost(fresh)
    await beat(fresh, "b", 1)
    async with lifeline(fresh, "a"):
        fresh.now_ms += 10 * GRACE_MS
        assert (await beat(fresh, "b", 1)).look_again_ms is None
    assert (await beat(fresh, "b", 1)).look_again_ms == GRACE_MS


async def test_who_never_had_a_lifeline_is_not_missed(fresh: Sequencing) -> None:
    await beat(fresh, "a", 0)
    for _ in range(3):
        assert names(await beat(fresh, "b", 1)) == ["a", "b"]
        fresh.now_ms += 10 * GRACE_MS


async def test_a_lifeline_at_another_server_is_not_missed(fresh: Sequencing) -> None:
    """A replica that became the primary knows of brokers whose connections it never had."""
    await with_lifeline_lost(fresh)
    record = (await fresh.records("brokers"))["0"]
    packed = ormsgpack.packb(record | {"lifeline": "0" * 40})
    await fresh.redis.hset(fresh.key("brokers"), "0", packed)
    for _ in range(3):
        assert names(await beat(fresh, "b", 1)) == ["a", "b"]
        fresh.now_ms += 10 * GRACE_MS


async def test_without_a_grace_only_the_time_out_counts(fresh: Sequencing) -> None:
    await with_lifeline_lost(fresh)
    for _ in range(3):
        assert names(await beat(fresh, "b", 1, grace_ms=0)) == ["a", "b"]
        fresh.now_ms += 10 * GRACE_MS


@pytest.mark.parametrize("missed", ["soon", 2**60, -1, None, [1]])
async def test_a_damaged_record_does_no_harm(fresh: Sequencing, missed: object) -> None:
    await with_lifeline_lost(fresh)
    record = (await fresh.records("brokers"))["0"]
    packed = ormsgpack.packb(record | {"missed": missed, "writer": 7})
    await fresh.redis.hset(fresh.key("brokers"), "0", packed)
    await beat(fresh, "b", 1)
    fresh.now_ms += GRACE_MS
    assert names(await beat(fresh, "b", 1)) == ["b"]


async def test_brokers_are_told_of_changes_alone(fresh: Sequencing) -> None:
    told: list[str] = []
    async with lifeline(fresh, "a", lambda: told.append("a")):
        begun = len(told)
        await beat(fresh, "b", 1)
        await until(lambda: len(told) > begun)
        joined = len(told)
        await beat(fresh, "b", 1)
        await fresh.sequencer.leave(1, "another")
        await fresh.redis.publish(fresh.key("brokers"), "the last of these")
        await until(lambda: len(told) > joined)
        assert len(told) == joined + 1
        await fresh.sequencer.leave(1, "b")
        await until(lambda: len(told) > joined + 1)


async def test_a_server_that_closes_the_lifeline_ends_it(fresh: Sequencing) -> None:
    begun = asyncio.Event()
    holding = asyncio.create_task(fresh.sequencer.hold_lifeline("a", begun.set, lambda: False))
    await begun.wait()
    await fresh.redis.client_kill_filter(_type="pubsub")
    with pytest.raises(SequencerUnavailableError):
        await holding


async def test_who_may_not_subscribe_misses_nobody(fresh: Sequencing, redis_url: str) -> None:
    """Brokers work with the permissions that earlier versions needed."""
    with SyncRedis.from_url(redis_url) as redis:
        login = "on", ">secret", "~bucketlog:*", "+@all", "-@pubsub"
        redis.execute_command("ACL", "SETUSER", "earlier", "reset", *login)
    redis_client = connect_redis(
        redis_url.replace("unix://", "unix://earlier:secret@"), timeout_ms=5000
    )
    earlier = Sequencer(redis_client, cluster_id=fresh.cluster_id, now_ms=lambda: fresh.now_ms)
    earlier.note_start_complete()
    try:
        with pytest.raises(SequencerUnavailableError, match="permit"):
            await earlier.hold_lifeline("b", nothing, lambda: False)
        await with_lifeline_lost(fresh)
        for _ in range(3):
            answer = await beat(fresh, "b", 1, sequencer=earlier)
            assert names(answer) == ["a", "b"]
            fresh.now_ms += 10 * GRACE_MS
        await earlier.leave(1, "b")
    finally:
        await earlier.close()
