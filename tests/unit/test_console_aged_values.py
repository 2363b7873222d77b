"""Values that pages share: one thread computes, late work is not repeated, failures are kept."""

import threading
from collections.abc import Callable
from math import inf

import pytest

from bucketlog.console.aged_value import AgedValue, StillReadingError
from bucketlog.console.page_deadline import Deadline, PageTimeoutError
from bucketlog.log_format.errors import BucketlogError, BucketUnavailableError
from tests.rigs.patience import PATIENCE_S, eventually
from tests.unit.test_console_times import SteppedClock


def failing(calls: list[int]) -> Callable[[Deadline], int]:
    def fail(_: Deadline) -> int:
        calls.append(len(calls))
        raise BucketUnavailableError(f"failure {len(calls)}")

    return fail


def timed(clock: SteppedClock) -> Callable[[], Deadline]:
    """Begins work whose time is that of `clock`."""
    return lambda: Deadline(clock.s, inf, "read_ms_max")


def test_work_that_takes_longer_than_its_age_is_not_repeated() -> None:
    clock, calls = SteppedClock(), list[int]()

    def make(_: Deadline) -> int:
        calls.append(clock.now)
        clock.now += 61_000
        return len(calls)

    value: AgedValue[int] = AgedValue(60_000, clock.ms, timed(clock))
    assert [value.get(make) for _ in range(3)] == [1, 1, 1]
    clock.now += 60_000
    assert value.get(make) == 1, "work runs for more than a fifth of the time"
    clock.now += 4 * 61_000 - 60_000
    assert value.get(make) == 2


def test_a_step_of_the_clock_within_the_work_does_not_count_as_work() -> None:
    """As when a laptop sleeps. The value would be kept for four times as long."""
    wall, monotonic, calls = SteppedClock(), SteppedClock(), list[int]()

    def make(_: Deadline) -> int:
        calls.append(len(calls))
        if len(calls) == 1:
            wall.now += 8 * 3_600_000
            monotonic.now += 100
        return len(calls)

    value: AgedValue[int] = AgedValue(1_000, wall.ms, timed(monotonic))
    assert value.get(make) == 1
    wall.now += 1_000
    assert value.get(make) == 2


def test_a_thread_that_cannot_start_does_not_end_all_readings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    value: AgedValue[int] = AgedValue(1_000, lambda: 0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(BucketlogError, match="no thread"):
            value.get(lambda _: 1)
    assert value.get(lambda _: 1, Deadline(lambda: 0.0, 60_000, "page_ms_max")) == 1


def test_a_failure_is_kept_for_the_age() -> None:
    clock, calls = SteppedClock(), list[int]()
    value: AgedValue[int] = AgedValue(1_000, clock.ms)
    for _ in range(3):
        with pytest.raises(BucketUnavailableError, match="failure 1"):
            value.get(failing(calls))
    clock.now += 1_000
    assert value.get(lambda _: 7) == 7
    assert len(calls) == 1


def test_a_bucket_that_was_away_is_asked_again_after_the_age() -> None:
    """Requests are repeated before they fail. Four times as long would be minutes."""
    clock, calls = SteppedClock(), list[int]()

    def fail_late(deadline: Deadline) -> int:
        clock.now += 30_000
        return failing(calls)(deadline)

    value: AgedValue[int] = AgedValue(1_000, clock.ms, timed(clock))
    with pytest.raises(BucketUnavailableError):
        value.get(fail_late)
    clock.now += 1_000
    assert value.get(lambda _: 7) == 7


def test_work_that_takes_too_long_is_not_repeated_at_once() -> None:
    clock = SteppedClock()

    def never_ends(deadline: Deadline) -> int:
        clock.now += 5_000
        deadline.check()
        return 1

    value: AgedValue[int] = AgedValue(
        1_000, clock.ms, lambda: Deadline(clock.s, 5_000, "read_ms_max")
    )
    for pause_ms in (0, 4 * 5_000 - 1):
        clock.now += pause_ms
        with pytest.raises(PageTimeoutError):
            value.get(never_ends)
    clock.now += 1
    assert value.get(lambda _: 7) == 7


def test_nobody_waits_for_a_value_longer_than_its_page() -> None:
    value: AgedValue[int] = AgedValue(1_000, lambda: 0)
    entered, leave = threading.Event(), threading.Event()

    def make(_: Deadline) -> int:
        entered.set()
        assert leave.wait(PATIENCE_S)
        return 1

    thread = threading.Thread(target=value.get, args=(make,))
    thread.start()
    try:
        assert entered.wait(PATIENCE_S)
        with pytest.raises(PageTimeoutError, match="5 ms"):
            value.get(lambda _: 2, Deadline(lambda: 0.0, 5, "page_ms_max"))
    finally:
        leave.set()
        thread.join()
    assert value.get(lambda _: 2) == 1


class BlockedWork:
    """Work that ends when a test lets it end, with the number of the call."""

    def __init__(self) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, _: Deadline) -> int:
        self.calls += 1
        self.entered.set()
        assert self.leave.wait(PATIENCE_S)
        return self.calls


def test_pages_get_the_last_value_while_the_next_is_computed() -> None:
    clock, work = SteppedClock(), BlockedWork()
    value: AgedValue[int] = AgedValue(1_000, clock.ms, patience_ms=0)
    with pytest.raises(StillReadingError):
        value.get(work)
    work.leave.set()
    eventually(lambda: value.get(work) == 1, despite=(StillReadingError,))
    work.leave.clear()
    clock.now = 1_000
    assert [value.get(work) for _ in range(5)] == [1] * 5
    assert work.entered.wait(PATIENCE_S)
    assert work.calls == 2, "several threads compute"
    work.leave.set()
    eventually(lambda: value.get(work) == 2)


def test_pages_do_not_wait_for_a_computation_that_took_longer_before() -> None:
    clock, work = SteppedClock(), BlockedWork()
    patience_ms = int(PATIENCE_S * 1_000)
    value: AgedValue[int] = AgedValue(1, clock.ms, timed(clock), patience_ms=patience_ms)

    def late(_: Deadline) -> int:
        clock.now += patience_ms + 1
        return 7

    assert value.get(late) == 7
    clock.now += 5 * patience_ms
    assert value.get(work) == 7
    work.leave.set()
    assert work.entered.wait(PATIENCE_S)
    eventually(lambda: value.get(work) == 1)


def test_a_failure_replaces_the_last_value() -> None:
    clock, calls = SteppedClock(), list[int]()
    value: AgedValue[int] = AgedValue(1_000, clock.ms)
    assert value.get(lambda _: 1) == 1
    clock.now = 1_000
    with pytest.raises(BucketUnavailableError, match="failure 1"):
        value.get(failing(calls))


def test_an_unexpected_error_does_not_leave_pages_waiting() -> None:
    ended = list[threading.ExceptHookArgs]()
    value: AgedValue[int] = AgedValue(1_000, lambda: 0)
    before, threading.excepthook = threading.excepthook, ended.append
    try:
        with pytest.raises(BucketlogError, match="unexpected error"):
            value.get(lambda _: 1 // 0)
        eventually(lambda: [each.exc_type for each in ended] == [ZeroDivisionError])
    finally:
        threading.excepthook = before
