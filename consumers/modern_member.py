"""A member of a group of the consumer protocol, as a value: each change is another value."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from bucketlog.consumers.group_messages import GroupProtocol
from bucketlog.consumers.roster import ENTRY_BYTES, member_bytes, text_bytes
from bucketlog.log_format.model import TopicId

Owned: TypeAlias = Mapping[TopicId, Mapping[int, int]]
"""Partitions by topic, each with the epoch in which the member got it (KIP-1251)."""


class MemberState(StrEnum):
    """The states of a member. `UNREVOKED`: it must give partitions up first. `UNRELEASED`:
    partitions of its target still belong to others."""

    STABLE = "stable"
    UNREVOKED = "unrevoked"
    UNRELEASED = "unreleased"


class ClassicPart(NamedTuple):
    """The classic part of a member that uses the classic protocol in a modern group (live
    migration)."""

    session_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]


@dataclass(frozen=True, slots=True)
class ModernMember:
    """A member. `assigned` and `revoking` belong to the member: nobody else gets them.
    `previous_epoch` is accepted from a member that missed a response. `rebalance_timeout_ms` bounds
    revoking."""

    member_id: str
    member_epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    assigned: Owned | None = None
    revoking: Owned | None = None
    classic: ClassicPart | None = None

    @property
    def owned(self) -> Owned:
        return self.assigned or {}

    @property
    def pending_revocation(self) -> Owned:
        return self.revoking or {}

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def moved_to(self, epoch: int) -> "ModernMember":
        return replace(self, member_epoch=epoch, previous_epoch=self.member_epoch)

    def assignment_epoch(self, topic_id: TopicId, partition: int) -> int | None:
        """Return the epoch in which the member got the partition. None: the member does not have
        it."""
        for owned in (self.owned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    @property
    def size_bytes(self) -> int:
        """Size of the member in a snapshot, without partitions."""
        ids = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.client_host)
        protocols = () if self.classic is None else self.classic.protocols
        texts = text_bytes(self.topics) + text_bytes((self.regex, self.assignor))
        return ENTRY_BYTES + member_bytes(ids, protocols) + texts + 3 * len(self.topics)


def partition_numbers(owned: Owned) -> dict[TopicId, frozenset[int]]:
    return {topic: frozenset(numbers) for topic, numbers in owned.items() if numbers}


def contains(owned: Owned, topic_id: TopicId, numbers: Collection[int]) -> bool:
    mine = owned.get(topic_id, {})
    return all(number in mine for number in numbers)
