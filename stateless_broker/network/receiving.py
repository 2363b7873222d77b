"""Closes connections whose partly received requests arrive too slowly.

Invariants: a request that arrives more slowly than `bytes_per_s_min` is closed, however little
memory it holds. While others wait for memory, the slowest request that holds memory is closed.
Requests that hold memory and wait for more cannot deadlock. A request that the broker itself delays
is never too slow. Pure: the clock is passed in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bucketlog.stateless_broker.network.memory_budget import MemoryBudget, pays_for


class PartialRequest(Protocol):
    """The progress of a connection's partly received request."""

    @property
    def address(self) -> str: ...

    @property
    def received_bytes(self) -> int: ...

    @property
    def held_bytes(self) -> int: ...

    @property
    def missing_bytes(self) -> int: ...

    @property
    def is_waiting_for_room(self) -> bool: ...


class Closable(Protocol):
    """The connection of a partly received request."""

    @property
    def incoming(self) -> PartialRequest: ...

    def end(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Progress:
    """Bytes received at the start of the window, and at the last check (None: never checked)."""

    since_s: float
    since_bytes: int
    looked_bytes: int | None = None


class Receiving:
    """`window_ms`: how long a request may be slower than `bytes_per_s_min`."""

    def __init__(self, budget: MemoryBudget, *, bytes_per_s_min: int, window_ms: int) -> None:
        self._budget = budget
        self._bytes_per_s_min = bytes_per_s_min
        self._window_ms = window_ms
        self._begun: dict[Closable, _Progress] = {}

    def begin(self, connection: Closable, now_s: float) -> None:
        """Track the connection's partly received request, if it is not tracked yet."""
        if connection not in self._begun:
            self._begun[connection] = _Progress(now_s, connection.incoming.received_bytes)

    def end(self, connection: Closable) -> None:
        self._begun.pop(connection, None)

    def look(self, now_s: float) -> None:
        """Call about once a second."""
        for connection, progress in list(self._begun.items()):
            self._check_rate(connection, progress, now_s)
        if needed := self._budget.needed_bytes:
            self._relieve(list(self._begun), needed, self._budget.held_bytes)
        for account in self._budget.accounts_over_share:
            own = [each for each in self._begun if pays_for(each.incoming.address, account)]
            self._relieve(own, 1, self._budget.granted_to(account))
        for connection, progress in self._begun.items():
            progress.looked_bytes = connection.incoming.received_bytes

    def _check_rate(self, connection: Closable, progress: _Progress, now_s: float) -> None:
        incoming = connection.incoming
        elapsed_s = now_s - progress.since_s
        if not incoming.is_waiting_for_room and elapsed_s * 1000 < self._window_ms:
            return
        came = incoming.received_bytes - progress.since_bytes
        if not incoming.is_waiting_for_room and came < elapsed_s * self._bytes_per_s_min:
            self._close(
                connection,
                f"{came} bytes of a request in {elapsed_s:.0f} s "
                "(BUCKETLOG_REQUEST_BYTES_PER_S_MIN)",
            )
            return
        progress.since_s, progress.since_bytes = now_s, incoming.received_bytes

    def _relieve(self, among: list[Closable], needed: int, held: int) -> None:
        """Close the slowest connections until `needed` bytes are free. If partly received requests
        hold all `held` bytes and all of them wait, close the youngest one that holds memory."""
        freed = 0
        slow = [each for each in among if self._is_slow(each)]
        for connection in sorted(slow, key=self._came_lately):
            if freed >= needed:
                return
            freed += connection.incoming.held_bytes
            self._close(connection, "others wait for the memory that its slow request holds")
        waiting = [each for each in among if each.incoming.is_waiting_for_room]
        if not slow and len(waiting) > 1 and _held(among) >= held:
            holders = [each for each in waiting if each.incoming.held_bytes]
            if holders:
                self._close(holders[-1], "requests that have begun hold all the memory")

    def _is_slow(self, connection: Closable) -> bool:
        """Return whether the request will still be incomplete at the next check."""
        incoming = connection.incoming
        return (
            not incoming.is_waiting_for_room
            and incoming.held_bytes > 0
            and self._begun[connection].looked_bytes is not None
            and self._came_lately(connection) < incoming.missing_bytes
        )

    def _came_lately(self, connection: Closable) -> int:
        return connection.incoming.received_bytes - (self._begun[connection].looked_bytes or 0)

    def _close(self, connection: Closable, reason: str) -> None:
        self.end(connection)
        connection.end(reason)


def _held(connections: Iterable[Closable]) -> int:
    return sum(each.incoming.held_bytes for each in connections)
