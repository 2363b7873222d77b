"""Who is to have a partition, a group or a duty, by rendezvous hashing. Pure.

Invariant: brokers that see the same members agree. If a broker leaves, only its share moves; if
one comes, it takes its share of all others.
"""

from collections.abc import Sequence
from hashlib import blake2b

from bucketlog.metadata.sequencer.live_brokers import LiveBroker

_ZONE = "zone="


def zone_of_client(client_id: str) -> str:
    """The zone that a client names in its `client.id`, as in `billing,zone=eu-1a`; '' if none."""
    _, found, rest = client_id.partition(_ZONE)
    if not found:
        return ""
    for end in ",; ":
        rest = rest.partition(end)[0]
    return rest


def by_preference(members: Sequence[LiveBroker], what: bytes) -> list[LiveBroker]:
    """Members in the order in which they are to have `what`."""
    return sorted(members, key=lambda member: weight(member.node_id, what), reverse=True)


def weight(node_id: int, what: bytes) -> bytes:
    return blake2b(what, digest_size=8, salt=node_id.to_bytes(8, "big")).digest()
