"""Whatever order a sequencer makes segments visible in, their fold is the fold in ticket order.

Random logs of topics and commits; each segment depends on the earlier ones that have facts of its
topics' names or groups, and a commit on the creation of the topics it names, which its coordinator
has seen. A deletion and a commit do not depend on each other.
"""

import random

import pytest

from bucketlog.log_format.model import SegmentIndex
from bucketlog.metadata.facts import Fact
from bucketlog.metadata.fold import LogState, fold
from tests.models.indexes import commit, create, delete, forget, grow, partition, segment

NAMES, GROUPS = 3, ("g", "h")
SEGMENTS = 25


class SomeLog:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids: dict[int, int] = {}
        """The live topic of each name."""
        self.sizes: dict[int, int] = {}
        """Partitions by topic, deleted ones too."""
        self.changed_in: dict[int, list[int]] = {}
        """By topic: in which segment it got how many partitions (index + 1)."""
        self.last_of: dict[object, int] = {}
        self.segments: list[SegmentIndex] = []
        self.needs: list[set[int]] = []
        for number in range(SEGMENTS):
            self.needs.append(set())
            facts = [self.fact(number) for _ in range(self.random.choice([1, 1, 2, 3]))]
            self.segments.append(segment(number, {}, *facts))

    def follow(self, number: int, key: object) -> None:
        """The segment comes after the one before it that touches `key`."""
        if key in self.last_of:
            self.needs[number].add(self.last_of[key])
        self.last_of[key] = number

    def fact(self, number: int) -> Fact:
        if self.random.random() < 0.6 and self.sizes:
            return self.group_fact(number)
        name = self.random.randrange(NAMES)
        self.follow(number, name)
        topic = self.ids.get(name)
        if topic is None:
            topic = self.ids[name] = len(self.sizes) + 1
            size = self.random.randint(1, 3)
            made = create(topic, size, name=f"n{name}")
        elif self.random.random() < 0.5:
            del self.ids[name]
            return delete(topic)
        else:
            size = self.sizes[topic] + 1
            made = grow(topic, size)
        self.sizes[topic] = size
        self.changed_in.setdefault(topic, []).extend(
            [number] * (size - len(self.changed_in.get(topic, [])))
        )
        return made

    def group_fact(self, number: int) -> Fact:
        group = self.random.choice(GROUPS)
        self.follow(number, group)
        rows = []
        for _ in range(self.random.choice([1, 2, 3])):
            topic = self.random.choice(list(self.sizes))
            at = self.random.randrange(self.sizes[topic])
            self.needs[number].add(self.changed_in[topic][at])
            rows.append(partition(topic, at))
        if self.random.random() < 0.7:
            return commit(group, {row: self.random.randrange(1000) for row in rows}, at=number)
        return forget(group, *(rows if self.random.random() < 0.8 else []))

    def some_order(self) -> list[SegmentIndex]:
        left, order = set(range(SEGMENTS)), []
        while left:
            ready = [n for n in left if not (self.needs[n] - {n}) & left]
            chosen = self.random.choice(ready)
            left.remove(chosen)
            order.append(self.segments[chosen])
        return order


@pytest.mark.parametrize("seed", range(60))
def test_the_order_of_what_is_unrelated_does_not_matter(seed: int) -> None:
    log = SomeLog(seed)
    expected = fold(log.segments)
    for _ in range(10):
        state = LogState()
        for index in log.some_order():
            state.apply(index)
        assert state.topics == expected.topics
        assert state.partitions == expected.partitions
        assert vars(state.offsets) == vars(expected.offsets)


def test_the_logs_have_what_is_to_be_shown() -> None:
    """Commits that survive, and commits of topics that were deleted before and after them."""
    folded = [fold(SomeLog(seed).segments) for seed in range(60)]
    assert sum(bool(state.groups) for state in folded) > 30
    logs = [SomeLog(seed) for seed in range(60)]
    assert any(log.some_order() != log.segments for log in logs)
    assert sum(len(log.sizes) > len(log.ids) for log in logs) > 30
