"""Members that a broker remembers although its Redis does not list them."""

from bucketlog.metadata.sequencer.live_brokers import BrokerAddress, LiveBroker, LiveBrokers
from bucketlog.stateless_broker.membership.remembered_members import KNOWN_MAX, RememberedMembers


def member(node_id: int, incarnation: str, *, serves: bool = True) -> LiveBroker:
    return LiveBroker(node_id, incarnation, serves, BrokerAddress("h", 1, ""))


def test_who_does_not_join_a_server_that_was_wiped_is_a_member_for_a_while() -> None:
    remembered = RememberedMembers(keep_s=1)
    both, own = (member(0, "a"), member(1, "b")), (member(0, "a"),)
    assert remembered.with_lost(LiveBrokers(0, own, 1, was_known=False), both, 10.0) == both
    assert remembered.with_lost(LiveBrokers(0, own, 1), both, 10.9) == both
    assert remembered.with_lost(LiveBrokers(0, own, 1), both, 11.0) == own


def test_a_restarted_broker_replaces_its_predecessor() -> None:
    remembered = RememberedMembers(keep_s=1)
    remembered.note([member(0, "first")])
    remembered.note([member(0, "second")])
    assert remembered.serving({"first"}) == ()
    assert remembered.serving({"first", "second"}) == (member(0, "second"),)


def test_a_broker_that_no_longer_serves_is_left_out() -> None:
    remembered = RememberedMembers(keep_s=1)
    remembered.note([member(0, "a"), member(1, "b")])
    remembered.note([member(0, "a", serves=False)])
    assert remembered.serving({"a", "b"}) == (member(1, "b"),)


def test_the_newest_members_are_remembered() -> None:
    remembered = RememberedMembers(keep_s=1)
    for number in range(KNOWN_MAX + 1):
        remembered.note([member(number, str(number))])
    assert remembered.serving({"0", "1"}) == (member(1, "1"),)
