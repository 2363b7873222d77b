"""The `uniform` assignor for members that all subscribe to the same topics. Their numbers of
partitions differ by one at most, and members keep what they have. Pure.

Source: KIP-848, Kafka's UniformHomogeneousAssignmentBuilder. Kafka's choice among equal ones is the
order of hash tables; here it is the order of members, topic ids and partition numbers.
"""

from bucketlog.consumers.assignor_input import (
    Assignments,
    AssignorInput,
    MemberSpec,
    frozen,
)
from bucketlog.consumers.balancing_assignor import assign_balanced
from bucketlog.log_format.model import TopicId


def assign_uniform(wanted: AssignorInput) -> Assignments:
    if not wanted.members:
        return {}
    if not wanted.is_homogeneous:
        return assign_balanced(wanted)
    return _Uniform(wanted).assign()


class _Uniform:
    """`free`: partitions that nobody has, and then those that members give up."""

    def __init__(self, wanted: AssignorInput) -> None:
        self._wanted = wanted
        topics = wanted.subscribed()
        had = {
            topic: set[int]().union(
                *(each.assigned.get(topic, ()) for each in wanted.members.values())
            )
            for topic in topics
        }
        self._free = [
            (topic, number)
            for topic in topics
            for number in range(wanted.partitions[topic])
            if number not in had[topic]
        ]
        self._total = sum(wanted.partitions[topic] for topic in topics)
        self._found: dict[str, dict[TopicId, set[int]]] = {}

    def assign(self) -> Assignments:
        count = len(self._wanted.members)
        quota, larger = divmod(self._total, count)
        room: dict[str, int] = {}
        for at, (member_id, spec) in enumerate(self._wanted.members.items()):
            left = self._keep(member_id, spec, quota + (larger > 0))
            may_be_larger = larger > 0
            if left and may_be_larger and count - at > larger:
                left -= 1  # a later member may have one more already
                may_be_larger = False
            room[member_id] = left
            larger -= may_be_larger
        free = iter(self._free)
        for member_id, left in room.items():
            for _, (topic, number) in zip(range(left), free, strict=False):
                self._found[member_id].setdefault(topic, set()).add(number)
        return {member_id: frozen(mine) for member_id, mine in self._found.items()}

    def _keep(self, member_id: str, spec: MemberSpec, quota: int) -> int:
        """The member keeps up to `quota` partitions. Returns how many more it may have."""
        mine = self._found[member_id] = {}
        for topic in sorted(spec.assigned.keys() & spec.topics):
            numbers = sorted(spec.assigned[topic])
            mine[topic] = set(numbers[:quota])
            self._free += [(topic, number) for number in numbers[quota:]]
            quota -= len(mine[topic])
        return quota
