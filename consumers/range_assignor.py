"""The `range` assignor: each subscriber of a topic gets consecutive partitions. Pure.

Static members come first, by instance id, then dynamic members, by member id. So equal numbers of
partitions are co-partitioned. Source: KIP-848, Kafka's RangeAssignor.
"""

from collections import Counter
from itertools import accumulate

from bucketlog.consumers.assignor_input import Assignments, AssignorInput, frozen
from bucketlog.log_format.model import TopicId


def assign_range(wanted: AssignorInput) -> Assignments:
    subscribers = Counter(topic for each in wanted.members.values() for topic in each.topics)
    bounds = {
        topic: _bounds(wanted.partitions[topic], count) for topic, count in subscribers.items()
    }
    taken = Counter[TopicId]()
    assigned: Assignments = {}
    for member_id in sorted(wanted.members, key=lambda each: _rank(wanted, each)):
        ranges = dict[TopicId, set[int]]()
        for topic in wanted.members[member_id].topics:
            at = taken[topic]
            ranges[topic] = set(range(bounds[topic][at], bounds[topic][at + 1]))
            taken[topic] += 1
        assigned[member_id] = frozen(ranges)
    return assigned


def _rank(wanted: AssignorInput, member_id: str) -> tuple[bool, str]:
    instance_id = wanted.members[member_id].instance_id
    return instance_id is None, member_id if instance_id is None else instance_id


def _bounds(partitions: int, subscribers: int) -> list[int]:
    """Return the beginning of each range, and the end of the last one. Larger ranges come first."""
    size, larger = divmod(partitions, subscribers)
    return list(accumulate((size + (at < larger) for at in range(subscribers)), initial=0))
