"""The members of one group of the consumer protocol, and their partitions.

Invariants: a partition belongs to one member, also while that member revokes it; an instance id
belongs to one member; the counts match the members. Order is the order of joining.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from bucketlog.consumers.modern_member import ModernMember, Owned
from bucketlog.log_format.model import TopicId

MEMBER_OBJECT_BYTES = 2_048
"""An upper bound of the memory of a member's Python objects, without its subscription."""
PARTITION_BYTES = 32
"""An upper bound of a partition's memory in a member and its target."""


class ModernMembers:
    def __init__(self) -> None:
        self._members: dict[str, ModernMember] = {}
        self._static_ids: dict[str, str] = {}
        self._owners: dict[TopicId, dict[int, str]] = {}
        self._names = Counter[str]()
        self._protocols = Counter[str]()
        self._assignors = Counter[str]()
        self._lone_assignor: str | None = None
        """The assignor of the member that was put last, if no other member asks for this assignor.
        None after such a member was removed, or after a target was computed. Members without an
        assignor do not count."""
        self.regexes = Counter[str]()
        """Number of members by the regular expression that they subscribe to."""
        self.classic_count = 0
        self.size_bytes = 0
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[ModernMember]:
        return iter(self._members.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> ModernMember:
        return self._members[member_id]

    def get(self, member_id: str) -> ModernMember | None:
        return self._members.get(member_id)

    def static(self, instance_id: str | None) -> ModernMember | None:
        """The member that holds the instance id."""
        if instance_id is None or instance_id not in self._static_ids:
            return None
        return self._members[self._static_ids[instance_id]]

    def names(self) -> frozenset[str]:
        """The topics that members subscribe to by name."""
        return frozenset(self._names)

    def is_free(self, topic: TopicId, partition: int) -> bool:
        return partition not in self._owners.get(topic, {})

    def preferred_assignor(self) -> str | None:
        """The assignor that most members ask for, or None. If as many ask for `range` as for
        `uniform`, `uniform` is preferred: Apache Kafka 4.3.1 has it first in its hash table."""
        counts = self._assignors
        return max(counts, key=lambda name: (counts[name], name), default=None)

    def take_assignor(self) -> str | None:
        """The assignor of the next target. If each assignor has one member, the member that changed
        last decides; otherwise, the result is `preferred_assignor`. Source: Kafka's
        ConsumerGroup.computePreferredServerAssignor; `HashMap.compute` puts a new key first."""
        last, self._lone_assignor = self._lone_assignor, None
        if last is not None and max(self._assignors.values()) == 1:
            return last
        return self.preferred_assignor()

    def supports(self, names: list[str]) -> bool:
        """Return whether all members of the classic protocol support one of these protocols."""
        if not self._members:
            return bool(names)
        return any(self._protocols[name] == self.classic_count for name in names)

    def put(self, member: ModernMember) -> None:
        """Add the member, or replace its former value. Raises `ValueError` for a partition of
        another member: it would be read twice."""
        before = self._members.get(member.member_id)
        if before is not None:
            self._count(before, -1)
        self._members[member.member_id] = member
        self._count(member, 1)
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> ModernMember:
        member = self._members.pop(member_id)
        self._count(member, -1)
        if member.instance_id is not None and self._static_ids.get(member.instance_id) == member_id:
            del self._static_ids[member.instance_id]
        return member

    def _count(self, member: ModernMember, sign: int) -> None:
        _add(self._names, member.topics, sign)
        _add(self.regexes, (member.regex,) if member.regex else (), sign)
        _add(self._assignors, (member.assignor,) if member.assignor else (), sign)
        if member.assignor:
            is_lone = sign > 0 and self._assignors[member.assignor] == 1
            self._lone_assignor = member.assignor if is_lone else None
        if member.classic is not None:
            self.classic_count += sign
            _add(self._protocols, {each.name for each in member.classic.protocols}, sign)
        self.size_bytes += sign * member.size_bytes
        for owned in (member.owned, member.pending_revocation):
            (self._own if sign > 0 else self._disown)(member.member_id, owned)

    def _own(self, member_id: str, owned: Owned) -> None:
        for topic, numbers in owned.items():
            owners = self._owners.setdefault(topic, {})
            for number in numbers:
                if owners.setdefault(number, member_id) != member_id:
                    raise ValueError(f"partition {number} is {owners[number]}'s, not {member_id}'s")
            self.partition_count += len(numbers)

    def _disown(self, member_id: str, owned: Owned) -> None:
        for topic, numbers in owned.items():
            owners = self._owners.get(topic, {})
            for number in numbers:
                owners.pop(number, None)
            if not owners:
                self._owners.pop(topic, None)
            self.partition_count -= len(numbers)


def _add(counts: Counter[str], names: Iterable[str], sign: int) -> None:
    for name in names:
        counts[name] += sign
        if not counts[name]:
            del counts[name]
