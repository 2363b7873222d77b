"""Transactions as handlers ask for them: entries into the log, or answers from the sequencer.

Invariants: an entry is answered when this broker's view shows it. What is final without an entry is
told only by the newest epoch's sequencer. An end of version 1 is bound, when it arrives, to the
transaction that is ongoing then; it is executed for that one or not at all, and not after its
broker has stood still.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bucketlog.log_format.errors import SequencerError
from bucketlog.metadata.facts import (
    TransactionalIdsForgotten,
    TransactionOffsets,
    encode_fact,
)
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import FINAL, FactStatus
from bucketlog.metadata.sequencer.transaction_requests import (
    ANY_SERIAL,
    LAST_EPOCH,
    BoundEnd,
    EndedBy,
    OverdueTransaction,
    ProducerPair,
    TransactionChange,
    TransactionPart,
    WantedEnd,
    WantedForgetting,
    WantedInit,
    WantedTransactionOffsets,
)
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.produce.intake import Intake
from bucketlog.stateless_broker.produce.loop_pauses import LoopPauses
from bucketlog.stateless_broker.produce.pending_facts import TransactionOutcome
from bucketlog.stateless_broker.produce.producer_ids import ProducerIds
from bucketlog.stateless_broker.produce.transaction_counts import TransactionCounts
from bucketlog.stateless_broker.produce.transaction_entries import stand_in

VERSION_1 = 1
OLDER = "a later epoch is claimed: this broker does not know the state of transactional ids"


@dataclass(frozen=True, slots=True)
class TransactionTimes:
    """Time limits: `wait_ms` for another entry of the same id, `request_ms` for everything."""

    wait_ms: int
    request_ms: int


class TransactionLog:
    """The transactions of one epoch. All methods raise `SequencerError`, and `TimeoutError` after
    `request_ms`."""

    def __init__(
        self,
        *,
        end: EpochEnd,
        intake: Intake,
        sequencer: Sequencer,
        producer_ids: ProducerIds,
        is_newest: Callable[[], Awaitable[bool]],
        pauses: LoopPauses,
        times: TransactionTimes,
        counts: TransactionCounts,
    ) -> None:
        self._end = end
        self._intake = intake
        self._sequencer = sequencer
        self._producer_ids = producer_ids
        self._is_newest = is_newest
        self._pauses = pauses
        self._times = times
        self._counts = counts

    async def initialise(
        self,
        transactional_id: str,
        expected: ProducerPair | None,
        *,
        timeout_ms: int,
        version: int,
        two_phase: bool = False,
        keeps: bool = False,
    ) -> TransactionOutcome:
        """A late init would fence the producer that has asked again meanwhile, so it is not
        executed after its broker has stood still."""
        read_at = asyncio.get_running_loop().time()
        async with asyncio.timeout(self._times.request_ms / 1000):
            candidate = await self._producer_ids.next()
            wanted = WantedInit(
                transactional_id, expected, timeout_ms, version, candidate, two_phase, keeps
            )
            return await self._commit(wanted, read_at)

    async def finish(
        self, transactional_id: str, pair: ProducerPair, *, is_commit: bool, version: int
    ) -> TransactionOutcome:
        """The client ends its transaction."""
        read_at = asyncio.get_running_loop().time()
        async with asyncio.timeout(self._times.request_ms / 1000):
            self._end.check()
            serial = ANY_SERIAL
            if version == VERSION_1:
                bound = await self._bound(transactional_id, pair, is_commit=is_commit)
                if isinstance(bound, FactStatus):
                    return TransactionOutcome(bound, TransactionChange(pair))
                serial = bound.serial
            wanted = WantedEnd(
                transactional_id,
                pair,
                is_commit,
                version,
                serial=serial,
                candidate=await self._candidate(pair),
            )
            return await self._commit(wanted, read_at if version == VERSION_1 else None)

    async def _bound(
        self, transactional_id: str, pair: ProducerPair, *, is_commit: bool
    ) -> BoundEnd | FactStatus:
        bound = await self._sequencer.bind_end(
            self._end.epoch, transactional_id, pair, is_commit=is_commit
        )
        return bound if isinstance(bound, BoundEnd) else await self._told(bound)

    async def _told(self, status: FactStatus) -> FactStatus:
        """Return the answer. Raises `SequencerError` if an older sequencer gives a final one."""
        if status in FINAL and not await self._is_newest():
            raise SequencerError(OLDER)
        return status

    async def abort_overdue(self, overdue: OverdueTransaction) -> FactStatus:
        """Abort a transaction after its timeout, if it is still the same."""
        wanted = WantedEnd(
            overdue.transactional_id,
            overdue.pair,
            False,
            overdue.version,
            EndedBy.SERVER,
            overdue.serial,
            await self._candidate(overdue.pair),
        )
        async with asyncio.timeout(self._times.request_ms / 1000):
            return (await self._commit(wanted)).status

    async def forget(self, transactional_id: str, before_ms: int) -> FactStatus:
        """Forget an id that has been idle since before `before_ms`."""
        fact = TransactionalIdsForgotten(ids=(transactional_id,))
        async with asyncio.timeout(self._times.request_ms / 1000):
            outcome = await self._intake.commit_transaction_entry(
                WantedForgetting(transactional_id, before_ms),
                encode_fact(fact),
                wait_ms=self._times.wait_ms,
            )
        return outcome.status

    async def _candidate(self, pair: ProducerPair) -> int:
        return -1 if pair.epoch < LAST_EPOCH else await self._producer_ids.next()

    async def _commit(
        self, wanted: WantedInit | WantedEnd, read_at: float | None = None
    ) -> TransactionOutcome:
        outcome = await self._intake.commit_transaction_entry(
            wanted,
            stand_in(wanted),
            wait_ms=self._times.wait_ms,
            is_stale=None if read_at is None else lambda: self._pauses.since(read_at),
        )
        if isinstance(wanted, WantedEnd):
            self._counts.note_end(wanted, outcome.status)
        return outcome

    async def commit_offsets(
        self,
        fact: TransactionOffsets,
        wanted: WantedTransactionOffsets,
        is_given_up: Callable[[], bool],
    ) -> FactStatus:
        """Commit pending offsets of a group, whose coordinator has let them in. They are not
        reserved if they are given up before."""
        self._end.check()
        read_at = asyncio.get_running_loop().time()
        outcome = await self._intake.commit_transaction_entry(
            wanted,
            encode_fact(fact),
            wait_ms=self._times.wait_ms,
            is_stale=lambda: (
                is_given_up() or (wanted.version == VERSION_1 and self._pauses.since(read_at))
            ),
        )
        return outcome.status

    async def add(
        self,
        transactional_id: str,
        pair: ProducerPair,
        *,
        parts: Sequence[TransactionPart] = (),
        groups: Sequence[str] = (),
        verify_only: bool = False,
    ) -> FactStatus:
        """Add partitions and groups to the client's transaction. It is never repeated here: a late
        one could begin the next transaction."""
        async with asyncio.timeout(self._times.request_ms / 1000):
            self._end.check()
            status = await self._sequencer.add_to_transaction(
                self._end.epoch,
                transactional_id,
                pair,
                parts=parts,
                groups=groups,
                verify_only=verify_only,
            )
            return await self._told(status)
