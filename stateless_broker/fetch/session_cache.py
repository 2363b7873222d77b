"""The incremental fetch sessions of a broker, within limits (KIP-227).

A new session may evict others if the cache is full. Invariants: Kafka's rules decide among the
sessions of one owner. Among owners, the one that uses most of what is short gives way, unless the
new session would make its owner the largest. So nobody can evict the sessions of smaller owners. An
owner is a principal, or the address of clients without a login, and uses only its own sessions.
Source: Kafka's FetchSessionCache.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Self

from bucketlog.log_format.wire.fetch import NO_SESSION
from bucketlog.metadata.topic_checks import NAME_LENGTH_MAX
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.fetch.fetch_session import (
    EPOCH_MAX,
    FetchSession,
    SessionConnection,
)
from bucketlog.stateless_broker.fetch.watching import Watchers
from bucketlog.stateless_broker.settings.fetch import FetchSettings

EVICTION_MS = 120_000
"""A session that was not used for longer is evicted first. A newer session is not evicted for a
larger one. Source: Kafka's KafkaBroker.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""
SESSION_BYTES = 1_500
PARTITION_BYTES = 1_700
"""The memory of a session, and of each of its partitions, rounded up: measured with a session whose
partitions nobody else fetches, each in its own topic with the longest name."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Limits of sessions. `slots` bounds their number, `bytes_max` their memory, `partitions_max`
    the partitions of one session. With 0 slots there are no sessions."""

    slots: int
    bytes_max: int
    partitions_max: int


@dataclass(slots=True)
class SessionUse:
    """The slots and bytes that an owner, or all owners, use."""

    slots: int = 0
    bytes: int = 0

    def add(self, other: "SessionUse") -> None:
        self.slots += other.slots
        self.bytes += other.bytes

    def remove(self, other: "SessionUse") -> None:
        self.slots -= other.slots
        self.bytes -= other.bytes

    def exceeds(self, limits: SessionLimits) -> bool:
        return self.slots > limits.slots or self.bytes > limits.bytes_max


def use_of(partitions: int) -> SessionUse:
    """Return the use of a session with this many partitions."""
    return SessionUse(1, SESSION_BYTES + PARTITION_BYTES * partitions)


