"""Writes of commands to Redis make no tasks, and raise redis-py's errors."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bucketlog.metadata.sequencer.redis_url import connect_redis

LARGER_THAN_SOCKETS = b"x" * (64 << 20)


@asynccontextmanager
async def connected(*, answers: bool) -> AsyncIterator[Any]:
    """Yield a connection to a server that answers each read with PONG, or that never reads."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while answers and await reader.read(1 << 16):
            writer.write(b"+PONG\r\n")

    listening = socket.create_server(("127.0.0.1", 0))
    running = await asyncio.start_server(serve, sock=listening, limit=1)
    port = listening.getsockname()[1]
    redis = connect_redis(f"redis://127.0.0.1:{port}", timeout_ms=60_000)
    connection = cast(Any, redis.connection_pool).make_connection()
    await connection.connect()
    try:
        yield connection
    finally:
        await connection.disconnect(nowait=True)
        await redis.aclose()
        running.close()
        for writer in writers:
            writer.transport.abort()
        for _ in range(2):  # the transports close their sockets
            await asyncio.sleep(0)


async def answer(connection: Any) -> bytes:
    await connection.send_command("PING")
    found: bytes = await connection.read_response()
    return found


async def test_a_command_makes_no_task() -> None:
    made: list[str] = []

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **values: Any) -> Any:
        made.append(work.__qualname__)
        return asyncio.Task(work, loop=loop, **values)

    async with connected(answers=True) as connection:
        assert await answer(connection) == b"PONG"
        asyncio.get_running_loop().set_task_factory(cast(Any, factory))
        assert await answer(connection) == b"PONG"
        asyncio.get_running_loop().set_task_factory(None)
    assert made == []


async def test_a_write_that_does_not_end_closes_the_connection() -> None:
    async with connected(answers=False) as connection:
        connection.socket_timeout = 0.05
        with pytest.raises(RedisTimeoutError, match="Timeout writing to socket"):
            await connection.send_command("SET", "k", LARGER_THAN_SOCKETS)
        assert not connection.is_connected


async def test_a_cancelled_write_closes_the_connection() -> None:
    async with connected(answers=False) as connection:
        write = asyncio.create_task(connection.send_command("SET", "k", LARGER_THAN_SOCKETS))
        await asyncio.sleep(0)
        write.cancel()
        with pytest.raises(asyncio.CancelledError):
            await write
        assert not connection.is_connected


async def test_a_connection_that_broke_is_an_error() -> None:
    async with connected(answers=True) as connection:
        connection._writer.transport.abort()
        with pytest.raises(RedisConnectionError):
            await answer(connection)
        assert not connection.is_connected


async def test_a_command_that_is_cancelled_at_any_time_ends() -> None:
    """If a command lost its cancellation, its timeout would never end, and other callers would
    wait behind the command."""
    async with connected(answers=True) as connection:
        for rounds in range(12):
            if not connection.is_connected:
                await connection.connect()
            command = asyncio.create_task(answer(connection))
            for _ in range(rounds):
                await asyncio.sleep(0)
            if command.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await command
