"""Requests to a group and its answers, as values without wire versions or sockets.

A handler turns a request of any version into these (rebalance timeout of JoinGroup 0 = its session
timeout, LeaveGroup 0-2 = one leaving member, instance ids are None before KIP-345) and an answer
back. Protocols and metadata are opaque bytes here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, NewType, TypeAlias

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.committed_offset import CommittedOffset

Token = NewType("Token", int)
"""A request that may be answered later. The caller chooses it and never uses one twice."""

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1
CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupState(StrEnum):
    """Kafka's states; the values are what ListGroups and DescribeGroups say."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupProtocol(NamedTuple):
    """An assignor that the member can use, and the member's data for the leader under it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A JoinGroup request. `member_id_required` (JoinGroup 4 and up): a new dynamic member joins in
    two steps (KIP-394). `may_skip_assignment` (JoinGroup 9 and up): a returning static leader gets
    the members and does not assign anew (KIP-814). `protocols` are in the member's order of
    preference."""

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]
    instance_id: str | None = None
    member_id_required: bool = True
    may_skip_assignment: bool = True


class JoinedMember(NamedTuple):
    """A member as the leader sees it; metadata is that of the chosen protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResponse:
    """The answer to a JoinGroup. `members` is empty for all but the leader."""

    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = UNKNOWN_MEMBER_ID
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class CallerIdentity(NamedTuple):
    """Identity that a member gives in its request. A consumer outside groups commits with
    `ANYBODY`."""

    member_id: str
    generation: int
    instance_id: str | None = None


ANYBODY = CallerIdentity(UNKNOWN_MEMBER_ID, NO_GENERATION)


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A SyncGroup request. Only the leader's `assignments` (by member id) count. Type and name are
    None before SyncGroup 5. If they are given, they must be the group's."""

    identity: CallerIdentity
    assignments: tuple[tuple[str, bytes], ...] = ()
    protocol_type: str | None = None
    protocol_name: str | None = None


@dataclass(frozen=True, slots=True)
class SyncResponse:
    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


Response: TypeAlias = JoinResponse | SyncResponse


def refused_as(response: Response, error: ErrorCode) -> Response:
    """A response of the same type, with the error instead of a result."""
    if isinstance(response, JoinResponse):
        return JoinResponse(error, response.member_id)
    return SyncResponse(error)


class GroupResponse(NamedTuple):
    """The answer to the request that came with `token`: there is exactly one."""

    token: Token
    response: Response


class LeavingMember(NamedTuple):
    """A member that leaves, by member id, or (by an administrator) by instance id with an empty
    member id."""

    member_id: str
    instance_id: str | None = None


class MemberLeaveResult(NamedTuple):
    member_id: str
    instance_id: str | None
    error: ErrorCode


class LeaveOutcome(NamedTuple):
    """The outcome of a LeaveGroup. `members` are in the request's order. `answers` go to other
    members, which waited for those that left."""

    error: ErrorCode
    members: tuple[MemberLeaveResult, ...]
    answers: list[GroupResponse]


class DescribedMember(NamedTuple):
    """A member as DescribeGroups shows it. `metadata` is empty unless the group is stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group as DescribeGroups shows it; `protocol_name` is empty unless the group is stable."""

    group_id: str
    state: GroupState
    protocol_type: str
    protocol_name: str
    members: tuple[DescribedMember, ...]


class FetchedOffsets(NamedTuple):
    """The committed offsets of a group. `pending`: partitions for which a transaction that has not
    ended has offsets of the group; filled only if stable offsets are required (KIP-447)."""

    committed: Mapping[TopicIdPartition, CommittedOffset]
    pending: frozenset[TopicIdPartition] = frozenset()
