"""The bound on bytes in flight: kept, in order, given back also by those that give up."""

import asyncio
from random import Random

import pytest

from bucketlog.tiered_storage.backends.in_flight import InFlightBytes


class Body:
    """A body that is on its way until it is told to end."""

    def __init__(self, bound: InFlightBytes, size_bytes: int) -> None:
        self.begun, self._end = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run(bound, size_bytes))

    async def _run(self, bound: InFlightBytes, size_bytes: int) -> None:
        async with bound.taken(size_bytes):
            self.begun.set()
            await self._end.wait()

    async def end(self) -> None:
        self._end.set()
        await self.task


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_does_not_fit_waits_in_order() -> None:
    bound = InFlightBytes(100)
    first, second, large, small = (Body(bound, size) for size in (60, 40, 90, 1))
    await turns()
    assert [body.begun.is_set() for body in (first, second, large, small)] == [1, 1, 0, 0]
    await second.end()
    await turns()
    assert not large.begun.is_set()
    assert not small.begun.is_set(), "it came after the large one"
    await first.end()
    await turns()
    assert large.begun.is_set()
    assert small.begun.is_set()
    await large.end()
    await small.end()
    assert bound.taken_bytes == 0


async def test_a_body_beyond_the_bound_goes_alone() -> None:
    bound = InFlightBytes(100)
    small = Body(bound, 1)
    huge = Body(bound, 1_000)
    await turns()
    assert not huge.begun.is_set()
    await small.end()
    await turns()
    assert huge.begun.is_set()
    assert bound.taken_bytes == 100
    await huge.end()


async def test_who_gives_up_gives_back() -> None:
    bound = InFlightBytes(100)
    first, waiting, last = (Body(bound, size) for size in (100, 50, 100))
    await turns()
    waiting.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting.task
    await first.end()
    await turns()
    assert last.begun.is_set()
    last.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await last.task
    assert bound.taken_bytes == 0


async def test_a_turn_that_comes_with_a_cancellation_is_passed_on() -> None:
    bound = InFlightBytes(100)
    async with bound.taken(100):
        waiting, last = Body(bound, 100), Body(bound, 100)
        await turns()
    waiting.task.cancel()  # its turn has come, and it has not run yet
    await turns()
    assert not waiting.begun.is_set()
    assert last.begun.is_set()
    await last.end()
    assert bound.taken_bytes == 0


@pytest.mark.parametrize("seed", range(5))
async def test_never_more_than_the_bound(seed: int) -> None:
    chance = Random(seed)
    bound = InFlightBytes(100)
    seen: list[int] = []

    async def body() -> None:
        async with bound.taken(chance.randrange(1, 150)):
            seen.append(bound.taken_bytes)
            for _ in range(chance.randrange(5)):
                await asyncio.sleep(0)

    tasks = [asyncio.create_task(body()) for _ in range(200)]
    for task in chance.sample(tasks, 50):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert max(seen) <= 100
    assert len(seen) >= 100
    assert bound.taken_bytes == 0
