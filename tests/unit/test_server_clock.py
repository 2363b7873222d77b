"""The clock that scripts are given: Redis' time, asked for now and then."""

import asyncio

import pytest

from bucketlog.metadata.sequencer.redis_server import ServerClock


class Server:
    def __init__(self) -> None:
        self.ms = 5_000
        self.asked = 0

    async def time(self) -> tuple[int, int]:
        self.asked += 1
        return self.ms // 1000, self.ms % 1000 * 1000


async def test_it_is_asked_once_and_time_passes_by_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server()
    clock = ServerClock(server.time)
    loop_s = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: loop_s)
    assert await clock.now_ms() == 5_000
    server.ms = 1_000_000
    loop_s += 0.25
    assert await clock.now_ms() == 5_250
    assert server.asked == 1


async def test_whoever_asks_anew_gets_what_the_server_says_then() -> None:
    """Another server may be another time, an earlier one, too."""
    server = Server()
    clock = ServerClock(server.time)
    assert await clock.asked_ms() == 5_000
    server.ms = 2_345
    assert await clock.asked_ms() == 2_345
    assert 2_345 <= await clock.now_ms() < 5_000
    assert server.asked == 2
