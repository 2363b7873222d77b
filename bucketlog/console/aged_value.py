"""Values that pages share because their computation takes long. An old value is computed again.

Invariants: one thread computes at a time. Pages wait for a new value for at most `patience_ms`, and
then get the last value. If the last value took longer to compute, pages get it at once. The age
counts from the end of the work. So work that takes longer than the age still serves the pages that
wait. Work that ends with a value, or because it took too long, runs for at most a fifth of the
time. A failure is kept for the age, so that it is not repeated for each of these pages.
"""

import threading
from collections.abc import Callable
from copy import copy
from math import inf
from typing import Generic, NamedTuple, TypeVar

from bucketlog.console.page_deadline import UNBOUNDED, Deadline, PageTimeoutError
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import WallClock

T = TypeVar("T")


class StillReadingError(BucketlogError):
    """A page needs a value that is being computed for the first time."""

    code = "STILL_READING"
    retriable = True


REST = 4
"""The least age at which a value is computed again, as a multiple of the time to compute it."""


class _Made(NamedTuple, Generic[T]):
    """A value or a failure, with the end and the duration of the work."""

    ended_ms: int
    took_ms: int
    outcome: T | BucketlogError | OSError

    def value(self) -> T:
        """Return the value. Raises the failure."""
        if isinstance(self.outcome, BucketlogError | OSError):
            raise copy(self.outcome) from self.outcome
        return self.outcome

    @property
    def is_value(self) -> bool:
        return not isinstance(self.outcome, BucketlogError | OSError)


class AgedValue(Generic[T]):
    """A value that is computed again at the age `age_ms_max`. `work` returns the deadline of one
    computation that begins now. A page waits for a computation for at most `patience_ms`. With
    `is_resumable`, a computation that took too long is continued, and not begun again."""

    def __init__(
        self,
        age_ms_max: int,
        now_ms: WallClock,
        work: Callable[[], Deadline] = lambda: UNBOUNDED,
        *,
        patience_ms: float = inf,
        is_resumable: bool = False,
    ) -> None:
        self._is_resumable = is_resumable
        self._age_ms_max = age_ms_max
        self._now_ms = now_ms
        self._work = work
        self._patience_ms = patience_ms
        self._lock = threading.Lock()
        self._made: _Made[T] | None = None
        self._made_now: threading.Event | None = None
        """Set at the end of the computation that runs; None while none runs."""

    def get(
        self,
        make: Callable[[Deadline], T],
        waiting: Deadline = UNBOUNDED,
        *,
        is_patient: bool = False,
    ) -> T:
        """Return the value, or the last value if `make` takes longer than the patience. With
        `is_patient`, wait for `make` in any case.

        Raises the errors of `make`; `StillReadingError` if there is no value after the patience;
        and `PageTimeoutError` if there is no value in the time of `waiting`."""
        with self._lock:
            last = self._made
            if last is not None and 0 <= self._now_ms() - last.ended_ms < self._age_ms(last):
                return last.value()
            made_now = self._made_now
            if made_now is None:
                made_now = self._made_now = self._begun(make)
        known = last if last is not None and last.is_value else None
        patience_ms = inf if is_patient else self._patience_ms
        if known is not None and known.took_ms > patience_ms:
            return known.value()
        try:
            is_made = waiting.wait(made_now, patience_ms / 1000)
        except PageTimeoutError:
            if known is None:
                raise
            return known.value()
        if is_made:
            assert self._made is not None
            return self._made.value()
        if known is not None:
            return known.value()
        raise StillReadingError("the bucket is being read", remedy="try again in a moment")

    def _begun(self, make: Callable[[Deadline], T]) -> threading.Event:
        """Begin a computation; needs the lock. Raises `BucketlogError` if no thread can start."""
        made_now = threading.Event()
        thread = threading.Thread(
            target=self._compute, args=(make, made_now), name="console-reading", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            raise BucketlogError(
                f"no thread can read the bucket: {error}", remedy="raise the limit of threads"
            ) from error
        return made_now

    def _age_ms(self, made: _Made[T]) -> int:
        """The age at which the value is computed again. A failure of the bucket has mostly waited
        for it, so the bucket is asked again soon."""
        is_late = isinstance(made.outcome, PageTimeoutError)
        if is_late and self._is_resumable:
            return 0
        is_work = made.is_value or is_late
        rest_ms = REST * made.took_ms if is_work and self._age_ms_max else 0
        return max(self._age_ms_max, rest_ms)

    def _compute(self, make: Callable[[Deadline], T], made_now: threading.Event) -> None:
        outcome: T | BucketlogError | OSError = BucketlogError(
            "the reading ended with an unexpected error", remedy="see the console's output"
        )
        deadline = UNBOUNDED
        try:
            deadline = self._work()
            outcome = make(deadline)
        except (BucketlogError, OSError) as error:
            outcome = error
        finally:
            with self._lock:
                self._made = _Made(self._now_ms(), deadline.passed_ms(), outcome)
                self._made_now = None
            made_now.set()
