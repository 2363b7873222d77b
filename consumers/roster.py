"""The members of one group: who they are, what they support, what they wait for.

Invariants: a static id belongs to one member. The leader is a member. All members support at least
one common protocol: code that adds a member asks `supports` first. `size_bytes` is the cost of the
members without their assignments. Order is the order of joining, so every choice among members is
the same on every run.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import CallerIdentity, GroupProtocol, JoinedMember, Token

ENTRY_BYTES = 128
"""An upper bound of what a member or a pending member costs in a snapshot beside its own bytes."""
_PROTOCOL_BYTES = 16
_MEMBER_OBJECT_BYTES = 512
_PROTOCOL_OBJECT_BYTES = 144
PENDING_OBJECT_BYTES = 256
"""Size of the Python objects of a pending member, without the bytes of its snapshot."""


@dataclass(slots=True)
class GroupMember:
    """A member. `deadline_ms`: when it counts as dead; None while nothing is expected of it.
    `is_new`: it has not been in a generation yet, and its first join can expire.
    `former_generation`: the member's epoch in the group of the consumer protocol that this group
    was, if that epoch differs from the group's generation. None from the next generation on."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    deadline_ms: int | None = None
    join_token: Token | None = None
    sync_token: Token | None = None
    former_generation: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a member waits for this coordinator: its silence then means nothing."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    @property
    def size_bytes(self) -> int:
        ids = (self.member_id, self.instance_id, self.client_id, self.client_host)
        return member_bytes(ids, self.protocols)

    def metadata(self, protocol_name: str) -> bytes:
        return next(each.metadata for each in self.protocols if each.name == protocol_name)


def text_bytes(texts: Iterable[str | None]) -> int:
    return sum(len(text.encode()) for text in texts if text is not None)


def member_bytes(ids: Iterable[str | None], protocols: Sequence[GroupProtocol]) -> int:
    return (
        ENTRY_BYTES
        + text_bytes(ids)
        + sum(_PROTOCOL_BYTES + text_bytes((name,)) + len(data) for name, data in protocols)
    )


def object_bytes(protocols: Sequence[GroupProtocol]) -> int:
    """Size of the Python objects of a member, without the bytes of its snapshot."""
    return _MEMBER_OBJECT_BYTES + _PROTOCOL_OBJECT_BYTES * len(protocols)


@dataclass(slots=True)
class Roster:
    leader_id: str | None = None
    size_bytes: int = 0
    _members: dict[str, GroupMember] = field(default_factory=dict)
    _static_ids: dict[str, str] = field(default_factory=dict)
    _supporters: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[GroupMember]:
        """Return the members. A caller that removes members meanwhile must iterate over a list of
        them."""
        return iter(self._members.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> GroupMember:
        return self._members[member_id]

    def static_member_id(self, instance_id: str) -> str | None:
        return self._static_ids.get(instance_id)

    @property
    def joins_waiting(self) -> int:
        return sum(member.join_token is not None for member in self)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def refusal(self, identity: CallerIdentity) -> ErrorCode | None:
        """Why the bearer is not this member; its generation is not looked at."""
        if identity.instance_id is not None:
            holder = self.static_member_id(identity.instance_id)
            if holder is None:
                return ErrorCode.unknown_member_id
            if holder != identity.member_id:
                return ErrorCode.fenced_instance_id
        return None if identity.member_id in self else ErrorCode.unknown_member_id

    def find(self, member_id: str, instance_id: str | None) -> GroupMember | None:
        """The member of that id, or else the one who holds that instance id."""
        if member_id not in self._members and instance_id is not None:
            member_id = self._static_ids.get(instance_id, member_id)
        return self._members.get(member_id)

    def all_support(self, protocol_name: str) -> bool:
        return self._supporters[protocol_name] == len(self)

    def supports(self, protocols: Sequence[GroupProtocol]) -> bool:
        return any(self.all_support(each.name) for each in protocols)

    def add(self, member: GroupMember) -> None:
        if member.member_id in self or member.instance_id in self._static_ids:
            raise ValueError(f"{member.member_id} or its instance id is a member already")
        self._members[member.member_id] = member
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.member_id
        self._count(member, 1)
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member_id: str) -> GroupMember:
        member = self._members.pop(member_id)
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        self._count(member, -1)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self._members), None)
        return member

    def rename(self, old_id: str, new_id: str) -> GroupMember:
        """A static member is back under a new id: place, leadership and assignment stay."""
        member = self._members[old_id]
        if new_id in self or member.instance_id is None:
            raise ValueError(f"{old_id} cannot become {new_id}")
        self._count(member, -1)
        member.member_id = new_id
        self._count(member, 1)
        self._members = {each.member_id: each for each in self}
        self._static_ids[member.instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        return member

    def set_protocols(self, member: GroupMember, protocols: tuple[GroupProtocol, ...]) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def _count(self, member: GroupMember, sign: int) -> None:
        self.size_bytes += sign * member.size_bytes
        for name in {each.name for each in member.protocols}:
            self._supporters[name] += sign
            if not self._supporters[name]:
                del self._supporters[name]

    def elect_leader(self) -> bool:
        """The leader stays if it rejoined, else the first who did leads; False: nobody did."""
        if self.leader_id is None:
            return False
        if self._members[self.leader_id].join_token is None:
            joined = (each.member_id for each in self if each.join_token is not None)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader_id = elected
        return True

    def vote(self) -> str:
        """Return the protocol that most members prefer among those that all support. In a tie, the
        protocol that got a vote first wins."""
        shared = {name for name, count in self._supporters.items() if count == len(self)}
        votes = Counter(_preferred(member, shared) for member in self)
        return votes.most_common(1)[0][0]

    def listing(self, protocol_name: str) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(each.member_id, each.instance_id, each.metadata(protocol_name))
            for each in self
        )


def _preferred(member: GroupMember, shared: Collection[str]) -> str:
    return next(each.name for each in member.protocols if each.name in shared)
