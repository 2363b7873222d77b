"""Closes connections whose clients do not read their responses.

Invariant: a connection with unsent bytes is closed if its client takes no byte for
`stalled_ms_max`. Pure: the clock is passed in.
"""

from typing import NamedTuple, Protocol


class AnswerTarget(Protocol):
    """The progress of a connection's responses."""

    @property
    def unsent_bytes(self) -> int: ...

    @property
    def taken_bytes(self) -> int:
        """Bytes that the client's kernel has acknowledged since the connection was opened."""

    def end(self, reason: str) -> None: ...


class _Mark(NamedTuple):
    taken_bytes: int
    since_s: float


class Sending:
    def __init__(self, *, stalled_ms_max: int) -> None:
        self._stalled_ms_max = stalled_ms_max
        self._watched: dict[AnswerTarget, _Mark | None] = {}

    def watch(self, connection: AnswerTarget) -> None:
        """Track a connection to which response bytes were written."""
        self._watched.setdefault(connection, None)

    def forget(self, connection: AnswerTarget) -> None:
        self._watched.pop(connection, None)

    def look(self, now_s: float) -> None:
        """Call about once a second."""
        for connection, mark in list(self._watched.items()):
            if not connection.unsent_bytes:
                del self._watched[connection]
            elif mark is None or connection.taken_bytes > mark.taken_bytes:
                self._watched[connection] = _Mark(connection.taken_bytes, now_s)
            elif (now_s - mark.since_s) * 1000 >= self._stalled_ms_max:
                del self._watched[connection]
                connection.end(
                    f"its client took no byte of an answer for {self._stalled_ms_max} ms "
                    "(BUCKETLOG_RESPONSE_STALLED_MS_MAX)"
                )
