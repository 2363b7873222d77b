"""Asking for many things of one request, a few at a time: a request may name very many."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 64


async def each_in_turn(
    ask: Callable[[T], Awaitable[R]], things: Sequence[T], *, at_once: int = AT_ONCE
) -> list[R]:
    """The answers, in the order of the things."""
    answers: list[R] = []
    for start in range(0, len(things), at_once):
        answers += await asyncio.gather(*map(ask, things[start : start + at_once]))
    return answers
