"""A client of one transactional id, with requests that are retried, late or given up.

The client may time out, or lose a response. It then closes its connection. A paused broker does not
notice this. When the broker continues, the pending requests look like those of a live client.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import decode_response
from tests.simulation.brokers import ClientConnection, SimulatedBroker
from tests.simulation.clients import REQUEST_TIMEOUT_S, Client, Surface

PATIENCES_S = (0.6, REQUEST_TIMEOUT_S)
"""Request timeouts."""
HASTE_S = 0.3
"""Request timeout of a client in haste. Its broker is most likely to fail during the request."""
HASTE_SHARE = 0.1
ASIDE = (ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID)
ASIDE_SHARE = 0.4
"""The share of `ASIDE` requests that go to a broker with another Redis than the others."""
LOST_SHARE = 0.08
"""The share of responses that the client does not get."""
CRASH_SHARES: dict[ApiKey, float] = {
    ApiKey.INIT_PRODUCER_ID: 0.01,
    ApiKey.PRODUCE: 0.01,
    ApiKey.TXN_OFFSET_COMMIT: 0.01,
    ApiKey.END_TXN: 0.05,
}
"""The share of requests during which the process dies."""
PROVOKED: dict[ApiKey, tuple[str, float]] = {
    ApiKey.END_TXN: ("pause", 0.2),
    ApiKey.TXN_OFFSET_COMMIT: ("pause", 0.1),
    ApiKey.INIT_PRODUCER_ID: ("kill", 0.1),
    ApiKey.PRODUCE: ("pause", 0.01),
}
"""The fault that a broker may have during such a request, and its probability."""
AGAIN = frozenset(
    {
        ErrorCode.request_timed_out,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_coordinator,
        ErrorCode.unstable_offset_commit,
    }
)


CodeOf = Callable[[Any], ErrorCode]
"""Reads the error code of a response."""


class GivenUpError(Exception):
    """The client must abort the transaction."""


class CrashedError(Exception):
    """The process dies during its transaction."""


class FencedError(Exception):
    """The client must stop."""


class LeavingConnection(ClientConnection):
    """A connection that the client may close. Tasks that only this client waits for are then
    cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def give_up_with_client(self, task: asyncio.Task[None]) -> None:
        if self._is_closed:
            task.cancel()
        self._tasks.add(task)

    def close(self) -> None:
        self._is_closed = True
        for task in self._tasks:
            task.cancel()


class TransactionClient(Client):
    haste_share = HASTE_SHARE
    retry_pause_s = 0.4

    def __init__(self, name: str, surface: Surface, random: Random, *, group: str) -> None:
        super().__init__(name, surface, random)
        self.group = group
        self._coordinator: SimulatedBroker | None = None

    def _leave(self, broker: SimulatedBroker) -> None:
        connection = self._connections.pop(broker.name, None)
        if isinstance(connection, LeavingConnection) and not broker.is_paused:
            connection.close()

    def _crash(self) -> None:
        """Close all connections, because the process dies. Raises `CrashedError`."""
        for broker in self.surface.brokers:
            self._leave(broker)
        self._connections.clear()
        raise CrashedError

    def _broker_for(self, key: ApiKey) -> SimulatedBroker:
        aside = self.surface.aside() if key in ASIDE else []
        if aside and self.random.random() < ASIDE_SHARE:
            return self.random.choice(aside)
        return self.any_broker()

    async def ask(
        self,
        key: ApiKey,
        version: int,
        broker: SimulatedBroker | None = None,
        /,
        in_haste: bool = False,
        **values: Any,
    ) -> Any:
        """The response, or None. A client without a response closes its connection."""
        where = broker or self._broker_for(key)
        self._connections.setdefault(where.name, LeavingConnection())
        if key in PROVOKED:
            what, share = PROVOKED[key]
            self.surface.provoke(what, where, 1.0 if in_haste else share)
        answer = self.send(where, key, version, **values)
        if self.random.random() < CRASH_SHARES.get(key, 0.0):
            await self.pause(0.03)
            self._crash()
        patience_s = HASTE_S if in_haste else self.random.choice(PATIENCES_S)
        await asyncio.wait([answer], timeout=patience_s)
        data = answer.result() if answer.done() else None
        if data is None or self.random.random() < LOST_SHARE:
            self._leave(where)
            return None
        return decode_response(key, version, data)[1]

    async def until_final(
        self,
        key: ApiKey,
        version: int,
        values: dict[str, Any],
        code_of: CodeOf,
        *,
        tries: int | None,
        at_coordinator: bool = False,
    ) -> tuple[ErrorCode, Any]:
        """Ask until the error is not retriable. Raises `GivenUpError` after `tries`, or after the
        first try of a client in haste."""
        asked = 0
        in_haste = self.haste_share > 0 and self.random.random() < self.haste_share
        while tries is None or asked < (1 if in_haste else tries):
            asked += 1
            broker = await self.group_coordinator() if at_coordinator else None
            answer = await self.ask(key, version, broker, in_haste and asked <= 2, **values)
            code = code_of(answer) if answer is not None else None
            name = "no answer" if code is None else code.name
            self.surface.trace.count(f"{key.message_name}: {name}")
            if code is not None and code not in AGAIN:
                return code, answer
            self._coordinator = None
            await self.pause(self.retry_pause_s)
        raise GivenUpError(f"{key.message_name} is not answered")

    async def group_coordinator(self) -> SimulatedBroker:
        while self._coordinator is None:
            answer = await self.ask(
                ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[self.group]
            )
            found = answer.coordinators[0] if answer is not None else None
            if found is not None and ErrorCode(found.error_code) is ErrorCode.none:
                brokers = self.surface.brokers
                self._coordinator = next((one for one in brokers if one.port == found.port), None)
            else:
                await self.pause(0.3)
        return self._coordinator

    async def stable_offset(self, topic: str) -> int:
        """The group's stable offset in partition 0, 0 where there is none."""
        while (found := await self.stable_offset_now(topic)) is None:
            self._coordinator = None
            await self.pause(0.4)
        return max(0, found)

    async def stable_offset_now(self, topic: str) -> int | None:
        """As `stable_offset`, from one response; -1: no offset. None: the offset is not stable, or
        there is no response with it."""
        wanted = {"group_id": self.group, "topics": [{"name": topic, "partition_indexes": (0,)}]}
        answer = await self.ask(
            ApiKey.OFFSET_FETCH,
            8,
            await self.group_coordinator(),
            groups=[wanted],
            require_stable=True,
        )
        group = answer.groups[0] if answer is not None else None
        if group is None or ErrorCode(group.error_code) is not ErrorCode.none or not group.topics:
            return None
        row = group.topics[0].partitions[0]
        is_known = ErrorCode(row.error_code) is ErrorCode.none
        return int(row.committed_offset) if is_known else None
