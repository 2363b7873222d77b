"""Encoded topics of Metadata responses: an entry is used only while its leaders are right."""

import struct
from dataclasses import replace
from uuid import UUID

from bucketlog.log_format.model import TopicId
from bucketlog.metadata.fold import TopicState
from bucketlog.stateless_broker.handlers.encoded_topics import EncodedTopics, LeaderPlace
from bucketlog.stateless_broker.membership.membership import Membership
from tests.unit.test_membership import member, membership_of

TOPIC = TopicState(TopicId(UUID(int=5).bytes), "flights", 12, {})
PLACE = LeaderPlace("", "PLAINTEXT")


def leaders(encoded: EncodedTopics) -> set[int]:
    """The leaders of the encoded partitions (Metadata 1: error, partition, leader, two arrays of
    one broker)."""
    out: list[bytes] = []
    for _ in encoded.steps(TOPIC, 1, PLACE, out):
        pass
    head = struct.calcsize(">h") + struct.calcsize(">h") + len(TOPIC.name) + 1 + 4
    rows = struct.iter_unpack(">hiiiiii", b"".join(out)[head:])
    return {leader for _, _, leader, *_ in rows}


async def cluster() -> tuple[Membership, EncodedTopics]:
    membership, _ = await membership_of(0, member(0), member(1), member(2))
    return membership, EncodedTopics(membership, bytes_max=1 << 20)


async def test_an_entry_is_used_again() -> None:
    _, encoded = await cluster()
    first, second = [list[bytes]() for _ in range(2)]
    assert sum(encoded.steps(TOPIC, 1, PLACE, first)) > 1
    assert sum(encoded.steps(TOPIC, 1, PLACE, second)) == 1
    assert first[0] is second[0]


async def test_a_broker_that_others_have_sealed_off_no_longer_names_itself() -> None:
    membership, encoded = await cluster()
    assert leaders(encoded) == {0, 1, 2}
    membership.note_sealed_off(silent_since=membership.heard_at)
    assert leaders(encoded) == {1, 2}


async def test_topics_are_encoded_again_for_more_partitions() -> None:
    _, encoded = await cluster()
    out: list[bytes] = []
    for topic in (TOPIC, replace(TOPIC, partitions=24)):
        for _ in encoded.steps(topic, 1, PLACE, out):
            pass
    assert len(out[1]) - len(out[0]) == 12 * struct.calcsize(">hiiiiii")
