"""Facts on the way into the log, and what becomes of those that the sequencer does not accept.

Invariants: what an older sequencer says of a transactional id is not told to a client as final. An
entry that is too old to be executed is never reserved.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import FactEntry
from bucketlog.metadata.sequencer.requests import (
    FINAL,
    FactStatus,
    Reservation,
    WantedFact,
    WantedGroupEntry,
)
from bucketlog.metadata.sequencer.transaction_requests import (
    ANY_SERIAL,
    TransactionChange,
    WantedEnd,
    WantedForgetting,
    WantedTransactionOffsets,
)

TRANSACTION_ENTRIES_MAX = 500
"""Limit of the entries of transactional ids in a flush: each takes up to a millisecond of Redis."""


def _is_of_one_epoch(wanted: WantedFact) -> bool:
    if isinstance(wanted, WantedEnd):
        return wanted.serial != ANY_SERIAL
    return isinstance(wanted, WantedGroupEntry | WantedTransactionOffsets | WantedForgetting)


@dataclass(slots=True)
class PendingFact:
    """A topic change, a group's offsets or an entry of a transactional id on the way into the log.
    `when_reserved`: the waiting request is answered before the fact is in the log.

    Of a transactional id: `change` is what the entry comes to, if it is reserved. The facts of
    inits and ends are made from it; `entry` then only stands for their size. After `wait_until`
    (event loop's time), WAIT is an answer. If `is_stale`, it must not be reserved any more."""

    entry: FactEntry
    wanted: WantedFact
    future: asyncio.Future[FactStatus]
    when_reserved: bool = False
    change: TransactionChange | None = None
    wait_until: float | None = None
    is_stale: Callable[[], bool] | None = None

    @property
    def given_up(self) -> bool:
        """Whether the waiting request got the answer that the fact may not be in the log."""
        return self.future.cancelled()

    @property
    def is_of_one_epoch(self) -> bool:
        """A coordinator's term is valid in one epoch; another epoch may have the same number. So is
        the serial of a transaction that an end names."""
        return _is_of_one_epoch(self.wanted)

    @property
    def may_wait(self) -> bool:
        """Whether to ask again if the sequencer lets the entry wait."""
        return self.wait_until is None or asyncio.get_running_loop().time() < self.wait_until

    @property
    def is_promised(self) -> bool:
        """Whether the fact was acknowledged before it was in the log."""
        if not self.when_reserved or not self.future.done() or self.future.cancelled():
            return False
        return self.future.exception() is None and self.future.result() is FactStatus.OK

    def settle(self, status: FactStatus) -> None:
        if not self.future.done():
            self.future.set_result(status)

    def fail(self, error: SequencerError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class TransactionOutcome(NamedTuple):
    """`change` with the statuses OK and DONE."""

    status: FactStatus
    change: TransactionChange | None


def take_facts(waiting: deque[PendingFact], max_bytes: int) -> list[PendingFact]:
    """The facts of the next flush: at least one, and no more than `max_bytes`."""
    facts: list[PendingFact] = []
    left, of_transactions = max_bytes, 0
    while waiting and (not facts or len(waiting[0].entry.payload) <= left):
        fact = waiting.popleft()
        if fact.is_stale is not None and fact.is_stale():
            fact.fail(SequencerError("the request is too old to be executed"))
        elif not fact.given_up:
            left -= len(fact.entry.payload)
            facts.append(fact)
            of_transactions += fact.wait_until is not None
            if of_transactions >= TRANSACTION_ENTRIES_MAX:
                break
    return facts


def settle_refused(
    facts: Sequence[PendingFact], reservation: Reservation, *, is_newest: bool
) -> list[PendingFact]:
    """Answer the facts that were not accepted. Returns those that must be asked again."""
    again = []
    for at, (fact, status) in enumerate(zip(facts, reservation.fact_statuses, strict=True)):
        if status is FactStatus.WAIT and fact.may_wait:
            again.append(fact)
        elif status in FINAL and not is_newest:
            fact.fail(SequencerError("a later epoch is claimed: this broker does not know it"))
        elif status is not FactStatus.OK:
            fact.change = reservation.changes.get(at)
            fact.settle(status)
    return again
