"""Transaction scenes: a client, and a few events at chosen moments. In each scene, a single rule
prevents a wrong log.

The copy jobs reach most such moments by chance. The moments of these scenes are too rare: an end
that waits until the next transaction is open, a broker that dies between two of its segments.
Invariant: each event happens in real systems. Requests are slow and come twice, connections end
unnoticed, brokers pause and die, Redis loses its data.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import REQUEST_TIMEOUT_S, Client
from tests.simulation.network import SlowSpell, Trap
from tests.simulation.scene_client import SceneClient
from tests.simulation.transaction_client import FencedError, GivenUpError
from tests.simulation.transactions import CONFIGS, TOPIC
from tests.simulation.world import TOPIC as USUAL
from tests.simulation.world import World

A_SEED = 3
READY_S = 10.0
LATE_S = 0.9
"""The delay of requests to Redis, less than their timeout."""
SPELL_S = 3.0
PAUSE_S = 2.4
NEVER_S = 15.0
"""The delay of a segment: its chain is sealed before it arrives."""
BEFORE_HEDGES_S = 0.06
"""A broker's writes in this time are late, with their hedged requests."""
DIES_S = 0.14
"""The time until the broker dies, which is before it tries again."""
SOON_S = 0.1
UNSEEN_S = 4.0
SHORT_TIMEOUT_MS, TIMEOUT_MS = 2_000, 8_000


