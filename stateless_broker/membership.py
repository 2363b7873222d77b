"""Who the cluster is, as its brokers and their clients are told: members, leaders, the controller.

Invariants: roles are hints. Any broker accepts any partition, so that members who see different
sets of brokers disagree about efficiency and about nothing else. Clients are sent to brokers that
serve alone: one that is still reading the log, or is leaving, is a member without a role.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from hashlib import blake2b

from bucketlog.log_format.errors import ClusterInUseError, SequencerError
from bucketlog.log_format.model import WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import BrokerAddress, LiveBroker, NodeIdConflict
from bucketlog.stateless_broker.health import BrokerPart, Health

logger = logging.getLogger(__name__)

JOIN_PAUSE_S = 0.25
LEADERS_KEPT = 100_000
NAME_CHARS_KEPT = 256
"""Clients say which zone they are in and which group they ask for: longer names are not kept."""
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
    """Members in the order in which they are to have `what` (rendezvous hashing): where one goes,
    only what it had moves; where one comes, it takes its share of all others."""
    return sorted(members, key=lambda member: _weight(member.node_id, what), reverse=True)


def _weight(node_id: int, what: bytes) -> bytes:
    return blake2b(what, digest_size=8, salt=node_id.to_bytes(8, "big")).digest()


class Membership:
    """`me` is known once `join` has returned."""

    def __init__(
        self,
        *,
        sequencer: Sequencer,
        cluster_id: str,
        incarnation: str,
        node_id: int | None,
        address: BrokerAddress,
        session_timeout_ms: int,
        role_timeout_ms: int,
        health: Health,
    ) -> None:
        self.cluster_id = cluster_id
        self.incarnation = incarnation
        self.writer: WriterId | None = None
        """Whose heartbeat goes with this broker's."""
        self._sequencer = sequencer
        self._wanted_node_id = node_id
        self._address = address
        self._session_timeout_ms = session_timeout_ms
        self._role_timeout_ms = role_timeout_ms
        self._health = health
        self._me: LiveBroker | None = None
        self._serves = False
        self.has_handed_over = False
        """The others know that clients are theirs: what is asked here is answered with that."""
        self._members: tuple[LiveBroker, ...] = ()
        self._leaders: dict[tuple[bytes, int, str], LiveBroker] = {}
        self._coordinators: dict[str, LiveBroker] = {}
        self._heard_at = float("-inf")
        self._clock = (0, 0.0)
        """The sequencer's time of day (ms) when the event loop's was that."""
        self._on_change: list[Callable[[], None]] = []

    @property
    def me(self) -> LiveBroker:
        assert self._me is not None, "not joined yet"
        return self._me

    @property
    def has_joined(self) -> bool:
        return self._me is not None

    @property
    def members(self) -> tuple[LiveBroker, ...]:
        return self._members

    @property
    def serving(self) -> tuple[LiveBroker, ...]:
        """Those to whom clients are sent; whoever is asked for them serves."""
        return tuple(member for member in self._members if member.serves) or (self.me,)

    @property
    def controller(self) -> LiveBroker:
        return by_preference(self.serving, b"controller")[0]

    def leader(self, topic_id: bytes, partition: int, zone: str = "") -> LiveBroker:
        """A broker that serves, in the client's zone if one is there."""
        found = self._leaders.get((topic_id, partition, zone))
        if found is None:
            near = [member for member in self.serving if member.address.zone == zone]
            what = topic_id + partition.to_bytes(4, "big")
            found = by_preference(near or self.serving, what)[0]
            if len(self._leaders) < LEADERS_KEPT and len(zone) <= NAME_CHARS_KEPT:
                self._leaders[topic_id, partition, zone] = found
        return found

    def coordinator_of(self, group: str) -> LiveBroker:
        """The broker that is to coordinate the consumer group."""
        found = self._coordinators.get(group)
        if found is None:
            what = b"group:" + group.encode()
            found = max(self.serving, key=lambda member: _weight(member.node_id, what))
            if len(self._coordinators) < LEADERS_KEPT and len(group) <= NAME_CHARS_KEPT:
                self._coordinators[group] = found
        return found

    @property
    def is_session_live(self) -> bool:
        """Whether the others leave this broker its roles: it was heard lately."""
        silent_s = asyncio.get_running_loop().time() - self._heard_at
        return silent_s < self._role_timeout_ms / 1000

    def now_ms(self) -> int:
        """The cluster's time of day: the sequencer's, as of the last heartbeat, and what has passed
        since. Brokers whose own clocks are wrong agree about ages all the same."""
        then_ms, then = self._clock
        return then_ms + int((asyncio.get_running_loop().time() - then) * 1000)

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Called when roles may have moved: other members, or this broker was not heard for too
        long (`is_session_live` is False in the call). Returns what ends that."""
        self._on_change.append(callback)
        return lambda: self._on_change.remove(callback)

    def _notify(self) -> None:
        for callback in list(self._on_change):
            callback()

    def place_in_line(self, what: str) -> int:
        """How many live brokers come before this one for a task of which one is enough."""
        line = by_preference(self._members, what.encode())
        return next((place for place, one in enumerate(line) if one == self._me), len(line))

    def lives(self, incarnation: str) -> bool:
        return any(member.incarnation == incarnation for member in self._members)

    async def join(self) -> None:
        """Become a member. A predecessor with the same node id that has just died is waited for.

        Raises `ClusterInUseError` where the node id is another live broker's, and
        `SequencerUnavailableError`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._session_timeout_ms / 1000 + JOIN_PAUSE_S
        waiting = False
        while (taken := await self.heartbeat()) is not None:
            if loop.time() > deadline:
                raise ClusterInUseError(
                    f"node id {taken.node_id} is another live broker's ({taken.incarnation})",
                    remedy="give each broker its own BUCKETLOG_NODE_ID, or leave it out",
                )
            if not waiting:
                logger.warning(
                    "node id %d was another broker's %d ms ago: waiting",
                    taken.node_id,
                    taken.age_ms,
                )
                waiting = True
            await asyncio.sleep(JOIN_PAUSE_S)

    async def serve(self) -> None:
        """From now on clients are sent here. Raises `SequencerUnavailableError`."""
        self._serves = True
        await self.heartbeat()

    async def stop_serving(self) -> None:
        """From now on they are sent to the others. Raises `SequencerUnavailableError`."""
        self._serves = False
        await self.heartbeat()

    async def run(self, interval_ms: int) -> None:
        """Say that this broker lives, for ever; also to a server that is a replica for a while."""
        while True:
            await asyncio.sleep(interval_ms / 1000)
            try:
                taken = await self.heartbeat()
            except SequencerError as error:
                self._health.degrade(BrokerPart.HEARTBEAT, str(error))
                if not self.is_session_live:
                    self._notify()
                continue
            if taken is not None:
                self._health.degrade(
                    BrokerPart.HEARTBEAT, f"node id {taken.node_id} belongs to another broker"
                )
                if not self.is_session_live:
                    self._notify()
                continue
            self._health.recover(BrokerPart.HEARTBEAT)

    async def heartbeat(self) -> NodeIdConflict | None:
        """Join or stay. A node id that was given is asked for again, in case Redis was wiped, as
        long as nobody else has it."""
        given = self._me.node_id if self._me is not None else None
        taken = await self._send_heartbeat(
            self._wanted_node_id if self._wanted_node_id is not None else given
        )
        if taken is not None and self._wanted_node_id is None:
            taken = await self._send_heartbeat(None)
        return taken

    async def _send_heartbeat(self, node_id: int | None) -> NodeIdConflict | None:
        asked_at = asyncio.get_running_loop().time()
        answer = await self._sequencer.heartbeat(
            self.incarnation,
            node_id=node_id,
            address=self._address,
            writer=self.writer,
            session_timeout_ms=self._session_timeout_ms,
            role_timeout_ms=self._role_timeout_ms,
            serves=self._serves,
        )
        if isinstance(answer, NodeIdConflict):
            return answer
        if not self.is_session_live:  # others may have had its roles meanwhile
            self._notify()
        self._heard_at = asked_at
        self._clock = answer.now_ms, asyncio.get_running_loop().time()
        if answer.members != self._members:
            names = ", ".join(str(member.node_id) for member in answer.members)
            logger.info("the cluster's brokers are %s", names)
            self._members = answer.members
            self._leaders.clear()
            self._coordinators.clear()
            self._me = next(m for m in answer.members if m.node_id == answer.node_id)
            self._notify()
        return None

    async def leave(self) -> None:
        await self._sequencer.leave(self.me.node_id, self.incarnation)
