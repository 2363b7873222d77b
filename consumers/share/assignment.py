"""Assignment of partitions to the members of a share group. Pure.

A partition may have many members. Invariants: each partition has a member if any is subscribed to
it; each member has a partition if there is one to which it is subscribed; the members' numbers of
partitions, and the partitions' numbers of members, differ by at most one within a pool. Members
keep what they have, as far as that allows. A pool is the group if all members have the same
subscription, else a topic. Source: Kafka's SimpleAssignor.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapify, heapreplace
from typing import TypeAlias, TypeVar

from bucketlog.log_format.model import TopicIdPartition

T = TypeVar("T")

Subscriptions: TypeAlias = Mapping[str, frozenset[str]]
"""Names of topics by member."""
Partitions: TypeAlias = Mapping[str, Sequence[TopicIdPartition]]
"""Partitions by topic; topics that do not exist are absent."""
Assignment: TypeAlias = Mapping[str, AbstractSet[TopicIdPartition]]
"""Assigned partitions by member."""


def assign(
    subscriptions: Subscriptions, partitions: Partitions, current: Assignment
) -> dict[str, frozenset[TopicIdPartition]]:
    found: dict[str, set[TopicIdPartition]] = {member: set() for member in subscriptions}
    topics = sorted(set().union(*subscriptions.values()) & partitions.keys())
    if len(set(subscriptions.values())) <= 1:
        pool = [partition for topic in topics for partition in partitions[topic]]
        _share(sorted(subscriptions), pool, current, found)
    else:
        for topic in topics:
            members = sorted(each for each, names in subscriptions.items() if topic in names)
            _share(members, partitions[topic], current, found)
    return {member: frozenset(parts) for member, parts in found.items()}


def _share(
    members: Sequence[str],
    pool: Sequence[TopicIdPartition],
    current: Assignment,
    found: Mapping[str, set[TopicIdPartition]],
) -> None:
    if not members or not pool:
        return
    if len(pool) >= len(members):
        owner = {partition: member for member in members for partition in current.get(member, ())}
        wanted = [owner.get(partition) for partition in pool]
        for partition, member in zip(pool, _even(wanted, members), strict=True):
            found[member].add(partition)
    else:
        places = set(pool)
        kept = [min(places & set(current.get(member, ())), default=None) for member in members]
        for member, partition in zip(members, _even(kept, pool), strict=True):
            found[member].add(partition)


def _even(wanted: Sequence[T | None], targets: Sequence[T]) -> list[T]:
    """A target for each wish: the wished one if it has room, else one of those with the fewest.
    The targets get equal shares, as far as possible; the first wishes get the larger ones."""
    share, larger = divmod(len(wanted), len(targets))
    counts = dict.fromkeys(targets, 0)
    found: list[T | None] = []
    for wish in wanted:
        has_room = wish is not None and wish in counts and counts[wish] < share
        if wish is not None and not has_room and counts.get(wish) == share and larger:
            larger, has_room = larger - 1, True
        found.append(wish if has_room else None)
        if wish is not None and has_room:
            counts[wish] += 1
    heap = [(count, at) for at, count in enumerate(counts.values())]
    heapify(heap)
    chosen: list[T] = []
    for target in found:
        if target is not None:
            chosen.append(target)
            continue
        count, at = heap[0]
        heapreplace(heap, (count + 1, at))
        chosen.append(targets[at])
    return chosen
