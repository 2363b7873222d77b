"""The time that one request keeps the event loop busy. Waiting does not count."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol


class StepClock(Protocol):
    """A clock that learns of the steps of some work."""

    def begin(self) -> None: ...

    def pause(self) -> None: ...


class WorkTime:
    """The time of some work, which begins when this object is made. `now_ns` is a monotonic
    clock."""

    __slots__ = ("_now_ns", "_since_ns", "_spent_ns")

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._spent_ns = 0
        self._since_ns: int | None = now_ns()

    def begin(self) -> None:
        self._since_ns = self._now_ns()

    def pause(self) -> None:
        if self._since_ns is not None:
            self._spent_ns += self._now_ns() - self._since_ns
            self._since_ns = None

    def take_ns(self) -> int:
        """The time since the last call."""
        works = self._since_ns is not None
        self.pause()
        spent_ns, self._spent_ns = self._spent_ns, 0
        if works:
            self.begin()
        return spent_ns


async def timed(work: Coroutine[Any, Any, None], time: StepClock) -> None:
    """Run `work`, and count the time of each of its steps."""
    await _Steps(work, time)


class _Steps(Generator[Any, Any, None]):
    """Passes all on to the work, as `await` would."""

    def __init__(self, work: Coroutine[Any, Any, None], time: StepClock) -> None:
        self._work = work
        self._time = time

    def __await__(self) -> Generator[Any, Any, None]:
        return self

    def send(self, value: Any) -> Any:
        self._time.begin()
        try:
            return self._work.send(value)
        finally:
            self._time.pause()

    def throw(self, *error: Any) -> Any:
        self._time.begin()
        try:
            return self._work.throw(*error)
        finally:
            self._time.pause()