class FetchSessions:
    """`now_ms` is a monotonic clock."""

    def __init__(
        self,
        *,
        view: View,
        watchers: Watchers,
        limits: SessionLimits,
        random: Random,
        now_ms: Callable[[], int],
    ) -> None:
        self._view = view
        self.watchers = watchers
        self._limits = limits
        self._random = random
        self._now_ms = now_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """Sessions by id, in the order of their last use."""
        self._uses: dict[int, SessionUse] = {}
        """The use of each session, by session id."""
        self._by_owner: dict[str, SessionUse] = {}
        self._total = SessionUse()
        self.evictions = 0

    @classmethod
    def of(
        cls,
        settings: FetchSettings,
        view: View,
        watchers: Watchers,
        random: Random,
        now_s: Callable[[], float],
    ) -> Self:
        limits = SessionLimits(
            settings.fetch_session_cache_slots_max,
            settings.fetch_session_cache_bytes_max,
            settings.fetch_session_partitions_max,
        )
        return cls(
            view=view,
            watchers=watchers,
            limits=limits,
            random=random,
            now_ms=lambda: int(now_s() * 1000),
        )

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def bytes(self) -> int:
        """The estimated memory of all sessions."""
        return self._total.bytes

    @property
    def partitions(self) -> int:
        """The number of partitions of all sessions."""
        return sum(len(session) for session in self._sessions.values())

    def find(self, session_id: int, owner: str) -> FetchSession | None:
        """Find a session; None if the owner does not have it."""
        session = self._sessions.get(session_id)
        return None if session is None or session.owner != owner else session

    def close(self, session_id: int, owner: str) -> None:
        """End a session, if the owner has it."""
        session = self.find(session_id, owner)
        if session is not None:
            self._remove(session)

    @staticmethod
    def may_keep(topics: Iterable[str]) -> bool:
        """Return whether a session may have topics with these names. There are no topics with
        longer names than Kafka allows, and such names would take more memory than is accounted
        for."""
        return all(len(name) <= NAME_LENGTH_MAX for name in topics)

    def open(
        self, partitions: int, owner: str, connection: SessionConnection, *, uses_topic_ids: bool
    ) -> FetchSession | None:
        """A new session that has room for this many partitions, and has none yet. None if the
        limits do not allow it."""
        use = use_of(partitions)
        if partitions > self._limits.partitions_max or not self._make_room(owner, use, use):
            return None
        session = FetchSession(
            self._new_id(),
            owner,
            connection,
            uses_topic_ids=uses_topic_ids,
            view=self._view,
            watchers=self.watchers,
            now_ms=self._now_ms(),
        )
        self._sessions[session.id] = session
        self._count(session, use)
        return session

    def use(self, session: FetchSession, connection: SessionConnection, partitions: int) -> bool:
        """A request of `connection` uses the session, and will leave it with at most this
        number of partitions. Returns False if the limits do not allow this: the session is then
        closed."""
        session.used_ms = self._now_ms()
        session.connection = connection
        self._sessions.move_to_end(session.id)
        use, before = use_of(partitions), self._uses[session.id]
        more = SessionUse(0, use.bytes - before.bytes)
        if more.bytes > 0 and (
            partitions > self._limits.partitions_max
            or not self._make_room(session.owner, more, use, but=session)
        ):
            self._remove(session)
            return False
        if more.bytes:
            self._discount(session)
            self._count(session, use)
        return True

    def _new_id(self) -> int:
        while True:
            found = self._random.randint(1, EPOCH_MAX)
            if found not in self._sessions and found != NO_SESSION:
                return found

    def _count(self, session: FetchSession, use: SessionUse) -> None:
        self._uses[session.id] = use
        self._total.add(use)
        self._by_owner.setdefault(session.owner, SessionUse()).add(use)

    def _discount(self, session: FetchSession) -> None:
        use, owned = self._uses.pop(session.id), self._by_owner[session.owner]
        self._total.remove(use)
        owned.remove(use)
        if not owned.slots:
            del self._by_owner[session.owner]

    def _remove(self, session: FetchSession) -> None:
        del self._sessions[session.id]
        self._discount(session)
        session.close()

    # Eviction --------------------------------------------------------------------------------

    def _make_room(
        self, owner: str, more: SessionUse, whole: SessionUse, but: FetchSession | None = None
    ) -> bool:
        """Evict sessions until there is room for `more`, which makes a session of `whole`. `but` is
        not evicted. Returns False, and evicts nothing, if the rules do not give enough room."""
        wanted = SessionUse(self._total.slots, self._total.bytes)
        wanted.add(more)
        victims: list[FetchSession] = []
        if wanted.exceeds(self._limits):
            for victim in self._victims(owner, more, whole):
                if victim is but:
                    continue
                victims.append(victim)
                wanted.remove(self._uses[victim.id])
                if not wanted.exceeds(self._limits):
                    break
            else:
                return False
        for victim in victims:
            self._remove(victim)
        self.evictions += len(victims)
        return True

    def _victims(self, owner: str, more: SessionUse, whole: SessionUse) -> Iterator[FetchSession]:
        """The sessions that may be evicted, the first one first."""
        now_ms = self._now_ms()
        left: list[FetchSession] = []
        for session in self._sessions.values():
            if now_ms - session.used_ms > EVICTION_MS or session.connection.is_gone:
                yield session
            else:
                left.append(session)
        yield from self._of_larger_owners(left, owner, more)
        own = [session for session in left if session.owner == owner]
        for session in sorted(own, key=lambda each: (self._uses[each.id].bytes, each.id)):
            is_old = now_ms - session.created_ms > EVICTION_MS
            if is_old and self._uses[session.id].bytes < whole.bytes:
                yield session

    def _of_larger_owners(
        self, sessions: list[FetchSession], owner: str, more: SessionUse
    ) -> Iterator[FetchSession]:
        """Return sessions of the owners that use most of the resource that is short. Of each such
        owner, the session that was unused for longest comes first. Ends when no other owner uses
        more than `owner` will."""
        by_slots = self._total.slots + more.slots > self._limits.slots
        uses: dict[str, int] = {}
        owned: dict[str, list[FetchSession]] = {}
        for session in reversed(sessions):
            owned.setdefault(session.owner, []).append(session)
            uses[session.owner] = uses.get(session.owner, 0) + self._size(session, by_slots)
        own = uses.pop(owner, 0) + (more.slots if by_slots else more.bytes)
        while uses:
            largest = max(uses, key=lambda each: uses[each])
            if uses[largest] <= own:
                return
            session = owned[largest].pop()
            uses[largest] -= self._size(session, by_slots)
            yield session

    def _size(self, session: FetchSession, by_slots: bool) -> int:
        use = self._uses[session.id]
        return use.slots if by_slots else use.bytes
