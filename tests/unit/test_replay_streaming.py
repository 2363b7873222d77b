"""Tasks worked on at once, their results handed out in order, and ended early."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing

import pytest

from bucketlog.replaying.streaming import decoding_threads, in_order
from tests.rigs.patience import PATIENCE_S


def results(
    tasks: Iterable[int],
    work: Callable[[int], Generator[int, None, None]],
    *,
    threads: int,
    tasks_ahead: int = 4,
    room: int = 4,
) -> Generator[int, None, None]:
    """Each item counts as one byte."""
    return in_order(
        tasks, work, lambda _: 1, threads=threads, tasks_ahead=tasks_ahead, room_bytes=room
    )


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("tasks_ahead", [1, 3, 10])
def test_what_comes_out_is_in_the_order_of_the_tasks(threads: int, tasks_ahead: int) -> None:
    def work(task: int) -> Generator[int, None, None]:
        yield from (100 * task + at for at in range(task % 4 * 3))

    found = list(results(range(20), work, threads=threads, tasks_ahead=tasks_ahead, room=2))
    assert found == [100 * task + at for task in range(20) for at in range(task % 4 * 3)]


def test_as_many_tasks_as_threads_are_worked_on_at_once() -> None:
    together = threading.Barrier(3)

    def work(task: int) -> Generator[int, None, None]:
        together.wait(PATIENCE_S)
        yield task

    assert list(results(range(6), work, threads=3, tasks_ahead=3, room=1)) == list(range(6))


def test_tasks_are_finished_while_the_reader_waits_for_the_first() -> None:
    """A slow task does not stop the others: their results wait."""
    last = threading.Event()

    def work(task: int) -> Generator[int, None, None]:
        if task == 0:
            assert last.wait(PATIENCE_S)
        yield task
        if task == 3:
            last.set()

    assert list(results(range(4), work, threads=2)) == [0, 1, 2, 3]


def test_no_task_is_taken_before_its_turn() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for task in range(100):
            taken.append(task)
            yield task

    def work(task: int) -> Generator[int, None, None]:
        yield task

    with closing(results(tasks(), work, threads=2, tasks_ahead=5)) as items:
        for expected in range(50):
            assert next(items) == expected
            assert len(taken) == expected + 5


def test_no_task_holds_more_than_its_room() -> None:
    made: list[int] = []

    def work(task: int) -> Generator[int, None, None]:
        for at in range(100):
            made.append(at)
            yield at

    with closing(results([0], work, threads=1)) as items:
        for taken in range(1, 50):
            next(items)
            assert len(made) <= taken + 4 + 1


def test_an_item_larger_than_the_room_is_not_refused() -> None:
    def work(task: int) -> Generator[int, None, None]:
        yield from range(task)

    items = in_order([3], work, lambda _: 50, threads=1, tasks_ahead=1, room_bytes=10)
    assert list(items) == [0, 1, 2]


def test_an_error_comes_after_all_that_stands_before_it() -> None:
    def work(task: int) -> Generator[int, None, None]:
        yield task
        if task == 2:
            raise ValueError("damaged")

    items = results(range(5), work, threads=2)
    found: list[int] = []
    with pytest.raises(ValueError, match="damaged"):
        found.extend(items)
    assert found == [0, 1, 2]


def test_an_error_of_the_tasks_comes_after_all_that_stands_before_it() -> None:
    def tasks() -> Iterator[int]:
        yield from range(3)
        raise ValueError("no such object")

    def work(task: int) -> Generator[int, None, None]:
        yield task

    found: list[int] = []
    with pytest.raises(ValueError, match="no such object"):
        found.extend(results(tasks(), work, threads=2, tasks_ahead=10))
    assert found == [0, 1, 2]


def test_closing_early_ends_threads_and_what_they_work_on() -> None:
    ended: list[int] = []
    both = threading.Barrier(2)

    def work(task: int) -> Generator[int, None, None]:
        both.wait(PATIENCE_S)
        try:
            while True:
                yield task
        finally:
            ended.append(task)

    items = results(range(5), work, threads=2, tasks_ahead=2)
    assert next(items) == 0
    items.close()
    assert sorted(ended) == [0, 1]
    assert not [thread for thread in threading.enumerate() if "bucketlog-replay" in thread.name]


@pytest.mark.parametrize(("processors", "threads"), [(1, 2), (2, 2), (5, 5), (64, 8)])
def test_the_default_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, processors: int, threads: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(processors)))
    assert decoding_threads() == threads
