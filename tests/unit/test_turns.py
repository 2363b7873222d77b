"""Long work in slices: other events are handled between slices, and long tasks alternate."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise

from bucketlog.stateless_broker.network.turns import SLICE_S, SLICE_UNITS, Turns


def steps(name: str, count: int, done: list[str]) -> Iterator[int]:
    for _ in range(count):
        done.append(name)
        yield SLICE_UNITS


async def test_work_of_less_than_a_slice_waits_for_nobody() -> None:
    turns, done = Turns(), list[str]()
    long = asyncio.create_task(turns.work(steps("long", 50, done)))
    await asyncio.sleep(0)
    await turns.work(iter([SLICE_UNITS - 1]))
    assert done == ["long"]
    long.cancel()


async def test_events_have_their_turn_between_two_slices() -> None:
    turns, done = Turns(), list[str]()

    async def bystander() -> None:
        while len(done) < 20:
            seen.append(len(done))
            await asyncio.sleep(0)

    seen: list[int] = []
    await asyncio.gather(turns.work(steps("long", 20, done)), bystander())
    assert max(after - before for before, after in pairwise(seen)) <= 1


async def test_all_that_is_long_takes_turns_and_one_has_a_slice_between_two() -> None:
    turns, done = Turns(), list[str]()
    works = [turns.work(steps(name, 5, done)) for name in "abcd"]
    counts = list[int]()

    async def bystander() -> None:
        while len(done) < 20:
            counts.append(len(done))
            await asyncio.sleep(0)

    await asyncio.gather(*works, bystander())
    assert sorted(done[:4]) == list("abcd")
    assert all(sorted(done[at : at + 4]) == list("abcd") for at in range(0, 20, 4))
    assert max(after - before for before, after in pairwise(counts[1:])) <= 1


async def test_a_slice_ends_by_the_clock_too() -> None:
    now_s, done = 0.0, list[str]()
    turns = Turns(lambda: now_s)

    def slow_steps() -> Iterator[int]:
        nonlocal now_s
        for _ in range(8):
            done.append("slow")
            now_s += SLICE_S / 2
            yield 1

    slow = asyncio.create_task(turns.work(slow_steps()))
    seen = list[int]()
    while not slow.done():
        seen.append(len(done))
        await asyncio.sleep(0)
    assert max(after - before for before, after in pairwise(seen)) == 2
    assert len(done) == 8


async def test_work_that_is_given_up_leaves_its_place() -> None:
    turns, done = Turns(), list[str]()
    given_up = [asyncio.create_task(turns.work(steps("x", 50, []))) for _ in range(10)]
    other = asyncio.create_task(turns.work(steps("y", 5, done)))
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    await other
    assert done == ["y"] * 5
