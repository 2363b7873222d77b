"""Tasks worked on by a few threads; their results in the order of the tasks.

Invariants: what comes out is what one thread would give, in that order. A few tasks are begun
before the reader asks for them, and each holds a bounded number of bytes for the reader. Closing
the generator early ends the threads.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Generic, TypeVar

T = TypeVar("T")
Task = TypeVar("Task")

THREADS_MIN, THREADS_MAX = 2, 8
"""Bounds of the default. The interpreter's lock keeps more threads waiting."""


def decoding_threads() -> int:
    """Return the number of processors that this process may use, within bounds."""
    has_affinity = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(max(processors, THREADS_MIN), THREADS_MAX)


class _Channel(Generic[T]):
    """One thread fills it, another drains it. An item fits if the channel is empty, or its bytes
    fit in `room_bytes`."""

    def __init__(self, room_bytes: int, size_of: Callable[[T], int]) -> None:
        self._room_bytes = room_bytes
        self._size_of = size_of
        self._items: deque[T] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._filled = False
        self._closed = False

    def fill(self, items: Generator[T, None, None]) -> None:
        """Put all of `items`, or those before it is closed."""
        try:
            with closing(items):
                for item in items:
                    if not self._put(item):
                        return
        finally:
            with self._changed:
                self._filled = True
                self._changed.notify_all()

    def _put(self, item: T) -> bool:
        size = self._size_of(item)
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or not self._items or self._bytes + size <= self._room_bytes
            )
            if not self._closed:
                self._items.append(item)
                self._bytes += size
                self._changed.notify_all()
            return not self._closed

    def drain(self) -> Iterator[T]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._filled)
                if not self._items:
                    return
                item = self._items.popleft()
                self._bytes -= self._size_of(item)
                self._changed.notify_all()
            yield item
            del item

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def in_order(
    tasks: Iterable[Task],
    work: Callable[[Task], Generator[T, None, None]],
    size_of: Callable[[T], int],
    *,
    threads: int,
    tasks_ahead: int,
    room_bytes: int,
) -> Generator[T, None, None]:
    """What `work` gives for each of `tasks`, one after another. `threads` tasks are worked on at
    once. `tasks_ahead` tasks are taken from `tasks` before the reader has the results of the first
    one. Each task holds `room_bytes` and one item for the reader.

    Raises what `work` and `tasks` raise, after all that comes before it.
    """
    begun: deque[tuple[_Channel[T], Future[None]]] = deque()

    def first() -> Generator[T, None, None]:
        channel, done = begun[0]
        yield from channel.drain()
        begun.popleft()
        if done.exception() is not None:
            close()
        done.result()

    def rest() -> Generator[T, None, None]:
        while begun:
            yield from first()

    def close() -> None:
        for channel, _ in begun:
            channel.close()
        begun.clear()

    with ThreadPoolExecutor(threads, thread_name_prefix="bucketlog-replay") as pool:
        try:
            try:
                for task in tasks:
                    channel: _Channel[T] = _Channel(room_bytes, size_of)
                    begun.append((channel, pool.submit(_fill, channel, work, task)))
                    if len(begun) == tasks_ahead:
                        yield from first()
            except Exception:
                yield from rest()  # nothing is left if a task failed
                raise
            yield from rest()
        finally:
            close()


def each_made(make: Callable[[T], T], items: Generator[T, None, None]) -> Generator[T, None, None]:
    """`make` of each item. Closing it closes `items`."""
    with closing(items):
        for item in items:
            yield make(item)


def _fill(
    channel: _Channel[T], work: Callable[[Task], Generator[T, None, None]], task: Task
) -> None:
    channel.fill(work(task))
