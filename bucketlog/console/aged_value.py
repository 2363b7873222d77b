"""What pages share because it takes long: computed again when it is older than a limit.

Invariants: the age counts from the end of the work, so that work which takes longer than the age
still serves those who wait; a failure is kept as long as a value, so that it is not repeated for
each of them.
"""

import threading
from collections.abc import Callable
from copy import copy
from typing import Generic, TypeVar

from bucketlog.console.page_deadline import UNBOUNDED, Deadline
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import WallClock

T = TypeVar("T")


class AgedValue(Generic[T]):
    """`work` begins the time of one computation."""

    def __init__(
        self, age_ms_max: int, now_ms: WallClock, work: Callable[[], Deadline] = lambda: UNBOUNDED
    ) -> None:
        self._age_ms_max = age_ms_max
        self._now_ms = now_ms
        self._work = work
        self._lock = threading.Lock()
        self._made: tuple[int, T | BucketlogError] | None = None

    def get(self, make: Callable[[Deadline], T], waiting: Deadline = UNBOUNDED) -> T:
        """One thread computes, and the others wait for it. Raises the errors of `make`, and
        `PageTimeoutError` if the value is not there in the time of `waiting`."""
        with waiting.locked(self._lock):
            made = self._made
            if made is None or not 0 <= self._now_ms() - made[0] < self._age_ms_max:
                found: T | BucketlogError
                try:
                    found = make(self._work())
                except BucketlogError as error:
                    found = error
                self._made = made = self._now_ms(), found
        if isinstance(made[1], BucketlogError):
            raise copy(made[1]) from made[1]
        return made[1]
