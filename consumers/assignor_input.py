"""Input of a server-side assignor: members, their topics, and the assignment before. Pure."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from bucketlog.log_format.model import TopicId

Assignment: TypeAlias = Mapping[TopicId, frozenset[int]]
"""Partition numbers by topic, without empty sets."""
Assignments: TypeAlias = dict[str, Assignment]
"""Assignments by member id."""
NOTHING: Assignment = {}


class MemberSpec(NamedTuple):
    """A member for an assignor. `topics`: subscribed topics that exist. `assigned`: the member's
    part of the target assignment so far."""

    topics: frozenset[TopicId]
    assigned: Assignment
    instance_id: str | None = None


class AssignorInput(NamedTuple):
    """The input of an assignor. `partitions`: number of partitions, at least of each subscribed
    topic. The order of `members` decides between equal choices."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[TopicId, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        first, *rest = (each.topics for each in self.members.values())
        return all(topics == first for topics in rest)

    def subscribed(self) -> list[TopicId]:
        """The topics that at least one member subscribes to, in order of their ids."""
        return sorted(frozenset[TopicId]().union(*(each.topics for each in self.members.values())))


def frozen(assignment: Mapping[TopicId, set[int]]) -> Assignment:
    return {topic: frozenset(numbers) for topic, numbers in assignment.items() if numbers}
