"""A closed client of Redis has no connection, and opens none."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from bucketlog.log_format.errors import SequencerUnavailableError
from bucketlog.metadata.sequencer.redis_server import ScriptRunner
from bucketlog.metadata.sequencer.redis_url import connect_redis
from tests.rigs.stand_in_redis import StandInRedis

LONG_MS = 600_000


class Silent(StandInRedis):
    """A server that accepts connections and never answers."""

    def __init__(self) -> None:
        super().__init__(holds=True)

    def caller(self, url: str) -> ScriptRunner:
        """Calls this server; `{}` in the URL is its address."""
        client = connect_redis(url.format(f"127.0.0.1:{self.port}"), timeout_ms=LONG_MS)
        return ScriptRunner(client, cluster_id="c", shard=0)


@pytest.fixture
async def silent() -> AsyncIterator[Silent]:
    server = Silent()
    await server.start()
    yield server
    server.stop()


async def test_no_call_opens_a_connection_of_a_closed_client(silent: Silent) -> None:
    runner = silent.caller("redis://{}")
    call = asyncio.create_task(runner.identity())
    await silent.asked.acquire()
    await runner.close()
    with pytest.raises(SequencerUnavailableError):
        await call
    with pytest.raises(SequencerUnavailableError, match="the client is closed"):
        await runner.identity()
    await silent.left.acquire()
    assert silent.accepted == 1


async def test_a_connection_that_opens_while_its_client_is_closed_is_closed(silent: Silent) -> None:
    runner = silent.caller("redis://{}")
    call = asyncio.create_task(runner.identity())
    while not cast(Any, runner._redis.connection_pool)._in_use_connections:  # noqa: ASYNC110 -- the pool has no event
        await asyncio.sleep(0)
    await runner.close()
    with pytest.raises(SequencerUnavailableError, match="the client is closed"):
        await call
    await silent.left.acquire()


async def test_a_closed_client_asks_no_sentinel(silent: Silent) -> None:
    runner = silent.caller("redis+sentinel://{}/service")
    call = asyncio.create_task(runner.identity())
    await silent.asked.acquire()
    await runner.close()
    with pytest.raises(SequencerUnavailableError, match="the client is closed"):
        await call
    with pytest.raises(SequencerUnavailableError, match="the client is closed"):
        await runner.identity()
    await silent.left.acquire()
    assert silent.accepted == 1
