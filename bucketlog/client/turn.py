"""Whose turn it is to use a consumer: one thread at a time, as for Java's KafkaConsumer.

Invariant: while a thread uses the consumer, or works on records for which only its next call
counts as done, no other thread gets records or commits.
"""

import threading
from collections.abc import Callable

from bucketlog.log_format.errors import ConcurrentUseError

REMEDY = (
    "give each thread a consumer of its group, or let one consumer call a function in many "
    "threads: consumer.process(function, concurrency=8)"
)


class Turn:
    """Lets one thread at a time use a consumer. A thread may enter again in callbacks.

    `has_open_records`: whether the last user was given records that count as done with its next
    call. Another thread may then use the consumer only if the last user has ended.
    """

    __slots__ = ("_has_open_records", "_lock", "_user", "_user_id", "give_back")

    def __init__(self, has_open_records: Callable[[], bool]) -> None:
        self._has_open_records = has_open_records
        self._lock = threading.RLock()
        self._user: threading.Thread | None = None
        self._user_id = 0
        self.give_back = self._lock.release

    def take(self) -> None:
        """Raises `ConcurrentUseError`."""
        if not self._lock.acquire(blocking=False):
            raise ConcurrentUseError(f"{self._name()} is using this consumer", remedy=REMEDY)
        me = threading.get_ident()
        if self._user_id != me:
            if self._user is not None and self._user.is_alive() and self._has_open_records():
                self._lock.release()
                raise ConcurrentUseError(
                    f"{self._name()} still works on records of this consumer", remedy=REMEDY
                )
            self._user_id, self._user = me, threading.current_thread()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def _name(self) -> str:
        return "another thread" if self._user is None else f"thread {self._user.name!r}"
