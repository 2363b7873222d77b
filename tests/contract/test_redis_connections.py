"""More calls at once than there are connections to Redis, and connections that are gone."""

import asyncio
from typing import Any, cast

import pytest
from redis.asyncio.connection import Connection

from bucketlog.log_format.errors import SequencerUnavailableError
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.redis_url import connect_redis

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


@pytest.mark.parametrize(
    ("message", "raised"),
    [
        (
            "unable to perform operation on <UnixTransport closed=True>; the handler is closed",
            SequencerUnavailableError,
        ),
        ("cannot reuse already awaited coroutine", RuntimeError),
    ],
)
async def test_a_transport_that_uvloop_has_closed_is_a_redis_out_of_reach(
    redis_url: str, monkeypatch: pytest.MonkeyPatch, message: str, raised: type[Exception]
) -> None:
    """Redis was killed: uvloop tells whoever writes to its connection next by a RuntimeError."""
    redis = connect_redis(redis_url, timeout_ms=10_000)
    sequencer = Sequencer(redis, cluster_id="closed")

    async def fail(*_: object) -> None:
        raise RuntimeError(message)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(redis.connection_pool, "call", fail)
            with pytest.raises(raised):
                await sequencer.active_epoch()
        assert await sequencer.active_epoch() is None
    finally:
        await redis.aclose()


async def test_commands_are_packed_as_by_redis_py(redis_url: str) -> None:
    """In compiled code, with the same bytes."""
    redis = connect_redis(redis_url, timeout_ms=10_000)
    try:
        ours = cast(Any, redis.connection_pool).make_connection()
        values = ("EVALSHA", "a" * 40, 2, "key {é}", b"\x00\r\n", 2**63 - 1, -1, "", b"x" * 100_000)
        packed = ours.pack_command(*values)
        assert b"".join(packed) == b"".join(Connection().pack_command(*values))
        assert len(packed) == 1  # redis-py's own packing has further parts for large values
    finally:
        await redis.aclose()
