"""Transactions that time out together are aborted together; others wait for their turn."""

import pytest

from bucketlog.log_format.errors import SequencerUnavailableError
from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.transaction_requests import OverdueTransaction, ProducerPair
from bucketlog.stateless_broker.duties.transaction_timeouts import (
    ABORTS_A_LOOK,
    TransactionTimeouts,
)


class Overdue:
    """The parts of the sequencer and the log that the duty needs."""

    def __init__(self, count: int) -> None:
        self.left = [
            OverdueTransaction(f"x{number}", ProducerPair(number, 0), 2, 0)
            for number in range(count)
        ]
        self.looks = 0
        self.answer = FactStatus.OK
        self.broken = ""
        """The id whose abort fails."""

    async def overdue_transactions(self, epoch: int, *, count: int) -> list[OverdueTransaction]:
        assert epoch == 7
        self.looks += 1
        return self.left[:count]

    async def idle_transactional_ids(
        self, epoch: int, cursor: str, *, count: int, before_ms: int
    ) -> tuple[str, list[str]]:
        raise NotImplementedError

    async def abort(self, each: OverdueTransaction) -> FactStatus:
        if each.transactional_id == self.broken:
            raise SequencerUnavailableError("gone")
        if self.answer is FactStatus.OK:
            self.left.remove(each)
        return self.answer


def duty(overdue: Overdue, place: int = 0) -> TransactionTimeouts:
    return TransactionTimeouts(
        epoch=7,
        sequencer=overdue,
        abort=overdue.abort,
        place_in_line=lambda task: place,
        interval_ms=1,
    )


async def test_a_round_aborts_all_that_have_timed_out() -> None:
    overdue = Overdue(3 * ABORTS_A_LOOK + 1)
    await duty(overdue).go_round()
    assert overdue.left == []
    assert overdue.looks == 4


async def test_a_round_ends_if_nothing_can_be_aborted() -> None:
    overdue = Overdue(2 * ABORTS_A_LOOK)
    overdue.answer = FactStatus.WAIT
    await duty(overdue).go_round()
    assert overdue.looks == 1


async def test_the_second_in_line_waits_for_a_round() -> None:
    overdue = Overdue(2 * ABORTS_A_LOOK)
    second = duty(overdue, place=1)
    await second.go_round()
    assert overdue.looks == 1
    assert len(overdue.left) == 2 * ABORTS_A_LOOK
    await second.go_round()
    assert len(overdue.left) == ABORTS_A_LOOK


async def test_one_that_fails_does_not_hold_back_the_others() -> None:
    overdue = Overdue(10)
    overdue.broken = "x4"
    with pytest.raises(SequencerUnavailableError, match="gone"):
        await duty(overdue).go_round()
    assert [each.transactional_id for each in overdue.left] == ["x4"]
