"""One catching up for many: shared, and never one that began too early."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from bucketlog.stateless_broker.fetch.shared_catch_up import INTERVAL_S, SharedCatchUp
from bucketlog.stateless_broker.supervision import Supervisor
from tests.rigs.broker_rig import until
from tests.rigs.patience import PATIENCE_S


class Feed:
    """Each call waits for its turn to be let go."""

    def __init__(self) -> None:
        self.calls: list[asyncio.Future[bool]] = []
        self.supervisor = Supervisor()
        self.failures: list[Exception] = []
        self.catch_up = SharedCatchUp(self._catch_up, self._spawn)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        self.task = self.supervisor.spawn(work, name, on_failure=self.failures.append)
        return self.task

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


async def test_an_interval_lies_between_two(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noting(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    feed = Feed()
    now_s = 100.0
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", lambda: now_s)
    monkeypatch.setattr("bucketlog.stateless_broker.fetch.shared_catch_up.asyncio.sleep", noting)
    for elapsed_s, paused_s in ((0.0, 0.0), (INTERVAL_S / 4, 0.75 * INTERVAL_S), (1.0, 0.0)):
        now_s += elapsed_s
        calls = len(feed.calls)
        pauses.clear()
        (asking,) = await asked(feed, 1)
        while len(feed.calls) == calls:
            await sleep(0)
        assert [pause for pause in pauses if pause] == pytest.approx([paused_s] if paused_s else [])
        feed.calls[-1].set_result(True)
        assert await asking


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
    await feed.supervisor.cancel_all()
    assert await asking is False


async def test_an_end_before_the_first_step_is_told_as_not_known() -> None:
    feed = Feed()
    asking = await asked(feed, 2)
    feed.task.cancel()
    await asyncio.wait({feed.task})
    assert not feed.calls
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*asking) == [False, False]
    await works(feed)


async def test_an_end_before_its_turn_is_told_as_not_known() -> None:
    feed = Feed()
    (first,) = await asked(feed, 1)
    await until(lambda: len(feed.calls) == 1)
    (second,) = await asked(feed, 1)
    await asyncio.sleep(0)
    await feed.supervisor.cancel_all()
    async with asyncio.timeout(PATIENCE_S):
        assert [await first, await second] == [False, False]
    await works(feed)


async def test_a_failure_is_told_as_not_known() -> None:
    feed = Feed()
    (asking,) = await asked(feed, 1)
    await until(lambda: len(feed.calls) == 1)
    feed.calls[0].set_exception(ValueError("damaged"))
    assert await asking is False
    assert [str(failure) for failure in feed.failures] == ["damaged"]
    await works(feed)


async def works(feed: Feed) -> None:
    """Whoever asks next gets the result of a new one."""
    calls = len(feed.calls)
    (later,) = await asked(feed, 1)
    await until(lambda: len(feed.calls) == calls + 1)
    feed.calls[-1].set_result(True)
    assert await later
