"""Limits of the lines about refusals that are written per second, with counts of the others.

Invariant: a refusal gets a line, or is counted. The memory is bounded by `in_all`, however many
clients there are.
"""

from collections import Counter
from typing import NamedTuple

CLIENTS_NAMED_MAX = 20
"""Number of clients that the count of left-out lines names: those with the most lines."""


class LineLimits(NamedTuple):
    """Limits of lines per second."""

    per_client: int
    in_all: int


class LeftOut(NamedTuple):
    """The lines of one second beyond its limits. `clients` are some of the clients, with their
    counts."""

    total: int
    clients: dict[str, int]


class BoundedLines:
    def __init__(self, limits: LineLimits, now_s: float) -> None:
        self._limits = limits
        self._second = int(now_s)
        self._written: Counter[str] = Counter()
        self._written_in_all = 0
        self._left_out: Counter[str] = Counter()
        self._left_out_in_all = 0

    def has_room(self, client: str) -> bool:
        """Return whether another line about the client may be written. If not, the line is counted.
        Call `take_left_out` before, because that call begins a new second."""
        limits = self._limits
        if self._written_in_all < limits.in_all and self._written[client] < limits.per_client:
            self._written[client] += 1
            self._written_in_all += 1
            return True
        self._left_out_in_all += 1
        if client in self._left_out or len(self._left_out) < limits.in_all:
            self._left_out[client] += 1
        return False

    def take_left_out(self, now_s: float) -> LeftOut | None:
        """Return the lines that the last second left out, once another second has begun. None
        before, and if no line was left out."""
        if int(now_s) == self._second:
            return None
        self._second = int(now_s)
        return self.take_all_left_out()

    def take_all_left_out(self) -> LeftOut | None:
        """Return the lines that were left out until now, or None. The limits begin anew."""
        total, clients = self._left_out_in_all, self._left_out
        self._written, self._left_out = Counter(), Counter()
        self._written_in_all = self._left_out_in_all = 0
        if not total:
            return None
        return LeftOut(total, dict(clients.most_common(CLIENTS_NAMED_MAX)))
