"""Copy jobs of the simulation: transactional producers of both versions, with the group's offsets.

A job copies numbers: the next is its group's offset. Each transaction writes some numbers and
commits the offset after them. At times, it gives up or dies while its requests are in flight, and
one of its batches may come late. Two jobs may share their id and their group. Each fences the other
and continues after a while, as a restarted process. A job with several ids dies and continues with
the next id, in the same group. Then only the group's stable offset shows what the former id has
committed, and only a timeout ends the transaction that it left open.

Invariants: committed numbers are there once and in order. The group's offset is after the last of
them. An acknowledged commit is in the bucket. A transaction is committed only if its job asked for
a commit. A job is fenced only if another pair owns the id.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import transactional_values
from tests.simulation.clients import Surface
from tests.simulation.transaction_client import (
    CrashedError,
    FencedError,
    GivenUpError,
    TransactionClient,
)

TOPIC = "copied"
PARTITIONS = 2
CONFIGS = {"retention.bytes": "-1", "retention.ms": "-1"}
PASSING_PARTITION = 1
"""The partition that jobs write to, of topics that come and go. Only the topic's user writes to the
first partition."""
TRIES = (1, 3, 12, 12)
"""How many times a request is sent before the job gives its transaction up."""
CRASH_SHARE = 0.06
ABORT_SHARE = 0.2
PASSING_SHARE = 0.3
STALL_SHARE = 0.1
RESTARTS_S = (0.02, 1.0, 6.0)
STRAGGLER_SHARE = 0.7
"""The probability that a given-up transaction has a late batch."""
STRAGGLES_S = (0.03, 0.3, 3.0)
TIMEOUTS_MS = (2_000, 8_000, 30_000)
SHORT_TIMEOUTS_MS = (2_000, 8_000)
"""Transaction timeouts of jobs with several ids: these jobs wait for the timeout."""
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
    ApiKey.INIT_PRODUCER_ID: (4, 5),
}


class CopyJob(TransactionClient):
    def __init__(
        self,
        name: str,
        surface: Surface,
        random: Random,
        *,
        group: str,
        ids: Sequence[str],
        version: int,
    ) -> None:
        """`ids` are the transactional ids of the job's processes, in turn."""
        super().__init__(name, surface, random, group=group)
        self.id = ids[0]
        self._ids = ids
        self.timeouts_ms: Sequence[int] = TIMEOUTS_MS if len(ids) == 1 else SHORT_TIMEOUTS_MS
        self.version = version
        self.is_ending = False
        self.is_done = False
        self.has_moved_on: Callable[[str, tuple[int, int]], bool] = lambda each, pair: True
        """Whether the bucket says that another pair than this one owns the id."""
        self.told: list[tuple[bytes, bool]] = []
        """Marks of transactions: True if committed, False if a commit is impossible."""
        self._pair = (-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}
        self._number = self._lives = 0
        self._mark = b""
        self._asked_to_commit = False
        self._stragglers: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        while not self.is_ending:
            try:
                await self._live()
            except CrashedError:
                self.surface.trace.count("copy job: crash")
                self._leave_open()
                await self.pause(self.random.choice(RESTARTS_S))
            except FencedError:
                self.surface.trace.count("copy job: fenced")
                self._check_fenced()
                await self.pause(12)
        await asyncio.gather(*self._stragglers)
        self.is_done = True

    def _check_fenced(self) -> None:
        if self._pair[0] >= 0 and not self.has_moved_on(self.id, self._pair):
            self.surface.trace.violate("fenced", f"{self.name}: {self._pair} owns {self.id}")

    def _leave_open(self) -> None:
        """Note that nobody commits the open transaction if this process did not ask to commit."""
        if self._mark and not self._asked_to_commit:
            self.told.append((self._mark, False))
            self._straggle()
        self._mark = b""

    async def _live(self) -> None:
        """One process: an init, then transactions."""
        self.id = self._ids[self._lives % len(self._ids)]
        self._lives += 1
        self._pair = (-1, -1)
        await self._init()
        while not self.is_ending:
            position = await self.stable_offset(TOPIC)
            try:
                await self._transaction(position)
            except GivenUpError as reason:
                self.surface.trace.count("copy job: aborts")
                self.surface.trace.add(self.name, f"gives up: {reason}")
                self.told.append((self._mark, False))
                self._straggle()
                self._asked_to_commit = False
                await self._end(commit=False)
                if self.version == 1:
                    await self._init(self._pair)
            self._mark = b""
            if self.random.random() < CRASH_SHARE:
                self.surface.trace.count("copy job: crash")
                return
            await self.pause(0.6)

    async def _transaction(self, position: int) -> None:
        self._number += 1
        self._asked_to_commit = False
        numbers = range(position, position + self.random.randint(1, 3))
        mark = self._mark = f"{self.name}.{self._number}".encode()
        if self.version == 1:
            await self._add(TOPIC, {number % PARTITIONS for number in numbers})
        await asyncio.gather(*(self._copy(number, mark) for number in numbers[:PARTITIONS]))
        for number in numbers[PARTITIONS:]:
            await self._copy(number, mark)
        if self.surface.passing and self.random.random() < PASSING_SHARE:
            await self._write_passing(mark)
        if self.random.random() < CRASH_SHARE:
            raise CrashedError
        await self._offsets(numbers[-1] + 1)
        is_commit = self.random.random() >= ABORT_SHARE
        self._asked_to_commit = is_commit
        await self._end(commit=is_commit)
        self.told.append((mark, is_commit))
        self.surface.trace.count(f"copy job: {'commit' if is_commit else 'abort'} told")

    # Batches ---------------------------------------------------------------------------------

    async def _copy(self, number: int, mark: bytes) -> None:
        await self._write(TOPIC, number % PARTITIONS, number, mark)

    async def _write_passing(self, mark: bytes) -> None:
        """Write to a topic that may be deleted before the transaction ends."""
        topic = self.random.choice(sorted(self.surface.passing))
        self.surface.trace.count("copy job: to a topic that goes")
        if self.version == 1:
            await self._add(topic, {PASSING_PARTITION})
        await self._write(topic, PASSING_PARTITION, 0, mark)

    async def _write(self, topic: str, partition: int, number: int, mark: bytes) -> None:
        values = self._batch(topic, partition, number, mark)
        code, _ = await self.until_final(
            ApiKey.PRODUCE,
            self._version_of(ApiKey.PRODUCE),
            values,
            lambda got: ErrorCode(got.responses[0].partition_responses[0].error_code),
            tries=self.random.choice(TRIES),
        )
        self._check("produce", code)

    def _batch(self, topic: str, partition: int, number: int, mark: bytes) -> dict[str, Any]:
        """The fields of a Produce request with the partition's next batch."""
        sequence = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = sequence + 1
        value = b"x%s:%d:%s" % (self.group.encode(), number, mark)
        return transactional_values(
            self.id, self._pair, topic, partition, value, sequence=sequence, timeout_ms=3_000
        )

    def _straggle(self) -> None:
        """Send one more batch of the transaction after the job has continued."""
        if self._pair[0] < 0 or self.random.random() > STRAGGLER_SHARE:
            return
        self.surface.trace.count("copy job: a batch comes late")
        values = self._batch(TOPIC, self.random.randrange(PARTITIONS), 0, self._mark)
        delay_s = self.random.random() * self.random.choice(STRAGGLES_S)
        broker, version = self.any_broker(), self._version_of(ApiKey.PRODUCE)

        async def send() -> None:
            await asyncio.sleep(delay_s)
            self.send(broker, ApiKey.PRODUCE, version, **values)

        self._stragglers.append(asyncio.create_task(send()))

    # Other requests --------------------------------------------------------------------------

    def _version_of(self, key: ApiKey) -> int:
        return VERSIONS[key][self.version - 1]

    @property
    def _owner(self) -> dict[str, Any]:
        producer_id, epoch = self._pair
        return {
            "transactional_id": self.id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }

    async def _init(self, expected: tuple[int, int] = (-1, -1)) -> None:
        values = self._init_values(expected)
        code, answer = await self.until_final(
            ApiKey.INIT_PRODUCER_ID,
            self._version_of(ApiKey.INIT_PRODUCER_ID),
            values,
            lambda got: ErrorCode(got.error_code),
            tries=None,
        )
        if code in (ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch):
            raise FencedError
        if code is not ErrorCode.none:
            self.surface.trace.violate("transactions", f"{self.name}: init: {code.name}")
        self._pair, self._sequences = (answer.producer_id, answer.producer_epoch), {}
        self.surface.trace.add(self.name, f"is {self._pair} of {self.id}")

    def _init_values(self, expected: tuple[int, int]) -> dict[str, Any]:
        return {
            "transactional_id": self.id,
            "transaction_timeout": self.random.choice(self.timeouts_ms),
            "producer_id": expected[0],
            "producer_epoch": expected[1],
        }

    async def _add(self, topic: str, partitions: set[int]) -> None:
        owner = {f"v3_and_below_{name}": value for name, value in self._owner.items()}
        topics = [{"name": topic, "partitions": sorted(partitions)}]
        code, _ = await self.until_final(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            self._version_of(ApiKey.ADD_PARTITIONS_TO_TXN),
            owner | {"v3_and_below_topics": topics},
            lambda got: ErrorCode(
                got.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
            tries=self.random.choice(TRIES),
        )
        self._check("add", code)

    def _check(self, what: str, code: ErrorCode) -> None:
        if code is ErrorCode.none:
            return
        if code is ErrorCode.producer_fenced:
            raise FencedError
        if code not in ABORT:
            self.surface.trace.violate("transactions", f"{self.name}: {what}: {code.name}")
        raise GivenUpError(f"{what}: {code.name}")

    async def _offsets(self, offset: int) -> None:
        if self.version == 1:
            await self._add_offsets()
        await self._commit_offsets(offset)

    async def _add_offsets(self) -> None:
        code, _ = await self.until_final(
            ApiKey.ADD_OFFSETS_TO_TXN,
            self._version_of(ApiKey.ADD_OFFSETS_TO_TXN),
            self._owner | {"group_id": self.group},
            lambda got: ErrorCode(got.error_code),
            tries=self.random.choice(TRIES),
        )
        self._check("add offsets", code)

    async def _commit_offsets(self, offset: int) -> None:
        code, _ = await self.until_final(
            ApiKey.TXN_OFFSET_COMMIT,
            self._version_of(ApiKey.TXN_OFFSET_COMMIT),
            self._offset_values(offset),
            lambda got: ErrorCode(got.topics[0].partitions[0].error_code),
            tries=self.random.choice(TRIES),
            at_coordinator=True,
        )
        self._check("offsets", code)

    def _offset_values(self, offset: int) -> dict[str, Any]:
        """The fields of a TxnOffsetCommit request without a member of the group."""
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        return self._owner | {
            "group_id": self.group,
            "generation_id": -1,
            "member_id": "",
            "topics": [{"name": TOPIC, "partitions": [row | {"committed_leader_epoch": -1}]}],
        }

    async def _end(self, *, commit: bool) -> None:
        """Until it is told how the transaction has ended."""
        key, values = ApiKey.END_TXN, self._owner | {"committed": commit}
        code, answer = await self._stalled_end(values)
        if code is not ErrorCode.none:
            code, answer = await self.until_final(
                key,
                self._version_of(key),
                values,
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

    async def _stalled_end(self, values: dict[str, Any]) -> tuple[ErrorCode | None, Any]:
        """At times, the first try is at a broker whose last segment never comes."""
        if self.random.random() >= STALL_SHARE:
            return None, None
        broker, key = self.any_broker(), ApiKey.END_TXN
        self.surface.provoke("stall", broker, 1.0)
        await self.pause(0.3)
        answer = await self.ask(key, self._version_of(key), broker, **values)
        return (ErrorCode(answer.error_code) if answer is not None else None), answer
