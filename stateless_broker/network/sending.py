"""Closes connections whose clients do not read their responses, or read them too slowly.

Invariants: a connection with unsent bytes is closed if its client takes no byte for
`stalled_ms_max`. While other responses wait for memory, connections are closed that need longer
than `slow_ms_max` for their responses at their present rate; those with the largest responses go
first. A client that reads steadily, however slowly, is never closed while no response waits. Pure:
the clock is passed in.
"""

import asyncio
import fcntl
import struct
import termios
from dataclasses import dataclass
from math import inf
from typing import Protocol

from bucketlog.stateless_broker.network.memory_budget import MemoryBudget, pays_for

WINDOW_S = 2.0
"""The rate of a client is measured over at least this time."""

_QUEUED = struct.Struct("i")


class AnswerTarget(Protocol):
    """The progress of a connection's responses."""

    @property
    def payer(self) -> str:
        """The address that holds the memory of the responses."""

    @property
    def unsent_bytes(self) -> int: ...

    @property
    def taken_bytes(self) -> int:
        """Bytes that the client's kernel has acknowledged since the connection was opened."""

    @property
    def due_bytes(self) -> int:
        """The value that `taken_bytes` will have when the client has taken all complete
        responses."""

    @property
    def held_bytes(self) -> int:
        """The memory of complete responses that this machine's kernel has not taken."""

    def end(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Progress:
    """`since_s`: when the last byte was taken. The window began at `window_s`."""

    taken_bytes: int
    since_s: float
    window_s: float
    window_taken_bytes: int
    window_due_bytes: int
    bytes_per_s: float = inf
    """The rate in the last window; infinite if the client took all bytes due at its start."""

    def note(self, taken_bytes: int, due_bytes: int, now_s: float) -> None:
        if taken_bytes > self.taken_bytes:
            self.taken_bytes, self.since_s = taken_bytes, now_s
        elapsed_s = now_s - self.window_s
        if elapsed_s < WINDOW_S:
            return
        is_behind = taken_bytes < self.window_due_bytes
        came = taken_bytes - self.window_taken_bytes
        self.bytes_per_s = came / elapsed_s if is_behind else inf
        self.window_s = now_s
        self.window_taken_bytes, self.window_due_bytes = taken_bytes, due_bytes


class Sending:
    """`budget`: the memory of responses. `slow_ms_max`: how long a client may need for its
    responses while others wait for memory."""

    def __init__(self, budget: MemoryBudget, *, stalled_ms_max: int, slow_ms_max: int) -> None:
        self._budget = budget
        self._stalled_ms_max = stalled_ms_max
        self._slow_ms_max = slow_ms_max
        self._watched: dict[AnswerTarget, _Progress | None] = {}
        self._waited: set[str | None] = set()
        """Queues with waiters at the last check: an account, or None for the whole budget."""

    def watch(self, connection: AnswerTarget) -> None:
        """Track a connection that has a complete response, until the client has taken it."""
        self._watched.setdefault(connection, None)

    def forget(self, connection: AnswerTarget) -> None:
        self._watched.pop(connection, None)

    def look(self, now_s: float) -> None:
        """Call about once a second."""
        for connection, progress in list(self._watched.items()):
            self._note(connection, progress, now_s)
        wanted: dict[str | None, int] = dict.fromkeys(self._budget.accounts_over_share, 1)
        if needed := self._budget.needed_bytes:
            wanted[None] = needed
        for queue, size_bytes in wanted.items():
            if queue in self._waited:
                self._relieve(queue, size_bytes)
        self._waited = set(wanted)

    def _note(self, connection: AnswerTarget, progress: _Progress | None, now_s: float) -> None:
        taken = connection.taken_bytes
        if not connection.unsent_bytes and not connection.held_bytes:
            del self._watched[connection]
        elif progress is None:
            due = connection.due_bytes
            self._watched[connection] = _Progress(taken, now_s, now_s, taken, due)
        else:
            progress.note(taken, connection.due_bytes, now_s)
            if not connection.unsent_bytes:
                progress.since_s = now_s  # the broker has not written the response yet
            elif (now_s - progress.since_s) * 1000 >= self._stalled_ms_max:
                self._close(
                    connection,
                    f"its client took no byte of a response for {self._stalled_ms_max} ms "
                    "(BUCKETLOG_RESPONSE_STALLED_MS_MAX)",
                )

    def _relieve(self, account: str | None, needed: int) -> None:
        """Close slow connections until `needed` bytes are free, those that hold the most memory
        first. With `account`, close only connections of that address or tenant."""
        slow = [
            connection
            for connection, progress in self._watched.items()
            if (account is None or pays_for(connection.payer, account))
            and self._is_slow(connection, progress)
        ]
        freed = 0
        for connection in sorted(slow, key=lambda each: each.held_bytes, reverse=True):
            if freed >= needed:
                return
            freed += connection.held_bytes
            self._close(
                connection,
                f"other responses wait for memory, and its client would not receive its response, "
                f"which holds {connection.held_bytes} bytes, within {self._slow_ms_max} ms "
                "(BUCKETLOG_RESPONSE_SLOW_MS_MAX)",
            )

    def _is_slow(self, connection: AnswerTarget, progress: _Progress | None) -> bool:
        if progress is None:
            return False
        return progress.bytes_per_s * self._slow_ms_max < connection.held_bytes * 1000

    def _close(self, connection: AnswerTarget, reason: str) -> None:
        self.forget(connection)
        connection.end(reason)


def queued_bytes(transport: asyncio.BaseTransport) -> int:
    """Bytes in this machine's kernel that the client's kernel has not acknowledged; 0 where the
    kernel does not report them (macOS). The kernel may hold megabytes, and takes new bytes only
    after a third of them is acknowledged."""
    connected = transport.get_extra_info("socket")
    if connected is None:
        return 0
    try:
        queued = fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, bytes(_QUEUED.size))
    except (OSError, ValueError):  # the socket is closed
        return 0
    return int(_QUEUED.unpack(queued)[0])
