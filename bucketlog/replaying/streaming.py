"""Tasks read by a few threads, handed out in the plan's order.

Invariants: what comes out is what one thread would give, in that order: the tiers' records first,
then those of log segments as they were committed; so each partition's offsets ascend. A thread is
at most `ahead` items before the reader. Closing the generator early ends the threads.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")
Task = TypeVar("Task")


class _Channel(Generic[T]):
    """One thread fills it, another drains it."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._items: deque[T] = deque()
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
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._room)
            if not self._closed:
                self._items.append(item)
                self._changed.notify_all()
            return not self._closed

    def drain(self) -> Iterator[T]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._filled)
                if not self._items:
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def in_order(
    tasks: Sequence[Task],
    read: Callable[[Task], Generator[T, None, None]],
    *,
    threads: int,
    ahead: int,
) -> Generator[T, None, None]:
    """What `read` gives for each of `tasks`, one after another; `threads` of them are read at once.

    Raises what `read` raises, after all that comes before it.
    """
    left = iter(tasks)
    reading: deque[tuple[_Channel[T], Future[None]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="bucketlog-replay") as pool:

        def begin(count: int) -> None:
            for task in islice(left, count):
                channel: _Channel[T] = _Channel(ahead)
                reading.append((channel, pool.submit(_fill, channel, read, task)))

        try:
            begin(threads)
            while reading:
                channel, done = reading[0]
                yield from channel.drain()
                done.result()
                reading.popleft()
                begin(1)
        finally:
            for channel, _ in reading:
                channel.close()


def _fill(
    channel: _Channel[T], read: Callable[[Task], Generator[T, None, None]], task: Task
) -> None:
    channel.fill(read(task))
