"""Mutes of connections, and the time that requests keep the event loop busy."""

import asyncio

import pytest

from bucketlog.stateless_broker.network.muting import Mute
from bucketlog.stateless_broker.network.work_time import WorkTime, timed
from tests.rigs.patience import Deadline, let_pass_async


async def test_a_mute_ends_after_its_longest_time() -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    mute = Mute(loop.time, ended.set)
    assert (mute.is_on, mute.left_ms) == (False, 0)
    deadline = Deadline("", 0.119)
    mute.lengthen(60)
    mute.lengthen(20)
    mute.lengthen(120)
    assert mute.is_on
    assert 60 < mute.left_ms <= 120
    await ended.wait()
    assert deadline.is_over
    assert (mute.is_on, mute.left_ms) == (False, 0)


async def test_a_closed_connection_is_not_woken() -> None:
    mute = Mute(asyncio.get_running_loop().time, lambda: pytest.fail("woken"))
    mute.lengthen(1)
    mute.drop()
    await let_pass_async(0.02)


class Clock:
    ns = 0

    def now_ns(self) -> int:
        return self.ns


async def test_only_steps_count() -> None:
    clock = Clock()
    work = WorkTime(clock.now_ns)
    clock.ns += 3
    work.pause()
    clock.ns += 1_000
    seen: list[int] = []

    async def serve() -> None:
        clock.ns += 10
        await asyncio.sleep(0)
        clock.ns += 20
        seen.append(work.take_ns())
        clock.ns += 40

    async def wait() -> None:
        clock.ns += 1_000

    await asyncio.gather(timed(serve(), work), wait())
    assert seen == [33]
    assert work.take_ns() == 40


async def test_a_cancellation_reaches_the_work() -> None:
    ended = asyncio.Event()

    async def serve() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(timed(serve(), WorkTime(Clock().now_ns)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_an_error_reaches_the_caller() -> None:
    async def serve() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await timed(serve(), WorkTime(Clock().now_ns))
