"""Tasks read at once, handed out in order, and ended early."""

import threading
from collections.abc import Generator
from contextlib import closing

import pytest

from bucketlog.replaying.streaming import in_order
from tests.rigs.patience import PATIENCE_S


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_comes_out_is_in_the_order_of_the_tasks(threads: int) -> None:
    def read(task: int) -> Generator[tuple[int, int], None, None]:
        yield from ((task, at) for at in range(task % 4 * 3))

    found = list(in_order(range(20), read, threads=threads, ahead=2))
    assert found == [(task, at) for task in range(20) for at in range(task % 4 * 3)]


def test_as_many_tasks_as_threads_are_read_at_once() -> None:
    together = threading.Barrier(3)

    def read(task: int) -> Generator[int, None, None]:
        together.wait(PATIENCE_S)
        yield task

    assert list(in_order(range(6), read, threads=3, ahead=1)) == list(range(6))


def test_no_thread_is_further_ahead_than_it_may() -> None:
    made: list[int] = []

    def read(task: int) -> Generator[int, None, None]:
        for at in range(100):
            made.append(at)
            yield at

    with closing(in_order([0], read, threads=1, ahead=4)) as items:
        for taken in range(1, 50):
            next(items)
            assert len(made) <= taken + 4 + 1


def test_an_error_comes_after_all_that_stands_before_it() -> None:
    def read(task: int) -> Generator[int, None, None]:
        yield task
        if task == 2:
            raise ValueError("damaged")

    items = in_order(range(5), read, threads=2, ahead=8)
    found: list[int] = []
    with pytest.raises(ValueError, match="damaged"):
        found.extend(items)
    assert found == [0, 1, 2]


def test_closing_early_ends_threads_and_what_they_read() -> None:
    ended: list[int] = []

    def read(task: int) -> Generator[int, None, None]:
        try:
            while True:
                yield task
        finally:
            ended.append(task)

    items = in_order(range(5), read, threads=2, ahead=3)
    assert next(items) == 0
    items.close()
    assert sorted(ended) == [0, 1]
    assert not [thread for thread in threading.enumerate() if "bucketlog-replay" in thread.name]
