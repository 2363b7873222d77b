"""Roles of brokers: which broker has a partition, a group or a duty, by rendezvous hashing. Pure.

Invariants: brokers that see the same members agree. The numbers of a topic's partitions that two
brokers lead differ by at most one. If a broker leaves or comes, mostly its own share moves.
"""

from array import array
from collections.abc import Generator, Sequence
from hashlib import blake2b, shake_128

from bucketlog.metadata.sequencer.live_brokers import LiveBroker

_ZONE = "zone="
_CHOICES_A_STEP = 4_096
"""Weights that a step of `deal` compares: some tenths of a millisecond."""
_CHOICES_A_UNIT = 64


def zone_of_client(client_id: str) -> str:
    """The zone that a client names in its `client.id`, as in `billing,zone=eu-1a`; '' if none."""
    _, found, rest = client_id.partition(_ZONE)
    if not found:
        return ""
    for end in ",; ":
        rest = rest.partition(end)[0]
    return rest


def by_preference(members: Sequence[LiveBroker], what: bytes) -> list[LiveBroker]:
    """Return the members in the order in which they should have `what`."""
    return sorted(members, key=lambda member: weight(member.node_id, what), reverse=True)


def weight(node_id: int, what: bytes) -> bytes:
    return blake2b(what, digest_size=8, salt=node_id.to_bytes(8, "big")).digest()


def deal(
    members: Sequence[LiveBroker], what: bytes, partitions: int
) -> Generator[int, None, list[LiveBroker]]:
    """The leaders of partitions 0, 1, ... of the topic `what`, in steps as `Turns` runs them.

    Each partition goes to the broker with the highest weight for it. Brokers with more than an
    equal share keep the partitions for which their weight is highest. Each remaining partition
    goes to the broker with the highest weight among those with less than an equal share.
    """
    order = sorted(members, key=lambda member: member.node_id)
    weights = [_weights(member.node_id, what, partitions) for member in order]
    yield 1 + len(order) * partitions // _CHOICES_A_UNIT
    wanted: list[list[int]] = [[] for _ in order]
    a_step = max(1, _CHOICES_A_STEP // len(order))
    for start in range(0, partitions, a_step):
        rows = (row[start : start + a_step] for row in weights)
        for partition, column in enumerate(zip(*rows, strict=True), start):
            wanted[column.index(max(column))].append(partition)
        yield 1 + a_step * len(order) // _CHOICES_A_UNIT
    share, rest = divmod(partitions, len(order))
    larger = {member.node_id for member in by_preference(order, what)[:rest]}
    room = [share + (member.node_id in larger) for member in order]
    leaders: dict[int, LiveBroker] = {}
    left_over: list[int] = []
    for at, (member, own) in enumerate(zip(order, wanted, strict=True)):
        own.sort(key=weights[at].__getitem__, reverse=True)
        leaders.update(dict.fromkeys(own[: room[at]], member))
        left_over += own[room[at] :]
        room[at] = max(0, room[at] - len(own))
    for partition in sorted(left_over):
        has_room = (at for at, places in enumerate(room) if places)
        at = max(has_room, key=lambda at: weights[at][partition])
        leaders[partition] = order[at]
        room[at] -= 1
        yield 1 + len(order) // 16
    return [leaders[partition] for partition in range(partitions)]


def _weights(node_id: int, what: bytes, partitions: int) -> "array[int]":
    """A broker's weights for partitions 0, 1, ...; more partitions do not change them."""
    weights = array("I")
    weights.frombytes(
        shake_128(what + node_id.to_bytes(8, "big")).digest(weights.itemsize * partitions)
    )
    return weights
