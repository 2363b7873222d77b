"""Offsets that are committed in transactions (TxnOffsetCommit): pending until the transaction ends.

Invariants: like other commits, these are let in by the group's machine, and by the sequencer under
the coordinator's term. A fetch of stable offsets waits for commits on their way. Commits are
acknowledged when they are visible. Source: KIP-98, KIP-447; Kafka's
GroupCoordinatorService.commitTransactionalOffsets.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinated_group import CoordinatedGroup
from bucketlog.consumers.coordinator import GroupCoordinator, Spawn
from bucketlog.consumers.group_forms import commit_refusal
from bucketlog.consumers.group_messages import CallerIdentity
from bucketlog.consumers.offset_rows import OffsetRows, named, weight_of
from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.facts import OffsetRow, TransactionOffsets
from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.transaction_requests import (
    ProducerPair,
    WantedTransactionOffsets,
)

logger = logging.getLogger(__name__)


class TransactionOffsetCommitter(Protocol):
    async def commit_offsets(
        self,
        fact: TransactionOffsets,
        wanted: WantedTransactionOffsets,
        is_given_up: Callable[[], bool],
    ) -> FactStatus: ...


class CommittingTransaction(NamedTuple):
    """`version`: of the request (1 or 2)."""

    transactional_id: str
    pair: ProducerPair
    version: int


class TransactionalCommits:
    """Clocks as those of `GroupOffsets`, whose limits (`rows`) it shares."""

    def __init__(
        self,
        *,
        coordinator: GroupCoordinator,
        rows: OffsetRows,
        log: TransactionOffsetCommitter,
        timeout_ms: int,
        now_ms: Callable[[], int],
        wall_ms: WallClock,
        spawn: Spawn,
    ) -> None:
        self._coordinator = coordinator
        self._rows = rows
        self._log = log
        self._timeout_s = timeout_ms / 1000
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._spawn = spawn

    async def commit(
        self,
        group_id: str,
        identity: CallerIdentity,
        rows: Sequence[OffsetRow],
        transaction: CommittingTransaction,
    ) -> ErrorCode | FactStatus:
        """Commit offsets in a transaction. Returns an error of the group, or the sequencer's answer
        about the transaction."""
        async with self._coordinator.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return held
            if identity.generation >= 0 and not self._coordinator.exists(held):
                return ErrorCode.illegal_generation
            error = commit_refusal(
                held.group, identity, named(rows), self._now_ms(), transactional=True
            )
            if error is not ErrorCode.none:
                return error if await held.stored() else ErrorCode.not_coordinator
            error = self._rows.refusal(group_id, rows, pending=True)
            if error is not ErrorCode.none:
                return error
            return await self._write(held, rows, transaction)

    async def _write(
        self,
        held: CoordinatedGroup,
        rows: Sequence[OffsetRow],
        transaction: CommittingTransaction,
    ) -> ErrorCode | FactStatus:
        """Write the offsets. COORDINATOR_NOT_AVAILABLE if the outcome is unknown: the offsets may
        still come into the log."""
        loop = asyncio.get_running_loop()
        on_its_way: asyncio.Future[ErrorCode] = loop.create_future()
        outcome: asyncio.Future[ErrorCode | FactStatus] = loop.create_future()
        held.on_their_way.add(on_its_way)
        weight, is_given_up = weight_of(rows), False
        self._rows.in_flight += weight

        async def bring() -> None:
            answer: ErrorCode | FactStatus = ErrorCode.coordinator_not_available
            try:
                answer = await self._bring(held, rows, weight, transaction, lambda: is_given_up)
            finally:
                self._rows.in_flight -= weight
                held.on_their_way.discard(on_its_way)
                on_its_way.set_result(ErrorCode.none)
                outcome.set_result(answer)

        self._spawn(bring(), f"transactional offsets of group {held.group_id!r}")
        try:
            await asyncio.wait([outcome], timeout=self._timeout_s)
        finally:
            is_given_up = True
        return outcome.result() if outcome.done() else ErrorCode.coordinator_not_available

    async def _bring(
        self,
        held: CoordinatedGroup,
        rows: Sequence[OffsetRow],
        weight: int,
        transaction: CommittingTransaction,
        is_given_up: Callable[[], bool],
    ) -> ErrorCode | FactStatus:
        pair = transaction.pair
        fact = TransactionOffsets(
            id=transaction.transactional_id,
            producer_id=pair.producer_id,
            producer_epoch=pair.epoch,
            group=held.group_id,
            offsets=tuple(rows),
            at_ms=max(0, self._wall_ms()),
        )
        wanted = WantedTransactionOffsets(*transaction, held.group_id, held.term, weight)
        try:
            status = await self._log.commit_offsets(fact, wanted, is_given_up)
        except SequencerError as reason:
            logger.info("offsets of group %r are not committed: %s", held.group_id, reason)
            return kafka_code(reason, ApiFamily.TRANSACTIONS)
        if status is FactStatus.NOT_COORDINATOR:
            self._coordinator.resign(held)
            return ErrorCode.not_coordinator
        return status
