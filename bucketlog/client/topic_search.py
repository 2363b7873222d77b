"""Periodic search for the topics of a cluster, for consumers of patterns.

Invariant: a search never waits. A thread asks the brokers, and a later call takes the answer.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from bucketlog.log_format.errors import BucketlogError

_logger = logging.getLogger("bucketlog.consumer")


class TopicSearch:
    """`list_topics` asks the brokers, and `interval_s` is the time between two searches. Without an
    interval, there is no search."""

    def __init__(
        self,
        list_topics: Callable[[], Iterable[str]],
        interval_s: float | None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.is_due = False
        """Search with the next call, because a topic is deleted."""
        self._list_topics = list_topics
        self._interval_s = interval_s
        self._clock_s = clock_s
        self._next_at_s = clock_s() + (interval_s or 0.0)
        self._answer: list[str] | None = None
        self._thread: threading.Thread | None = None

    def found(self) -> list[str] | None:
        """Return the names of all topics, once after each answer; otherwise None."""
        if self._interval_s is None:
            return None
        if self._thread is not None:
            if self._thread.is_alive():
                return None
            self._thread = None
            answer, self._answer = self._answer, None
            return answer
        if self.is_due or self._clock_s() >= self._next_at_s:
            self.is_due = False
            self._next_at_s = self._clock_s() + self._interval_s
            self._thread = threading.Thread(
                target=self._ask, name="bucketlog topic search", daemon=True
            )
            self._thread.start()
        return None

    def _ask(self) -> None:
        try:
            self._answer = list(self._list_topics())
        except BucketlogError as error:
            _logger.warning("looking for new topics: %s", error)
