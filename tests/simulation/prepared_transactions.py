"""Copy jobs with two-phase commit (KIP-939): another system decides how their transactions end.

A job prepares: all its requests are acknowledged. Then it records the decision, and may crash. Its
successor keeps the transaction and ends it as decided. Without a decision, the successor aborts the
transaction. It records this decision, too, so that the former job can no longer decide. Invariants
of the log: the bucket agrees with each decision, and no timeout ends a transaction.
"""

from random import Random
from typing import TypeAlias

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.simulation.clients import Surface
from tests.simulation.transaction_client import CrashedError, FencedError, GivenUpError
from tests.simulation.transactions import ABORT_SHARE, PARTITIONS, CopyJob

CRASH_SHARE = 0.3
"""The probability that a job dies after its decision."""
SHARED = "prepared"
Decisions: TypeAlias = dict[tuple[int, int], tuple[bytes, bool]]
"""The state of the other system, by the pair that began the transaction: the transaction's mark,
and whether it is committed."""


class PreparedCopyJob(CopyJob):
    def __init__(self, name: str, surface: Surface, random: Random, decisions: Decisions) -> None:
        super().__init__(name, surface, random, group=SHARED, ids=[SHARED], version=2)
        self._decisions = decisions

    async def run(self) -> None:
        await super().run()
        self.is_done = False
        while True:
            try:
                await self._init()
                break
            except (CrashedError, FencedError):
                await self.pause(2)
        self.told += [decided for decided in self._decisions.values() if decided[0]]
        self.is_done = True

    async def _init(self, expected: tuple[int, int] = (-1, -1)) -> None:
        values = {
            "transactional_id": self.id,
            "transaction_timeout": self.random.choice((500, 2_000)),
            "producer_id": -1,
            "producer_epoch": -1,
            "enable2_pc": True,
            "keep_prepared_txn": True,
        }
        code, answer = await self.until_final(
            ApiKey.INIT_PRODUCER_ID,
            6,
            values,
            lambda got: ErrorCode(got.error_code),
            tries=None,
        )
        if code is not ErrorCode.none:
            self.surface.trace.violate("two-phase commit", f"{self.name}: init: {code.name}")
        self._pair, self._sequences = (answer.producer_id, answer.producer_epoch), {}
        self.surface.trace.add(self.name, f"is {self._pair}")
        if answer.ongoing_txn_producer_id >= 0:
            kept = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
            _, is_commit = self._decisions.setdefault(kept, (b"", False))
            self.surface.trace.count(f"prepared job: keeps, {is_commit}")
            await self._end(commit=is_commit)

    async def _transaction(self, position: int) -> None:
        self._number += 1
        numbers = range(position, position + self.random.randint(1, 3))
        mark = f"{self.name}.{self._number}".encode()
        for number in numbers:
            await self._copy(number, mark)
        if self.random.random() < CRASH_SHARE / PARTITIONS:
            raise CrashedError
        await self._offsets(numbers[-1] + 1)
        is_commit = self.random.random() >= ABORT_SHARE
        if self._decisions.setdefault(self._pair, (mark, is_commit))[0] != mark:
            raise FencedError
        self.surface.trace.count(f"prepared job: decides, {is_commit}")
        if self.random.random() < CRASH_SHARE:
            raise CrashedError
        await self._end(commit=is_commit)

    async def _end(self, *, commit: bool) -> None:
        try:
            await super()._end(commit=commit)
        except GivenUpError as error:
            self.surface.trace.violate("two-phase commit", f"{self.name}: {error}")
            raise FencedError from error
