"""The cluster as brokers and clients see it: members, leaders, the controller.

Invariants: roles are hints. Any broker accepts any partition, so members that see different sets of
brokers disagree about efficiency only. Clients are sent only to brokers that serve. A broker that
is still reading the log, or is leaving, is a member without a role. So is a broker that cannot
write, as long as another broker serves.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass

from bucketlog.log_format.errors import ClusterInUseError, SequencerError
from bucketlog.log_format.model import WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.live_brokers import (
    PLAINTEXT_LISTENER,
    BrokerAddress,
    LiveBroker,
    NodeIdConflict,
)
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.membership.lifeline import Lifeline
from bucketlog.stateless_broker.membership.remembered_members import RememberedMembers
from bucketlog.stateless_broker.membership.roles import by_preference, deal, weight
from bucketlog.stateless_broker.membership.withdrawal import (
    Withdrawal,
    WithdrawalLimits,
    WriteState,
)

logger = logging.getLogger(__name__)

JOIN_PAUSE_S = 0.25
COORDINATORS_KEPT = 100_000
NAME_CHARS_KEPT = 256
"""The coordinators of groups with longer names are not kept."""


@dataclass(frozen=True, slots=True)
class MembershipTimeouts:
    """A broker without a heartbeat for `role_ms` loses its roles; after `session_ms`, it counts as
    dead. So does a broker whose lifeline has ended, if it sends no heartbeat for
    `lifeline_grace_ms` (0: lifelines do not count). A broker that cannot write for `withdrawal_ms`
    (between two epochs: for `session_ms`) withdraws: it gives its roles to the others, which close
    its chain. It takes roles again when writing has worked for `session_ms`."""

    session_ms: int
    role_ms: int
    withdrawal_ms: int
    lifeline_grace_ms: int = 0


class Membership:
    """The membership of this broker. `me` is known once `join` has returned."""

    def __init__(
        self,
        *,
        sequencer: Sequencer,
        cluster_id: str,
        incarnation: str,
        node_id: int | None,
        address: BrokerAddress,
        timeouts: MembershipTimeouts,
        health: Health,
    ) -> None:
        self.cluster_id = cluster_id
        self.incarnation = incarnation
        self.writer: WriterId | None = None
        """Writer whose heartbeats go with this broker's."""
        self._sequencer = sequencer
        self._wanted_node_id = node_id
        self._address = address
        self._timeouts = timeouts
        self._health = health
        self._me: LiveBroker | None = None
        self._serves = False
        self.is_withdrawn = False
        """Whether this broker cannot write, and others serve its clients."""
        self.has_handed_over = False
        """Whether the others have taken over this broker's clients, because it has withdrawn or is
        leaving. Answers to requests then say that other brokers lead."""
        self._has_left = False
        self.role_changes = 0
        """Number of changes after which other brokers may lead."""
        self._is_sealed_off = False
        """Whether this broker does not reach the sequencer, but others have sealed its chain."""
        self._withdrawal = Withdrawal(
            WithdrawalLimits(timeouts.withdrawal_ms, timeouts.session_ms, timeouts.session_ms)
        )
        self._members: tuple[LiveBroker, ...] = ()
        self._remembered = RememberedMembers(keep_s=timeouts.role_ms / 1000)
        self._ahead: tuple[LiveBroker, ...] = ()
        """The brokers that have this broker's roles while it waits for an epoch on another
        Redis."""
        self._coordinators: dict[str, LiveBroker] = {}
        self._heard_at = float("-inf")
        self._clock = (0, 0.0)
        """The sequencer's time of day (ms) when the event loop's was that."""
        self._on_change: list[Callable[[], None]] = []
        self._hurry = asyncio.Event()
        """An event that is set if a heartbeat must be sent at once."""
        self._look_again_ms: float = math.inf
        self.lifeline = Lifeline(
            lambda heard, is_missed: sequencer.hold_lifeline(incarnation, heard, is_missed),
            self._hurry.set,
        )

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
        """Brokers to which clients are sent."""
        if self._ahead:
            return self._ahead
        gone = self._me if self._is_sealed_off else None
        serving = tuple(one for one in self._members if one.serves and one != gone)
        return serving or (self.me,)

    def listed_on(self, listener: str) -> tuple[LiveBroker, ...]:
        """Brokers that answer clients of the listener: those of `serving_on`, and those that have
        withdrawn. Clients forget a broker that is missing from one Metadata response. When this
        broker is a coordinator again, librdkafka may wait for seconds."""
        found = {one.node_id: one for one in self._members if one.has_withdrawn}
        if self.is_withdrawn and not self._has_left:
            found[self.me.node_id] = self.me
        found |= {one.node_id: one for one in self.serving_on(listener)}
        in_order = (found[node_id] for node_id in sorted(found))
        return tuple(one for one in in_order if one.address.of(listener))

    def serving_on(self, listener: str) -> tuple[LiveBroker, ...]:
        """Brokers of `serving` that clients of the listener can reach. As in Kafka, brokers without
        the listener are left out."""
        return tuple(one for one in self.serving if one.address.of(listener)) or (self.me,)

    def controller(self, listener: str = PLAINTEXT_LISTENER) -> LiveBroker:
        return by_preference(self.serving_on(listener), b"controller")[0]

    def note_left(self) -> None:
        """Note that the others have heard that this broker leaves."""
        self._has_left = True
        self._note_roles()

    def note_sealed_off(self, silent_since: float) -> None:
        """Note that others have sealed this broker's chain, and that no heartbeat of the broker
        has been answered since `silent_since` (event loop's time). The others have its roles until
        a heartbeat is answered."""
        if self._heard_at <= silent_since and not self._is_sealed_off:
            self._seal_off(True)

    def note_left_behind(self, incarnations: Collection[str]) -> None:
        """Note that this broker waits, because brokers with these incarnations work in an epoch on
        another Redis. Remembered members among these brokers have this broker's roles until it has
        joined an epoch. An answered heartbeat does not return the roles, because this broker's
        Redis still answers."""
        found = self._remembered.serving(incarnations)
        if found != self._ahead:
            ids = ", ".join(str(one.node_id) for one in found) or "none"
            logger.warning(
                "this broker waits for an epoch on another Redis; brokers that have its roles: %s",
                ids,
            )
            self._ahead = found
            self._move_roles()

    def note_joined(self) -> None:
        """Note that this broker has joined an epoch."""
        if self._ahead:
            self._ahead = ()
            self._move_roles()

    def _seal_off(self, is_so: bool) -> None:
        self._is_sealed_off = is_so
        self._move_roles()

    def _move_roles(self) -> None:
        self._coordinators.clear()
        self._note_roles()
        self._notify()

    @property
    def _another_serves(self) -> bool:
        return any(one.serves for one in self._members if one != self._me)

    def _note_roles(self) -> None:
        self.role_changes += 1
        has_no_role = self._is_sealed_off or (
            self._withdrawal.reason is not None and not self.me.serves
        )
        self.is_withdrawn = bool(self._ahead) or (has_no_role and self._another_serves)
        self.has_handed_over = self._has_left or self.is_withdrawn

    def leaders(
        self, topic_id: bytes, partitions: int, zone: str = "", listener: str = PLAINTEXT_LISTENER
    ) -> Generator[int, None, list[LiveBroker]]:
        """The leaders of all partitions of a topic, in steps as `Turns` runs them. They serve on
        the listener, and are in the client's zone if any broker there serves."""
        serving = self.serving_on(listener)
        near = [member for member in serving if member.address.zone == zone]
        return deal(near or serving, topic_id, partitions)

    def coordinator_of(self, group: str) -> LiveBroker:
        """Return the broker that coordinates the consumer group."""
        found = self._coordinators.get(group)
        if found is None:
            found = self._first_for(b"group:" + group.encode())
            if len(self._coordinators) < COORDINATORS_KEPT and len(group) <= NAME_CHARS_KEPT:
                self._coordinators[group] = found
        return found

    def transaction_coordinator_of(self, transactional_id: str) -> LiveBroker:
        """The broker to which clients should send requests of the transactional id."""
        return self._first_for(b"txn:" + transactional_id.encode())

    def _first_for(self, what: bytes) -> LiveBroker:
        return max(self.serving, key=lambda member: weight(member.node_id, what))

    @property
    def heard_at(self) -> float:
        """The time at which the last answered heartbeat was sent (event loop's time)."""
        return self._heard_at

    @property
    def is_session_live(self) -> bool:
        """Whether the others leave this broker its roles, because it was heard lately."""
        silent_s = asyncio.get_running_loop().time() - self._heard_at
        return silent_s < self._timeouts.role_ms / 1000

    def now_ms(self) -> int:
        """Return the cluster's time of day: the sequencer's at the last heartbeat, and the time
        since then. So brokers whose own clocks are wrong still agree about ages."""
        then_ms, then = self._clock
        return then_ms + int((asyncio.get_running_loop().time() - then) * 1000)

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called when roles may have moved: other members, or this broker was not
        heard for too long (`is_session_live` is False in the call). Returns a function that ends
        that."""
        self._on_change.append(callback)
        return lambda: self._on_change.remove(callback)

    def _notify(self) -> None:
        for callback in list(self._on_change):
            callback()

    def place_in_line(self, what: str) -> int:
        """Return the number of live brokers before this one in line for a task that one broker is
        enough for."""
        line = by_preference(self._members, what.encode())
        return next((place for place, one in enumerate(line) if one == self._me), len(line))

    def lives(self, incarnation: str) -> bool:
        return any(member.incarnation == incarnation for member in self._members)

    async def join(self) -> None:
        """Become a member. Waits for the end of a predecessor with the same node id that has just
        died.

        Raises `ClusterInUseError` if another live broker has the node id, and
        `SequencerUnavailableError`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeouts.session_ms / 1000 + JOIN_PAUSE_S
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
        """Have clients sent to this broker from now on. Raises `SequencerUnavailableError`."""
        self._serves = True
        await self.heartbeat()

    async def stop_serving(self) -> None:
        """Have clients sent to the other brokers from now on. Raises
        `SequencerUnavailableError`."""
        self._serves = False
        await self.heartbeat()

    async def run(self, interval_ms: int) -> None:
        """Say that this broker lives, for ever; also to a server that is a replica for a while."""
        while True:
            await self._until_due(interval_ms)
            self._withdraw_or_return()
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

    async def _until_due(self, interval_ms: int) -> None:
        """Wait until the next heartbeat is due: earlier if another broker's lifeline is missing,
        and at once if members may have changed."""
        wait_ms, self._look_again_ms = min(interval_ms, self._look_again_ms), math.inf
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()

    def _withdraw_or_return(self) -> None:
        first = min(one.node_id for one in self._members)
        writing = WriteState(
            reason=self._health.cannot_write,
            is_between_epochs=self._health.is_between_epochs,
            has_substitute=self._another_serves and self._serves,
            is_needed=not (self._another_serves or self.me.serves) and self.me.node_id == first,
            writer=self.writer,
        )
        self._withdrawal.decide(writing, asyncio.get_running_loop().time())

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
            session_timeout_ms=self._timeouts.session_ms,
            role_timeout_ms=self._timeouts.role_ms,
            serves=self._serves and self._withdrawal.reason is None,
            has_withdrawn=self._serves and self._withdrawal.reason is not None,
            gives_up_writer=self.writer is not None
            and self.writer == self._withdrawal.given_up_writer,
            lifeline_grace_ms=self._timeouts.lifeline_grace_ms,
        )
        if isinstance(answer, NodeIdConflict):
            return answer
        if not self.is_session_live:  # others may have had its roles meanwhile
            self._notify()
        self._heard_at = asked_at
        self._look_again_ms = math.inf if answer.look_again_ms is None else answer.look_again_ms
        self.lifeline.note_heartbeat(asked_at, is_seen=answer.has_lifeline)
        self._clock = answer.now_ms, asyncio.get_running_loop().time()
        if self._is_sealed_off:
            self._seal_off(False)
        members = self._remembered.with_lost(answer, self._members, self._clock[1])
        if members != self._members:
            names = ", ".join(str(member.node_id) for member in members)
            logger.info("the cluster's brokers are %s", names)
            self._members = members
            self._me = next(m for m in answer.members if m.node_id == answer.node_id)
            self._remembered.note(members)
            self._move_roles()
        return None

    async def leave(self) -> None:
        await self._sequencer.leave(self.me.node_id, self.incarnation)
