"""The pool of connections to Redis: reused, shared, and replaced once they are of no use."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from bucketlog.metadata.sequencer.redis_server import PrimaryPool
from tests.rigs.stand_in_redis import StandInRedis

CONNECTIONS_MAX = 2
TIMEOUT_S = 600.0


@pytest.fixture
async def server() -> AsyncIterator[StandInRedis]:
    found = StandInRedis()
    await found.start()
    yield found
    found.stop()


@pytest.fixture
async def pool(server: StandInRedis) -> AsyncIterator[PrimaryPool]:
    found = PrimaryPool(
        max_connections=CONNECTIONS_MAX,
        timeout=TIMEOUT_S,
        host="127.0.0.1",
        port=server.port,
        protocol=2,
        driver_info=None,
    )
    yield found
    await found.aclose()


async def test_calls_reuse_a_connection(server: StandInRedis, pool: PrimaryPool) -> None:
    for _ in range(5):
        assert await pool.call("PING") == b"PONG"
    assert server.accepted == 1


async def test_calls_share_the_connections_that_there_may_be(
    server: StandInRedis, pool: PrimaryPool
) -> None:
    server.hold()
    calls = [asyncio.create_task(pool.call("PING")) for _ in range(20)]
    for _ in range(CONNECTIONS_MAX):
        await server.asked.acquire()
    server.answer()
    assert await asyncio.gather(*calls) == [b"PONG"] * 20
    assert server.accepted == CONNECTIONS_MAX


async def test_a_call_that_waits_gets_the_connection_of_a_cancelled_call(
    server: StandInRedis, pool: PrimaryPool
) -> None:
    await pool.call("PING")
    server.hold()
    first = [asyncio.create_task(pool.call("PING")) for _ in range(CONNECTIONS_MAX)]
    for _ in range(1 + CONNECTIONS_MAX):
        await server.asked.acquire()
    waiting = asyncio.create_task(pool.call("PING"))
    await asyncio.sleep(0)
    first[0].cancel()
    await server.asked.acquire()  # in a new connection: the old one still expects an answer
    assert server.accepted == CONNECTIONS_MAX + 1
    server.answer()
    assert await asyncio.gather(*first[1:], waiting) == [b"PONG"] * CONNECTIONS_MAX


async def test_a_connection_that_the_server_has_closed_is_not_used(
    server: StandInRedis, pool: PrimaryPool
) -> None:
    await pool.call("PING")
    server.close_connections()
    connection = await pool.get_connection()
    while not await connection.can_read():  # noqa: ASYNC110 -- the end of a stream has no event
        await asyncio.sleep(0)
    await pool.release(connection)
    assert await pool.call("PING") == b"PONG"
    assert server.accepted == 2


async def test_no_connection_to_a_former_primary_is_used(
    server: StandInRedis, pool: PrimaryPool
) -> None:
    await pool.call("PING")
    pool.leave()
    assert await pool.call("PING") == b"PONG"
    assert server.accepted == 2
    await server.left.acquire()


async def test_a_closed_pool_closes_connections_that_wait(
    server: StandInRedis, pool: PrimaryPool
) -> None:
    await pool.call("PING")
    await pool.aclose()
    await server.left.acquire()
    with pytest.raises(RedisConnectionError, match="the client is closed"):
        await pool.call("PING")
    assert server.accepted == 1