class TransactionScenes:
    """`run` plays some of the scenes, one after the other, if the cluster is well."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random("transaction scenes")
        self._side = Client("beside scenes", world.surface, self._random)
        self._made = 0
        self._all: list[Callable[[], Awaitable[None]]] = [
            self.end_waits,
            self.end_comes_again,
            self.end_at_a_paused_broker,
            self.void_end,
            self.end_behind_a_gap,
            self.offsets_behind_a_gap,
            self.init_behind_a_gap,
            self.stable_offsets,
            self.abort_beside_offsets,
            self.end_beside_a_deletion,
            self.end_of_nothing,
            self.after_the_timeout,
            self.former_generation,
            self.former_owner,
            self.batch_of_a_new_epoch,
            self.two_ends_in_a_segment,
            self.sequence_comes_again,
        ]

    async def run(self) -> None:
        world = self._world
        for scene in self._chosen():
            if not await world.until(world.is_well, READY_S):
                return
            world.trace.fault(scene)
            try:
                await scene()
            except (GivenUpError, FencedError) as reason:
                world.trace.count(f"scene: ends early: {reason!r}"[:60])
            finally:
                world.network.heal()
                for broker in world.brokers:
                    broker.go_on()
                    broker.start_if_dead()

    def _chosen(self) -> list[Callable[[], Awaitable[None]]]:
        """The scenes of the seed. A new scene in the list changes the choice of few seeds."""
        return sorted(self._all, key=lambda scene: self._world.random(scene.__name__).random())[
            :A_SEED
        ]

    # Means -----------------------------------------------------------------------------------

    def _client(
        self,
        version: int,
        timeout_ms: int = TIMEOUT_MS,
        *,
        transactional_id: str | None = None,
        group: str | None = None,
    ) -> SceneClient:
        self._made += 1
        name = f"scene{self._made}"
        client = SceneClient(
            name,
            self._world.surface,
            self._world.random(name),
            version=version,
            timeout_ms=timeout_ms,
            transactional_id=transactional_id or name,
            group=group or name,
        )
        self._world.scene_clients.append(client)
        return client

    def _two(self) -> list[SimulatedBroker]:
        return self._random.sample(self._world.brokers, 2)

    async def _begun(self, version: int) -> tuple[SceneClient, SimulatedBroker]:
        """A client whose transaction has a record, and a broker that it does not ask."""
        client = self._client(version)
        other, client.at = self._two()
        await client.init()
        await client.write()
        return client, other

    def _other(self, broker: SimulatedBroker) -> SimulatedBroker:
        return self._random.choice([one for one in self._world.brokers if one is not broker])

    def _slow(self, broker: SimulatedBroker, label: str, for_s: float, delay_s: float) -> None:
        until = self._world.loop.time() + for_s
        self._world.network.slow_spells.append(SlowSpell(broker.name, label, until, delay_s))

    def _trap(
        self, broker: SimulatedBroker, label: str, spring: Callable[[], None], delay_s: float
    ) -> None:
        self._world.network.traps.append(Trap(broker.name, label, False, spring, delay_s))

    async def _leave_gap(self, broker: SimulatedBroker) -> None:
        """Have the broker's next segment reserved, but not arrive."""
        self._slow(broker, "create log/", BEFORE_HEDGES_S, NEVER_S)
        batch = self._side.lone_batch(USUAL, 0, f"nscene{self._made}:0".encode())
        self._side.send(broker, ApiKey.PRODUCE, 9, **batch)
        await asyncio.sleep(BEFORE_HEDGES_S)

    async def _answer_before_death(
        self, client: SceneClient, broker: SimulatedBroker, request: Awaitable[Any]
    ) -> Any:
        """The response, or None. The broker dies soon, and is dead on return."""
        response = asyncio.ensure_future(request)
        await asyncio.sleep(DIES_S)
        broker.kill()
        return await response

    # Ends of version 1 -----------------------------------------------------------------------

    async def end_waits(self) -> None:
        """An end waits in a broker. Its client asks another one, and begins to write again."""
        client, slow = await self._begun(1)
        late = await self._late_end(client, slow)
        await client.end(commit=True)
        await self._abort_the_next(client, late)

    async def end_comes_again(self) -> None:
        """After its response, an end comes again, at a slow broker."""
        client, slow = await self._begun(1)
        await client.end(commit=True)
        await self._abort_the_next(client, await self._late_end(client, slow))

    async def _late_end(
        self, client: SceneClient, slow: SimulatedBroker
    ) -> "asyncio.Future[bytes | None]":
        """Send an end that is reserved late. Returns when the sequencer has bound the end: an end
        that is bound later than its client waits may end the next transaction."""
        self._slow(slow, "reserve", SPELL_S, LATE_S)
        bound = asyncio.Event()
        self._world.network.traps.append(Trap(slow.name, "bind_end", True, bound.set))
        late = client.send_end(slow, commit=True)
        if not await self._world.until(bound.is_set, SPELL_S - LATE_S):
            raise GivenUpError("the end is not bound")
        await asyncio.sleep(SOON_S)
        return late

    async def end_at_a_paused_broker(self) -> None:
        """A broker has read an end and pauses. Its request to Redis arrives late."""
        client, slow = await self._begun(1)
        self._trap(slow, "bind_end", partial(slow.pause, PAUSE_S), LATE_S)
        late = client.send_end(slow, commit=True)
        await asyncio.sleep(SOON_S)
        await client.end(commit=True)
        await self._abort_the_next(client, late)

    async def _abort_the_next(
        self, client: SceneClient, late: "asyncio.Future[bytes | None]"
    ) -> None:
        """Write and abort the client's next transaction. Only this abort may end it."""
        await client.write()
        await asyncio.wait([late], timeout=REQUEST_TIMEOUT_S)
        await client.end(commit=False)

    async def end_of_nothing(self) -> None:
        """Redis loses the partitions of a transaction. Its batch comes after the end."""
        client = self._client(1)
        await client.init()
        await client.add_partition()
        self._world.primary.wipe()
        if not await self._world.until(self._world.is_well, READY_S):
            return
        await asyncio.sleep(1.0)
        mark = client.next_mark()
        await client.end(commit=False)
        await client.straggle(mark)
        await client.write()
        await client.end(commit=True)

    async def after_the_timeout(self) -> None:
        """A client returns after the abort of its transaction. It gets no worse error than this."""
        client = self._client(self._random.choice((1, 2)), SHORT_TIMEOUT_MS)
        await client.init()
        await client.write()
        await asyncio.sleep(SHORT_TIMEOUT_MS / 1000 + 2.0)
        await client.end(commit=True)

    async def batch_of_a_new_epoch(self) -> None:
        """Redis is wiped between two transactions of one producer epoch. The sequence of the
        batches continues."""
        client = self._client(1)
        await client.init()
        await client.write()
        await client.end(commit=True)
        self._world.primary.wipe()
        if not await self._world.until(self._world.is_well, READY_S):
            return
        await asyncio.sleep(1.0)
        await client.write()
        await client.end(commit=True)

    async def sequence_comes_again(self) -> None:
        """A client drops a record in an abort, and gives its sequence to the next record. This
        record must not be acknowledged as a duplicate of the former."""
        client = self._client(1)
        await client.init()
        await client.write()
        await client.end(commit=False)
        if self._random.random() < 0.5:
            self._world.primary.wipe()
            if not await self._world.until(self._world.is_well, READY_S):
                return
        client.begin_sequences_again()
        try:
            await client.write()
        except GivenUpError:
            await client.end(commit=False)
            await client.init_again()
            await client.write()
        await client.end(commit=True)

    async def two_ends_in_a_segment(self) -> None:
        """A broker reserves the commit of one client and the abort of another one together."""
        commits, aborts = self._client(2), self._client(2)
        (broker, _) = self._two()
        for client in (commits, aborts):
            await client.init()
            await client.write()
        self._slow(broker, "reserve", BEFORE_HEDGES_S, LATE_S)
        batch = self._side.lone_batch(USUAL, 0, f"nscene{self._made}:0".encode())
        self._side.send(broker, ApiKey.PRODUCE, 9, **batch)
        await asyncio.sleep(BEFORE_HEDGES_S)
        commits.at = aborts.at = broker
        await asyncio.gather(commits.end(commit=True), aborts.end(commit=False))

    # Segments that never come ----------------------------------------------------------------

    async def void_end(self) -> None:
        """A broker dies with a reserved end. The client asks another broker."""
        client, dies = await self._begun(2)
        self._trap(dies, "create log/", dies.kill, NEVER_S)
        lost = client.send_end(dies, commit=True)
        await asyncio.wait([lost], timeout=1.0)
        await client.end(commit=True)

    async def end_behind_a_gap(self) -> None:
        """An end's segment is in the bucket, but void, because the one before it is missing."""
        client, dies = await self._begun(2)
        await self._leave_gap(dies)
        told = await self._answer_before_death(client, dies, client.asked_end(dies))
        if not told:
            await client.end(commit=True)

    async def offsets_behind_a_gap(self) -> None:
        """As `end_behind_a_gap`, with a group's offsets."""
        client = self._client(2)
        await client.init()
        await client.write()
        dies = await client.group_coordinator()
        client.at = self._other(dies)
        await self._leave_gap(dies)
        told = await self._answer_before_death(client, dies, client.asked_offsets(dies, 1))
        if not told:
            await client.offsets(1)
        await client.end(commit=True)
        client.expected_offset = 1

    async def init_behind_a_gap(self) -> None:
        """As `end_behind_a_gap`, with an id's first init."""
        client, (dies, lives) = self._client(self._random.choice((1, 2))), self._two()
        client.at = lives
        await self._leave_gap(dies)
        told = await self._answer_before_death(client, dies, client.asked_init(dies))
        if not told:
            await client.init()
        await client.write()
        await client.end(commit=True)

    # Groups ----------------------------------------------------------------------------------

    async def stable_offsets(self) -> None:
        """A reader asks for stable offsets between a transaction's offsets and its commit."""
        client, reader = self._client(2), self._client(2)
        reader.group = client.group
        await client.init()
        await client.write()
        await client.offsets(1)
        found = await reader.stable_offset_now(TOPIC)
        if found is not None:
            self._world.trace.violate("stable offsets", f"{found} of {client.group} was pending")
        await client.end(commit=True)
        client.expected_offset = 1

    async def abort_beside_offsets(self) -> None:
        """Offsets are in flight when another broker aborts their transaction. The next transaction,
        with the same epoch, has no offsets."""
        client = self._client(1)
        await client.init()
        slow = await client.group_coordinator()
        client.at = self._other(slow)
        await client.add_offsets()
        self._slow(slow, "create log/", 1.0, 1.5)
        late = client.send_offsets(slow, 7)
        await asyncio.sleep(0.05)
        await client.end(commit=False)
        await asyncio.wait([late], timeout=REQUEST_TIMEOUT_S)
        await client.write()
        await client.end(commit=True)
        client.expected_offset = 0

    async def former_generation(self) -> None:
        """A group continues without a member. This member commits offsets in a transaction."""
        client, newcomer = self._client(2), self._client(2)
        newcomer.group = client.group
        await client.init()
        member = await client.join()
        await newcomer.join()
        code = await client.offsets_of(member, 5)
        if code is ErrorCode.none:
            self._world.trace.violate("generation", f"{member} of {client.group} may commit")
        await client.end(commit=False)
        client.expected_offset = 0

    async def former_owner(self) -> None:
        """Another client has got the id. The former owner asks for a new epoch of its pair."""
        version = self._random.choice((1, 2))
        client = self._client(version)
        await client.init()
        if self._random.random() < 0.5:
            await client.write()
        successor = self._client(version, transactional_id=client.id)
        await successor.init()
        client.give_up_mark()
        try:
            await client.init_again()
        except FencedError:
            await successor.write()
            await successor.end(commit=True)
            return
        self._world.trace.violate("fenced", f"a former owner of {client.id} was let in")

    # Topics ----------------------------------------------------------------------------------

    async def end_beside_a_deletion(self) -> None:
        """A broker dies while it deletes a topic that a transaction has written to."""
        world, client = self._world, self._client(2)
        dies, lives = self._two()
        client.at, topic = lives, f"scene-topic{self._made}"
        topic_id = await self._side.create_topic(topic, 1, CONFIGS)
        world.truth.compacted.add(TopicIdPartition(topic_id, 0))
        world.truth.deleted.add(TopicIdPartition(topic_id, 0))
        await client.init()
        await client.write()
        await client.write_to(topic)
        self._trap(dies, "create log/", dies.kill, NEVER_S)
        names = [{"name": topic, "topic_id": None}]
        self._side.send(dies, ApiKey.DELETE_TOPICS, 6, topics=names, timeout=3_000)
        await asyncio.sleep(BEFORE_HEDGES_S / 2)
        await client.end(commit=True)
