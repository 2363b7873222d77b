"""Times by which the work for a page ends, with an error that names the setting.

Invariants: a thread whose time has passed, or whose console has stopped, begins no further request
to the bucket. The thread waits for other threads no longer than its time.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from math import inf

from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix, SyncBucket


class PageTimeoutError(BucketlogError):
    """The work for a page took longer than a setting allows, or the console has stopped."""

    code = "PAGE_TIMEOUT"
    retriable = True


class Deadline:
    """`limit_ms` from now on, by the monotonic clock `now_s`; `setting` is the limit's name."""

    def __init__(
        self,
        now_s: Callable[[], float],
        limit_ms: float,
        setting: str,
        *,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._now_s = now_s
        self._limit_ms = limit_ms
        self._setting = setting
        self._is_stopped = is_stopped
        self._began_s = now_s()
        self.until_s = self._began_s + limit_ms / 1000

    def passed_ms(self) -> int:
        """The time since the beginning. A step of the wall clock does not change it."""
        return int((self._now_s() - self._began_s) * 1000)

    def check(self) -> None:
        """Raises `PageTimeoutError`."""
        if self._is_stopped():
            raise PageTimeoutError("the console has stopped", remedy="start it again")
        if self._now_s() >= self.until_s:
            raise self._late()

    def wait(self, event: threading.Event, most_s: float) -> bool:
        """Wait for the event, for at most `most_s` seconds, and return whether it is set. Raises
        `PageTimeoutError` if this deadline passes first."""
        left_s = max(0.0, self.until_s - self._now_s())
        if event.wait(min(left_s, most_s, threading.TIMEOUT_MAX)):
            return True
        if left_s <= most_s:
            raise self._late()
        return False

    def _late(self) -> PageTimeoutError:
        return page_timeout(self._limit_ms, self._setting)


def page_timeout(limit_ms: float, setting: str) -> PageTimeoutError:
    """`setting` is the name of the limit in `ConsoleSettings`."""
    return PageTimeoutError(
        f"the page took more than {limit_ms} ms",
        remedy=f"try again, or raise BUCKETLOG_CONSOLE_{setting.upper()}",
    )


UNBOUNDED = Deadline(lambda: 0.0, inf, "")


class DeadlineBucket:
    """`SyncBucket` around `inner`, which others own. Before each request, and at each object of a
    listing, `check` may raise."""

    def __init__(self, inner: SyncBucket, check: Callable[[], None]) -> None:
        self._inner = inner
        self._check = check

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        self._check()
        return self._inner.create(key, parts, crc32c=crc32c)

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self._check()
        return self._inner.get(key, span)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        self._check()
        for info in self._inner.list(prefix, start_after=start_after):
            self._check()
            yield info

    def delete(self, keys: Sequence[str]) -> None:
        self._check()
        self._inner.delete(keys)

    def head(self, key: str) -> ObjectInfo | None:
        self._check()
        return self._inner.head(key)

    def close(self) -> None:
        """The owner of `inner` closes it."""


class TimedBucket(DeadlineBucket):
    """`inner` for work that is done again and again, each time with the deadline of `begin`."""

    def __init__(self, inner: SyncBucket) -> None:
        super().__init__(inner, self._check_work)
        self._work = UNBOUNDED

    def begin(self, deadline: Deadline) -> None:
        """Set the deadline of the work that begins now."""
        self._work = deadline

    def _check_work(self) -> None:
        self._work.check()
