"""Order of a connection's requests: each API says what it reads and changes, and so which requests
wait for earlier ones.

Invariants: a request does not begin before the earlier changes of what it reads are settled, except
changes by its own API: these stay concurrent. All later requests of the connection wait behind a
request that waits, so no later change overtakes it. Source: Kafka's SocketServer, which begins no
request of a connection before the response to the one before.
"""

import asyncio
from collections.abc import Callable, Iterable
from enum import Flag, auto
from typing import NamedTuple

from bucketlog.stateless_broker.network.exchange import Frame, UnsettledChanges


class State(Flag):
    """State that requests read and change."""

    NOTHING = 0
    RECORDS = auto()
    """Batches, and where partitions begin and end."""
    TOPICS = auto()
    """Existing topics and partitions."""
    CONFIGS = auto()
    GROUPS = auto()
    """Existing groups, and their members."""
    OFFSETS = auto()
    """Committed offsets of groups."""
    TRANSACTIONS = auto()
    ACLS = auto()
    USERS = auto()
    QUOTAS = auto()
    TOKENS = auto()
    """Delegation tokens."""


class Ordering(NamedTuple):
    """State that requests of an API read and change, as far as other requests depend on the
    order."""

    reads: State
    changes: State


UNORDERED = Ordering(State.NOTHING, State.NOTHING)
"""The order of requests that neither wait for earlier changes nor make later requests wait."""


def reads(state: State) -> Ordering:
    return Ordering(state, State.NOTHING)


class Place(NamedTuple):
    """The place of a request. `waits_for` has the API keys of earlier changes that it waits for.
    `is_change`: later requests may wait for this one."""

    waits_for: frozenset[int]
    is_change: bool


def places(orderings: Iterable[tuple[int, Ordering]]) -> dict[int, Place]:
    """The place of each API among the others, by its key."""
    by_key = dict(orderings)
    return {
        key: Place(
            frozenset(
                int(other)
                for other, earlier in by_key.items()
                if other != key and earlier.changes & ordering.reads
            ),
            bool(ordering.changes),
        )
        for key, ordering in by_key.items()
    }


class WaitingRequest:
    """A request that waits for earlier changes of its connection; it keeps its frame meanwhile."""

    __slots__ = ("_begin", "_changes", "_due", "_frame", "_waits_for")

    def __init__(
        self,
        frame: Frame,
        waits_for: frozenset[int],
        changes: UnsettledChanges,
        begin: Callable[[], None],
    ) -> None:
        """`begin` is called once, not from the work on another request."""
        self._frame = frame
        self._waits_for = waits_for
        self._changes = changes
        self._begin = begin
        self._due: asyncio.Handle | None = None
        changes.waiting = self

    def look(self) -> None:
        """A change is settled."""
        if self._waits_for.isdisjoint(self._changes.by_api):
            self._changes.waiting = None
            self._due = asyncio.get_running_loop().call_soon(self._begin)

    def drop(self) -> None:
        """The connection is closed."""
        self._frame.release()
