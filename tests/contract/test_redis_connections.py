"""More calls at once than there are connections to Redis."""

import asyncio

from metadata.sequencer.client import Sequencer
from metadata.sequencer.redis_url import connect_redis

CONNECTIONS = 2
CALLS = 50


async def test_calls_wait_for_a_connection(redis_url: str) -> None:
    redis = connect_redis(redis_url, timeout_ms=10_000, max_connections=CONNECTIONS)
    try:
        sequencer = Sequencer(redis, cluster_id="connections")
        answers = await asyncio.gather(*(sequencer.identity() for _ in range(CALLS)))
        assert len({answer.run_id for answer in answers}) == 1
        assert len(answers) == CALLS
        assert len(await redis.client_list()) <= CONNECTIONS + 1
    finally:
        await redis.aclose()
