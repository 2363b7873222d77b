"""A transactional client that sends its requests when a scene says so.

It asks one broker, retries, and loses no response. As with copy jobs, the acknowledged commits and
aborts are compared with the bucket.
"""

import asyncio
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import decode_response
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import Surface
from tests.simulation.transaction_client import CodeOf, GivenUpError
from tests.simulation.transactions import TOPIC, CopyJob

TRIES = 80
PATIENCE_S = 1.0


class SceneClient(CopyJob):
    """`at`: the broker that the client asks; None: any broker."""

    haste_share = 0.0
    retry_pause_s = 0.2

    def __init__(
        self,
        name: str,
        surface: Surface,
        random: Random,
        *,
        version: int,
        timeout_ms: int,
        transactional_id: str,
        group: str,
    ) -> None:
        super().__init__(
            name, surface, random, group=group, ids=[transactional_id], version=version
        )
        self.timeouts_ms = (timeout_ms,)
        self.at: SimulatedBroker | None = None
        self.expected_offset: int | None = None
        """The group's committed offset at the end. 0: no offset; None: not known."""
        self._written = 0

    async def ask(
        self,
        key: ApiKey,
        version: int,
        broker: SimulatedBroker | None = None,
        /,
        in_haste: bool = False,
        **values: Any,
    ) -> Any:
        where = broker or self.at or self.any_broker()
        return await self.call(where, key, version, **values)

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
        return await super().until_final(
            key, version, values, code_of, tries=TRIES, at_coordinator=at_coordinator
        )

    async def _stalled_end(self, values: dict[str, Any]) -> tuple[ErrorCode | None, Any]:
        return None, None

    def _check(self, what: str, code: ErrorCode) -> None:
        if code is ErrorCode.out_of_order_sequence_number:  # no batch of it was given up
            self.surface.trace.violate("transactions", f"{self.name}: {what}: {code.name}")
        super()._check(what, code)

    # Steps of a transaction ------------------------------------------------------------------

    async def init(self) -> None:
        await self._init()

    async def init_again(self) -> None:
        """Ask for a new epoch of the client's pair."""
        await self._init(self._pair)

    def next_mark(self) -> bytes:
        self._number += 1
        self._mark = f"{self.name}.{self._number}".encode()
        return self._mark

    def give_up_mark(self) -> None:
        """Note that nobody has asked to commit the current mark's records."""
        if self._mark:
            self.told.append((self._mark, False))
        self._mark = b""

    async def add_partition(self) -> None:
        await self._add(TOPIC, {0})

    async def add_offsets(self) -> None:
        await self._add_offsets()

    async def write(self) -> None:
        """Write one record, the first of its transaction."""
        mark = self.next_mark()
        if self.version == 1:
            await self._add(TOPIC, {0})
        await self._write(TOPIC, 0, self._written, mark)
        self._written += 1

    def begin_sequences_again(self) -> None:
        self._sequences.clear()

    async def write_to(self, topic: str) -> None:
        await self._write(topic, 0, 0, self._mark)

    async def straggle(self, mark: bytes) -> None:
        """Send a batch of an ended transaction. If it is refused, no batch follows it."""
        values = self._batch(TOPIC, 0, 0, mark)
        answer = await self.ask(ApiKey.PRODUCE, self._version_of(ApiKey.PRODUCE), **values)
        row = answer.responses[0].partition_responses[0] if answer is not None else None
        if row is None or ErrorCode(row.error_code) is not ErrorCode.none:
            self._sequences.clear()

    async def offsets(self, offset: int) -> None:
        await self._commit_offsets(offset)

    async def end(self, *, commit: bool) -> None:
        """End the transaction. Raises `GivenUpError` if the transaction is already aborted."""
        self._asked_to_commit = commit
        mark, self._mark = self._mark, b""
        try:
            await self._end(commit=commit)
        except GivenUpError:
            self.told.append((mark, False))
            raise
        if mark:
            self.told.append((mark, commit))

    # Single requests -------------------------------------------------------------------------

    def send_end(self, broker: SimulatedBroker, *, commit: bool) -> "asyncio.Future[bytes | None]":
        """Send an end. Its connection stays open, so the broker never sees the client leave."""
        values = self._owner | {"committed": commit}
        return self.send(broker, ApiKey.END_TXN, self._version_of(ApiKey.END_TXN), **values)

    def send_offsets(self, broker: SimulatedBroker, offset: int) -> "asyncio.Future[bytes | None]":
        version = self._version_of(ApiKey.TXN_OFFSET_COMMIT)
        values = self._offset_values(offset)
        return self.send(broker, ApiKey.TXN_OFFSET_COMMIT, version, **values)

    async def _answer_of(self, key: ApiKey, future: "asyncio.Future[bytes | None]") -> Any:
        await asyncio.wait([future], timeout=PATIENCE_S)
        data = future.result() if future.done() else None
        return None if data is None else decode_response(key, self._version_of(key), data)[1]

    async def asked_end(self, broker: SimulatedBroker) -> bool:
        """Ask this broker once to commit. Return whether it acknowledges the commit."""
        answer = await self._answer_of(ApiKey.END_TXN, self.send_end(broker, commit=True))
        if answer is None or ErrorCode(answer.error_code) is not ErrorCode.none:
            return False
        self.told.append((self._mark, True))
        self._mark = b""
        return True

    async def asked_offsets(self, broker: SimulatedBroker, offset: int) -> bool:
        sent = self.send_offsets(broker, offset)
        answer = await self._answer_of(ApiKey.TXN_OFFSET_COMMIT, sent)
        if answer is None:
            return False
        return ErrorCode(answer.topics[0].partitions[0].error_code) is ErrorCode.none

    async def asked_init(self, broker: SimulatedBroker) -> bool:
        key = ApiKey.INIT_PRODUCER_ID
        sent = self.send(broker, key, self._version_of(key), **self._init_values((-1, -1)))
        answer = await self._answer_of(key, sent)
        if answer is None or ErrorCode(answer.error_code) is not ErrorCode.none:
            return False
        self._pair, self._sequences = (answer.producer_id, answer.producer_epoch), {}
        return True

    # Groups ----------------------------------------------------------------------------------

    async def join(self) -> tuple[str, int]:
        """Become the only current member of the group. Return the member id and the generation.
        Other members have no time to join again."""
        protocols = [{"name": "range", "metadata": b""}]
        member_id = ""
        for _ in range(TRIES):
            answer = await self.ask(
                ApiKey.JOIN_GROUP,
                7,
                await self.group_coordinator(),
                group_id=self.group,
                session_timeout=6_000,
                rebalance_timeout=1_000,
                member_id=member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=protocols,
            )
            code = ErrorCode(answer.error_code) if answer is not None else None
            if code is ErrorCode.member_id_required:
                member_id = answer.member_id
                continue
            if code is ErrorCode.none:
                await self._sync(answer)
                return answer.member_id, answer.generation_id
            self._coordinator = None
            await self.pause(0.2)
        raise GivenUpError("the group is not joined")

    async def _sync(self, joined: Any) -> None:
        await self.ask(
            ApiKey.SYNC_GROUP,
            5,
            await self.group_coordinator(),
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[{"member_id": joined.member_id, "assignment": b""}],
        )

    async def offsets_of(self, member: tuple[str, int], offset: int) -> ErrorCode:
        """Commit offsets as this member. Return the coordinator's error code."""
        values = self._offset_values(offset) | {"member_id": member[0], "generation_id": member[1]}
        key = ApiKey.TXN_OFFSET_COMMIT
        code, _ = await self.until_final(
            key,
            self._version_of(key),
            values,
            lambda got: ErrorCode(got.topics[0].partitions[0].error_code),
            tries=None,
            at_coordinator=True,
        )
        return code
