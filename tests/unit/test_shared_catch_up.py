"""One catching up for many: shared, and never one that began too early."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from bucketlog.stateless_broker.fetch.shared_catch_up import SharedCatchUp
from tests.rigs.broker_rig import until


class Feed:
    """Each call waits for its turn to be let go."""

    def __init__(self) -> None:
        self.calls: list[asyncio.Future[bool]] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.catch_up = SharedCatchUp(self._catch_up, self._spawn)

    def _spawn(self, work: Coroutine[Any, Any, None], _: str) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)

    async def _catch_up(self) -> bool:
        self.calls.append(asyncio.get_running_loop().create_future())
        return await self.calls[-1]


async def asked(feed: Feed, count: int) -> list[asyncio.Task[bool]]:
    asking = [asyncio.create_task(feed.catch_up()) for _ in range(count)]
    await asyncio.sleep(0)
    return asking


async def test_those_who_ask_meanwhile_share_the_next_one() -> None:
    feed = Feed()
    first = await asked(feed, 1)
    await until(lambda: len(feed.calls) == 1)
    later = await asked(feed, 5)
    feed.calls[0].set_result(True)
    assert await first[0]
    await until(lambda: len(feed.calls) == 2)
    assert not any(task.done() for task in later), "what had begun before they asked is not theirs"
    feed.calls[1].set_result(False)
    assert await asyncio.gather(*later) == [False] * 5
    assert len(feed.calls) == 2


async def test_one_who_gives_up_takes_nothing_from_the_others() -> None:
    feed = Feed()
    first, second = await asked(feed, 2)
    await until(lambda: len(feed.calls) == 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    feed.calls[0].set_result(True)
    assert await second


async def test_an_end_in_the_middle_is_told_as_not_known() -> None:
    feed = Feed()
    (asking,) = await asked(feed, 1)
    await until(lambda: len(feed.calls) == 1)
    for task in feed.tasks:
        task.cancel()
    assert await asking is False
