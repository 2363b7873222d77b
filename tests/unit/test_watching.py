"""Waits for changed partitions: who is woken, and how many timers it takes."""

import asyncio
from collections.abc import Callable

import pytest

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.stateless_broker.fetch.watching import TICK_S, Watchers
from tests.models.indexes import topic_id

MANY = 100
A, B = (TopicIdPartition(topic_id(1), number) for number in range(2))


class Timers:
    """The timers of the event loop, which a test lets expire."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set: list[tuple[float, Callable[[], None]]] = []
        self.now_s = 50.0
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now_s)
        monkeypatch.setattr(
            loop,
            "call_at",
            lambda at_s, call, *arguments: self.set.append((at_s, lambda: call(*arguments))),
        )

    def expire(self) -> None:
        ((self.now_s, call),) = self.set
        self.set.clear()
        call()


async def started(*waits: asyncio.Task[bool]) -> None:
    for _ in waits:
        await asyncio.sleep(0)


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


async def test_waits_of_one_tick_share_a_timer(timers: Timers) -> None:
    watchers = Watchers()
    wait_s = 1.5 * TICK_S
    waits = [asyncio.create_task(watchers.new_rows().wait(wait_s)) for _ in range(MANY)]
    await started(*waits)
    assert len(timers.set) == 1
    before_s = timers.now_s
    timers.expire()
    assert wait_s <= timers.now_s - before_s <= wait_s + TICK_S
    assert await asyncio.gather(*waits) == [False] * MANY


async def test_a_change_wakes_whom_it_concerns(timers: Timers) -> None:
    watchers = Watchers()
    both, second = watchers.new_rows(), watchers.new_rows()
    watchers.add([(0, A), (1, B)], both)
    watchers.add([(0, B)], second)
    waits = [asyncio.create_task(each.wait(1.0)) for each in (both, second)]
    await started(*waits)
    watchers.notify([A])
    assert await waits[0]
    assert both.take() == {0}
    assert not waits[1].done()
    watchers.notify([B])
    assert await waits[1]
    assert both.take() == {1}
    assert second.take() == {0}


async def test_a_change_before_the_wait_is_not_lost(timers: Timers) -> None:
    rows = Watchers().new_rows()
    rows.wake(3)
    assert await rows.wait(1.0)
    assert not timers.set
    assert rows.take() == {3}


async def test_a_later_wait_outlives_an_earlier_one(timers: Timers) -> None:
    """Of a session whose requests overlap."""
    rows = Watchers().new_rows()
    first = asyncio.create_task(rows.wait(1.0))
    await started(first)
    rows.end_wait()
    second = asyncio.create_task(rows.wait(1.0))
    assert not await first
    await started(second)
    timers.expire()
    assert not await second


async def test_a_cancelled_wait_leaves_nothing(timers: Timers) -> None:
    rows = Watchers().new_rows()
    wait = asyncio.create_task(rows.wait(1.0))
    await started(wait)
    wait.cancel()
    await asyncio.wait({wait})
    timers.expire()
    rows.wake(1)
    assert rows.take() == {1}
