"""Members that a broker remembers although its Redis does not list them.

Pure: the time is passed in.
"""

from collections.abc import Collection

from bucketlog.metadata.sequencer.live_brokers import LiveBroker, LiveBrokers

KNOWN_MAX = 1000
"""Limit of the node ids whose last member is remembered."""


class RememberedMembers:
    """Members that the server has lost remain members for `keep_s` seconds."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._lost: dict[LiveBroker, float] = {}
        """Members that the server does not know yet after it lost its state. The value is the time
        until which the member remains."""
        self._known: dict[int, LiveBroker] = {}
        """The member that was seen last with each node id. The member that was noted longest ago
        comes first."""

    def with_lost(
        self, answer: LiveBrokers, members: Collection[LiveBroker], now_s: float
    ) -> tuple[LiveBroker, ...]:
        """Return the members of an answer, and lost members. A member is lost if the server has
        lost its state, and the member had no time yet to send a heartbeat. Lost members remain,
        because clients forget a broker that is missing from one Metadata response. librdkafka may
        then wait for this broker forever.

        `members` has the last result; it is empty before the first answer. `now_s` is
        monotonic."""
        if members and not answer.was_known:
            until = now_s + self._keep_s
            self._lost = {one: until for one in members if one.node_id != answer.node_id}
        ids = {one.node_id for one in answer.members}
        incarnations = {one.incarnation for one in answer.members}
        self._lost = {
            one: until
            for one, until in self._lost.items()
            if now_s < until and one.node_id not in ids and one.incarnation not in incarnations
        }
        return tuple(sorted((*answer.members, *self._lost), key=lambda one: one.node_id))

    def note(self, members: Collection[LiveBroker]) -> None:
        """Remember the members. Beyond `KNOWN_MAX`, the members noted longest ago are forgotten."""
        for one in members:
            self._known.pop(one.node_id, None)
            self._known[one.node_id] = one
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    def serving(self, incarnations: Collection[str]) -> tuple[LiveBroker, ...]:
        """Return the remembered members with these incarnations that served when they were last
        noted."""
        found = [
            one for one in self._known.values() if one.incarnation in incarnations and one.serves
        ]
        return tuple(sorted(found, key=lambda one: one.node_id))
