"""A subscription to channels of Redis that lives as long as a broker."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from redis.asyncio import Redis

LOOK_S = 1.0
"""The time between two looks whether the server misses the subscription."""
HEARD_PAUSE_S = 0.02
"""The shortest time between two announcements that a broker acts on."""


async def hold_channels(
    redis: Redis, channels: Sequence[str], heard: Callable[[], None], is_missed: Callable[[], bool]
) -> None:
    """Subscribe to `channels`. `heard` is called after the subscription begins, and for each
    message. Returns once `is_missed` says that the server does not see the subscription. Raises
    redis-py's errors."""
    pool = cast(Any, redis).connection_pool
    connection = await pool.get_connection()
    try:
        await connection.send_command("SUBSCRIBE", *channels)
        while not is_missed():
            answer = await connection.read_response(timeout=LOOK_S, disconnect_on_error=False)
            if answer is not None:  # whatever its text: only the heartbeat's answer counts
                heard()
                await asyncio.sleep(HEARD_PAUSE_S)
    finally:
        await connection.disconnect(nowait=True)
        await pool.release(connection)
