"""The `uniform` assignor for members that subscribe to different topics. Pure.

First, free partitions go to the subscribers that have fewest. Then the topics are balanced in
rounds: the subscribers that have most give partitions to those that have fewest. This ends when a
round changes nothing, or after `ROUNDS_MAX`. Source: KIP-848, Kafka's
UniformHeterogeneousAssignmentBuilder, with its order of topics and members.
"""

from collections.abc import Sequence

from bucketlog.consumers.assignor_input import Assignments, AssignorInput
from bucketlog.log_format.model import TopicId

ROUNDS_MAX = 16
_NOBODY = -1


def assign_balanced(wanted: AssignorInput) -> Assignments:
    return _Balance(wanted).assign()


class _Loads:
    """The subscribers of one topic in order of their loads: a lower group that takes partitions,
    and an upper group that gives them. Each group grows when all its members have the same load."""

    def __init__(self, members: Sequence[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._order = sorted(members, key=lambda member: (sizes[member], member))
        self.spread = sizes[self._order[-1]] - sizes[self._order[0]]
        self._low_end, self._low_level, self._next_low = 0, sizes[self._order[0]] - 1, 0
        count = len(self._order)
        self._high_start, self._high_end, self._next_high = count, count, count - 1
        self._high_level = sizes[self._order[-1]] + 1

    def is_balanced(self) -> bool:
        return self._high_level - self._low_level <= 1

    def next_lowest(self) -> int:
        if self._next_low >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._order) and self._load(self._low_end) == self._low_level:
                self._low_end += 1
            self._next_low = 0
        self._next_low += 1
        return self._order[self._next_low - 1]

    def next_highest(self) -> int | None:
        """Return the next member of the upper group. None: no member has a partition to give."""
        if self._next_high < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high_level = self._load(self._high_start - 1)
            else:
                self._high_level -= 1
            while self._high_start > 0 and self._load(self._high_start - 1) == self._high_level:
                self._high_start -= 1
            self._next_high = self._high_end - 1
        if self._next_high < 0:
            return None
        self._next_high -= 1
        return self._order[self._next_high + 1]

    def exclude_highest(self) -> None:
        """The member that `next_highest` returned last has nothing of the topic to give."""
        last, at = self._high_end - 1, self._next_high + 1
        self._order[at], self._order[last] = self._order[last], self._order[at]
        self._high_end = last

    def _load(self, at: int) -> int:
        return self._sizes[self._order[at]]


class _Balance:
    def __init__(self, wanted: AssignorInput) -> None:
        self._wanted = wanted
        self._ids = list(wanted.members)
        self._sizes = [0] * len(self._ids)
        self._subscribers: dict[TopicId, list[int]] = {}
        for member, spec in enumerate(wanted.members.values()):
            for topic in spec.topics:
                self._subscribers.setdefault(topic, []).append(member)
        self._owners = {topic: [_NOBODY] * wanted.partitions[topic] for topic in self._subscribers}
        self._topics = sorted(self._subscribers, key=self._rank)

    def _rank(self, topic: TopicId) -> tuple[float, int, TopicId]:
        """KnownTopics with many partitions for each subscriber come first."""
        subscribers = len(self._subscribers[topic])
        return -self._wanted.partitions[topic] / subscribers, subscribers, topic

    def assign(self) -> Assignments:
        self._keep()
        self._give_free()
        self._balance()
        found: dict[str, dict[TopicId, set[int]]] = {member_id: {} for member_id in self._ids}
        for topic, owners in self._owners.items():
            for number, owner in enumerate(owners):
                found[self._ids[owner]].setdefault(topic, set()).add(number)
        return {
            member_id: {topic: frozenset(numbers) for topic, numbers in mine.items()}
            for member_id, mine in found.items()
        }

    def _keep(self) -> None:
        for member, spec in enumerate(self._wanted.members.values()):
            for topic in spec.assigned.keys() & spec.topics:
                owners = self._owners[topic]
                for number in spec.assigned[topic]:
                    if number < len(owners):
                        owners[number] = member
                        self._sizes[member] += 1

    def _give_free(self) -> None:
        for topic in self._topics:
            owners = self._owners[topic]
            free = [number for number, owner in enumerate(owners) if owner == _NOBODY]
            if free:
                loads = _Loads(self._subscribers[topic], self._sizes)
                for number in free:
                    self._move(topic, number, loads.next_lowest())

    def _move(self, topic: TopicId, number: int, member: int) -> None:
        owners = self._owners[topic]
        if owners[number] != _NOBODY:
            self._sizes[owners[number]] -= 1
        owners[number] = member
        self._sizes[member] += 1

    def _balance(self) -> None:
        topics = [topic for topic in self._topics if len(self._subscribers[topic]) > 1]
        last_changed: TopicId | None = None
        for _ in range(ROUNDS_MAX):
            for topic in topics:
                if topic == last_changed:
                    return
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def _balance_topic(self, topic: TopicId) -> int:
        """Returns the number of partitions that have moved."""
        loads = _Loads(self._subscribers[topic], self._sizes)
        if loads.spread <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for number, owner in enumerate(self._owners[topic]):
            owned.setdefault(owner, []).append(number)
        moved = 0
        while not loads.is_balanced():
            giver = loads.next_highest()
            while giver is not None and not owned.get(giver):
                loads.exclude_highest()
                giver = loads.next_highest()
            if giver is None:
                break
            number = owned[giver].pop()
            taker = loads.next_lowest()
            if loads.is_balanced():
                break
            self._move(topic, number, taker)
            moved += 1
        return moved
