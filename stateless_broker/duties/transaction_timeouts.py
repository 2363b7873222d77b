"""Transactions are aborted after their timeouts, and idle transactional ids are forgotten.

Invariants: deadlines are in the sequencer, so no broker has to remember anything. The end of an
overdue transaction names its owner, epoch and serial. So a transaction that has ended meanwhile, or
that another producer has kept, is left alone. All brokers look; the first in line for an id acts at
once, each other a round later. A transaction with two-phase commit is never overdue. Each look
notes the age of the oldest such transaction.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import WallClock
from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.transaction_requests import OverdueTransaction, TransactionAges
from bucketlog.stateless_broker.produce.transaction_counts import TransactionCounts

logger = logging.getLogger(__name__)

ABORTS_A_LOOK = 100
IDS_A_CALL = 1_000
IN_FLIGHT_MAX = 20
PAUSE_S = 0.02
BEGIN = "0"
EXPIRY = "the expiry of transactional ids"
"""The task that brokers are in line for."""


class TransactionStore(Protocol):
    async def overdue_transactions(self, epoch: int, *, count: int) -> TransactionAges: ...

    async def idle_transactional_ids(
        self, epoch: int, cursor: str, *, count: int, before_ms: int
    ) -> tuple[str, list[str]]: ...


class TransactionTimeouts:
    def __init__(
        self,
        *,
        epoch: int,
        sequencer: TransactionStore,
        abort: Callable[[OverdueTransaction], Awaitable[FactStatus]],
        place_in_line: Callable[[str], int],
        interval_ms: int,
        counts: TransactionCounts,
    ) -> None:
        self._epoch = epoch
        self._sequencer = sequencer
        self._abort = abort
        self._counts = counts
        self._place_in_line = place_in_line
        self._interval_s = interval_ms / 1000
        self._rounds: dict[OverdueTransaction, int] = {}
        """Number of rounds in which each transaction was overdue."""

    async def run(self) -> None:
        """Look for overdue transactions, until the epoch ends."""
        try:
            while True:
                await asyncio.sleep(self._interval_s)
                try:
                    await self.go_round()
                except (SequencerError, TimeoutError) as error:
                    logger.warning("no transactions are aborted now: %s", error)
        finally:
            self._counts.oldest_two_phase_ms = 0

    async def go_round(self) -> None:
        """Abort all overdue transactions for which this broker is in line, even if very many time
        out together. Raises `SequencerError`."""
        is_new, is_more = 1, True
        while is_more:
            found = await self._sequencer.overdue_transactions(self._epoch, count=ABORTS_A_LOOK)
            overdue, self._counts.oldest_two_phase_ms = found
            self._rounds = {each: self._rounds.get(each, 1 - is_new) + is_new for each in overdue}
            is_more = await self._abort_mine() > 0 and len(overdue) == ABORTS_A_LOOK
            is_new = 0

    async def _abort_mine(self) -> int:
        """Abort in parallel. Returns how many transactions were aborted."""
        mine = [
            each
            for each, rounds in self._rounds.items()
            if rounds > self._place_in_line(f"txn:{each.transactional_id}")
        ]
        outcomes = await asyncio.gather(*map(self._abort, mine), return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        aborted = [
            each.transactional_id
            for each, outcome in zip(mine, outcomes, strict=True)
            if outcome is FactStatus.OK
        ]
        if aborted:
            logger.info(
                "aborted %d transactions after their timeouts, the first of them of %r",
                len(aborted),
                aborted[0],
            )
        if failed:
            raise failed[0]
        return len(aborted)


class TransactionalIdExpiry:
    """Expires transactional ids. An id is idle only by both `clocks`."""

    def __init__(
        self,
        *,
        epoch: int,
        sequencer: TransactionStore,
        forget: Callable[[str, int], Awaitable[FactStatus]],
        place_in_line: Callable[[str], int],
        clocks: tuple[WallClock, WallClock],
        idle_ms: int,
        interval_ms: int,
    ) -> None:
        self._epoch = epoch
        self._sequencer = sequencer
        self._forget = forget
        self._place_in_line = place_in_line
        self._clocks = clocks
        self._idle_ms = idle_ms
        self._interval_s = interval_ms / 1000

    async def run(self) -> None:
        """Look for idle ids, until the epoch ends, on the broker whose turn it is."""
        while True:
            await asyncio.sleep(self._interval_s)
            if self._place_in_line(EXPIRY):
                continue
            try:
                await self.go_round()
            except (SequencerError, TimeoutError) as error:
                logger.warning("no transactional ids are forgotten now: %s", error)

    async def go_round(self) -> int:
        """Forget all idle ids. Returns their number. Raises `SequencerError`."""
        before_ms = min(clock() for clock in self._clocks) - self._idle_ms
        cursor, total = BEGIN, 0
        while True:
            cursor, idle = await self._sequencer.idle_transactional_ids(
                self._epoch, cursor, count=IDS_A_CALL, before_ms=before_ms
            )
            for start in range(0, len(idle), IN_FLIGHT_MAX):
                some = idle[start : start + IN_FLIGHT_MAX]
                found = await asyncio.gather(*(self._forget(each, before_ms) for each in some))
                total += sum(status is FactStatus.OK for status in found)
            if cursor == BEGIN:
                break
            await asyncio.sleep(PAUSE_S)
        if total:
            logger.info("forgot %d idle transactional ids", total)
        return total
