"""The share sessions of this broker: which partitions a member fetches, and in which order it asks.

Invariant: a request is taken once: the epoch of a session grows with each request. A session ends
with the connection that opened it. The member may acknowledge on another connection. Source:
KIP-932; Kafka's ShareSessionCache and SharePartitionManager.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition

FIRST_EPOCH, LAST_EPOCH = 0, -1
_EPOCH_MAX = 2**31 - 1


class SessionKey(NamedTuple):
    group: str
    member: str


class SessionOwner(Protocol):
    """The connection that opened a session."""

    @property
    def is_gone(self) -> bool: ...


@dataclass(slots=True)
class ShareSession:
    """A member's session. `epoch` is that of the next request. `touched` are all partitions that
    the member had: it may hold records there."""

    owner: SessionOwner
    epoch: int = 1
    partitions: dict[TopicIdPartition, None] = field(default_factory=dict)
    touched: set[TopicIdPartition] = field(default_factory=set)

    def add(self, partitions: Iterable[TopicIdPartition]) -> None:
        self.partitions.update(dict.fromkeys(partitions))
        self.touched.update(self.partitions)

    def rotate(self) -> list[TopicIdPartition]:
        """Return all partitions. The first one comes last in the next call, so that each gets its
        turn."""
        order = list(self.partitions)
        if len(order) > 1:
            del self.partitions[order[0]]
            self.partitions[order[0]] = None
        return order


class ShareSessions:
    def __init__(self, *, sessions_max: int, partitions_max: int) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._sessions_max = sessions_max
        self._partitions_max = partitions_max

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def open(self, key: SessionKey, owner: SessionOwner) -> ShareSession | ErrorCode:
        """A new session in the place of an earlier one, which the caller has released."""
        if key not in self._sessions and len(self._sessions) >= self._sessions_max:
            return ErrorCode.share_session_limit_reached
        session = self._sessions[key] = ShareSession(owner)
        return session

    def step(self, key: SessionKey, epoch: int) -> ShareSession | ErrorCode:
        """Take the next request of a session, or its last one (epoch -1), on any connection."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.share_session_not_found
        if epoch != LAST_EPOCH:
            if epoch != session.epoch:
                return ErrorCode.invalid_share_session_epoch
            session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return session

    def has_room(self, session: ShareSession, more: int) -> bool:
        return len(session.touched) + more <= self._partitions_max

    def close(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.pop(key, None)

    def gone(self) -> list[SessionKey]:
        """Sessions whose connections have ended."""
        return [key for key, session in self._sessions.items() if session.owner.is_gone]
