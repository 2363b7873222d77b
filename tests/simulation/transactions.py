"""Copy jobs of the simulation: transactional producers of both versions, with the group's offsets.

A job copies numbers: the next is its group's offset. Each transaction writes some numbers and
commits the offset behind them. Two jobs may share their id and their group: each fences the other,
and goes on after a while, as a process that is started again. Invariants that they hold the log to:
in what is committed, each number is there once and in order; the group's offset is behind the last
of them; a commit that was told is in the bucket; "fenced" is told only if the id has moved on.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import build_batch, decode_response
from tests.simulation.brokers import ClientConnection, SimulatedBroker
from tests.simulation.clients import REQUEST_TIMEOUT_S, Client, Surface

TOPIC = "copied"
PARTITIONS = 2
CONFIGS = {"retention.bytes": "-1", "retention.ms": "-1"}
TRIES = 12
"""So often a request is sent before the job gives its transaction up."""
CRASH_SHARE = 0.06
ABORT_SHARE = 0.2
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
ABORT = frozenset(
    {
        ErrorCode.transaction_abortable,
        ErrorCode.unknown_producer_id,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.illegal_generation,
        ErrorCode.out_of_order_sequence_number,
        ErrorCode.invalid_txn_state,
    }
)
"""Errors of batches and offsets after which Kafka's clients abort."""
VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (9, 12),
    ApiKey.TXN_OFFSET_COMMIT: (3, 5),
    ApiKey.END_TXN: (3, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: (3, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (3, 3),
}


class GivenUpError(Exception):
    """The transaction is to be aborted."""


class CrashedError(Exception):
    """The process dies in the middle of its transaction."""


class FencedError(Exception):
    """The client is not to go on."""


class LeavingConnection(ClientConnection):
    """Its client may close it: what waits for the client alone is given up then."""

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


class CopyJob(Client):
    def __init__(
        self, name: str, surface: Surface, random: Random, *, shared: str, version: int
    ) -> None:
        """`shared` names the transactional id and the group."""
        super().__init__(name, surface, random)
        self.id = shared
        self.version = version
        self.is_ending = False
        self.is_done = False
        self.has_moved_on: Callable[[str, tuple[int, int]], bool] = lambda each, pair: True
        """Whether the bucket says that another pair than this one owns the id."""
        self.told: list[tuple[bytes, bool]] = []
        """Marks of transactions whose commit or abort was told."""
        self._pair = (-1, -1)
        self._sequences: dict[int, int] = {}
        self._number = 0
        self._coordinator: SimulatedBroker | None = None

    async def run(self) -> None:
        while not self.is_ending:
            try:
                await self._live()
            except CrashedError:
                self.surface.trace.count("copy job: crash")
                await self.pause(6)
            except FencedError:
                self.surface.trace.count("copy job: fenced")
                self._check_fenced()
                await self.pause(12)
        self.is_done = True

    def _check_fenced(self) -> None:
        if self._pair[0] >= 0 and not self.has_moved_on(self.id, self._pair):
            self.surface.trace.violate("fenced", f"{self.name}: {self._pair} owns {self.id}")

    async def _live(self) -> None:
        """One process: an init, then transactions."""
        await self._init()
        while not self.is_ending:
            position = await self._position()
            try:
                await self._transaction(position)
            except GivenUpError as reason:
                self.surface.trace.count("copy job: aborts")
                self.surface.trace.add(self.name, f"gives up: {reason}")
                await self._end(commit=False)
                if self.version == 1:
                    await self._init(self._pair)
            if self.random.random() < CRASH_SHARE:
                self.surface.trace.count("copy job: crash")
                return
            await self.pause(0.6)

    async def _transaction(self, position: int) -> None:
        self._number += 1
        numbers = range(position, position + self.random.randint(1, 3))
        mark = f"{self.name}.{self._number}".encode()
        if self.version == 1:
            await self._add({number % PARTITIONS for number in numbers})
        await asyncio.gather(*(self._write(number, mark) for number in numbers[:PARTITIONS]))
        for number in numbers[PARTITIONS:]:
            await self._write(number, mark)
        if self.random.random() < CRASH_SHARE:
            raise CrashedError
        await self._offsets(numbers[-1] + 1)
        is_commit = self.random.random() >= ABORT_SHARE
        await self._end(commit=is_commit)
        self.told.append((mark, is_commit))
        self.surface.trace.count(f"copy job: {'commit' if is_commit else 'abort'} told")

    # Requests --------------------------------------------------------------------------------

    @property
    def _owner(self) -> dict[str, Any]:
        producer_id, epoch = self._pair
        return {
            "transactional_id": self.id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }

    async def _ask(
        self, key: ApiKey, version: int, broker: SimulatedBroker | None = None, **values: Any
    ) -> Any:
        """The answer, or None. A client that gets none closes its connection."""
        where = broker or self.any_broker()
        connection = self._connections.setdefault(where.name, LeavingConnection())
        answer = self.send(where, key, version, **values)
        await asyncio.wait([answer], timeout=REQUEST_TIMEOUT_S)
        if not answer.done() or answer.result() is None:
            self._connections.pop(where.name, None)
            assert isinstance(connection, LeavingConnection)
            connection.close()
            return None
        data = answer.result()
        assert data is not None
        return decode_response(key, version, data)[1]

    async def _until_final(
        self,
        key: ApiKey,
        values: dict[str, Any],
        code_of: Callable[[Any], ErrorCode],
        *,
        tries: int | None,
        version: int | None = None,
        at_coordinator: bool = False,
    ) -> tuple[ErrorCode, Any]:
        """Ask until the error is none that clients retry; raises `GivenUpError` after `tries`."""
        asked = 0
        api_version = VERSIONS[key][self.version - 1] if version is None else version
        while tries is None or asked < tries:
            asked += 1
            broker = await self._group_coordinator() if at_coordinator else None
            answer = await self._ask(key, api_version, broker, **values)
            code = code_of(answer) if answer is not None else None
            name = "no answer" if code is None else code.name
            self.surface.trace.count(f"{key.message_name}: {name}")
            if code is not None and code not in AGAIN:
                return code, answer
            self._coordinator = None
            await self.pause(0.4)
        raise GivenUpError(f"{key.message_name} is not answered")

    async def _init(self, expected: tuple[int, int] = (-1, -1)) -> None:
        values = {
            "transactional_id": self.id,
            "transaction_timeout": self.random.choice((2_000, 8_000, 30_000)),
            "producer_id": expected[0],
            "producer_epoch": expected[1],
        }
        code, answer = await self._until_final(
            ApiKey.INIT_PRODUCER_ID,
            values,
            lambda got: ErrorCode(got.error_code),
            tries=None,
            version=5,
        )
        if code in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch):
            raise FencedError
        if code is not ErrorCode.none:
            self.surface.trace.violate("transactions", f"{self.name}: init: {code.name}")
        self._pair, self._sequences = (answer.producer_id, answer.producer_epoch), {}
        self.surface.trace.add(self.name, f"is {self._pair}")

    async def _add(self, partitions: set[int]) -> None:
        owner = {f"v3_and_below_{name}": value for name, value in self._owner.items()}
        topics = [{"name": TOPIC, "partitions": sorted(partitions)}]
        code, _ = await self._until_final(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            owner | {"v3_and_below_topics": topics},
            lambda got: ErrorCode(
                got.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
            tries=TRIES,
        )
        self._check("add", code)

    async def _write(self, number: int, mark: bytes) -> None:
        partition = number % PARTITIONS
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + 1
        value = b"x%s:%d:%s" % (self.id.encode(), number, mark)
        batch = build_batch(
            [(None, value)],
            producer_id=self._pair[0],
            producer_epoch=self._pair[1],
            base_sequence=sequence,
            transactional=True,
        )
        rows = [{"index": partition, "records": batch}]
        values = {
            "transactional_id": self.id,
            "acks": -1,
            "timeout": 3_000,
            "topic_data": [{"name": TOPIC, "partition_data": rows}],
        }
        code, _ = await self._until_final(
            ApiKey.PRODUCE,
            values,
            lambda got: ErrorCode(got.responses[0].partition_responses[0].error_code),
            tries=TRIES,
        )
        self._check("produce", code)

    def _check(self, what: str, code: ErrorCode) -> None:
        if code is ErrorCode.none:
            return
        if code is ErrorCode.producer_fenced:
            raise FencedError
        if code not in ABORT:
            self.surface.trace.violate("transactions", f"{self.name}: {what}: {code.name}")
        raise GivenUpError(f"{what}: {code.name}")

    async def _group_coordinator(self) -> SimulatedBroker:
        while self._coordinator is None:
            answer = await self._ask(
                ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[self.id]
            )
            found = answer.coordinators[0] if answer is not None else None
            if found is not None and ErrorCode(found.error_code) is ErrorCode.none:
                brokers = self.surface.brokers
                self._coordinator = next((one for one in brokers if one.port == found.port), None)
            else:
                await self.pause(0.3)
        return self._coordinator

    async def _offsets(self, offset: int) -> None:
        if self.version == 1:
            code, _ = await self._until_final(
                ApiKey.ADD_OFFSETS_TO_TXN,
                self._owner | {"group_id": self.id},
                lambda got: ErrorCode(got.error_code),
                tries=TRIES,
            )
            self._check("add offsets", code)
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        values = {
            "group_id": self.id,
            "generation_id": -1,
            "member_id": "",
            "topics": [{"name": TOPIC, "partitions": [row | {"committed_leader_epoch": -1}]}],
        }
        code, _ = await self._until_final(
            ApiKey.TXN_OFFSET_COMMIT,
            self._owner | values,
            lambda got: ErrorCode(got.topics[0].partitions[0].error_code),
            tries=TRIES,
            at_coordinator=True,
        )
        self._check("offsets", code)

    async def _end(self, *, commit: bool) -> None:
        """Until it is told how the transaction has ended."""
        code, answer = await self._until_final(
            ApiKey.END_TXN,
            self._owner | {"committed": commit},
            lambda got: ErrorCode(got.error_code),
            tries=None,
        )
        self.surface.trace.add(self.name, f"{'commit' if commit else 'abort'}: {code.name}")
        if code is ErrorCode.none:
            if self.version == 2:
                self._pair, self._sequences = (answer.producer_id, answer.producer_epoch), {}
            return
        if code in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch):
            raise FencedError
        if commit and code in (ErrorCode.transaction_abortable, ErrorCode.unknown_producer_id):
            raise GivenUpError(f"commit: {code.name}")
        if not commit and code is ErrorCode.invalid_txn_state:
            return  # nothing was open
        self.surface.trace.violate(
            "transactions", f"{self.name}: {'commit' if commit else 'abort'}: {code.name}"
        )
        raise FencedError

    async def _position(self) -> int:
        """The group's stable offset."""
        wanted = {"group_id": self.id, "topics": [{"name": TOPIC, "partition_indexes": (0,)}]}
        while True:
            answer = await self._ask(
                ApiKey.OFFSET_FETCH,
                8,
                await self._group_coordinator(),
                groups=[wanted],
                require_stable=True,
            )
            group = answer.groups[0] if answer is not None else None
            row = group.topics[0].partitions[0] if group is not None and group.topics else None
            code = ErrorCode(group.error_code) if group is not None else None
            if code is ErrorCode.none and row is not None:
                code = ErrorCode(row.error_code)
            if code is ErrorCode.none and row is not None:
                return max(0, int(row.committed_offset))
            self._coordinator = None
            await self.pause(0.4)
