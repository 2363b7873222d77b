"""When a broker that cannot write gives its roles to the others, and when it returns."""

from dataclasses import replace

import pytest

from bucketlog.log_format.model import WriterId
from bucketlog.stateless_broker.membership.withdrawal import (
    Withdrawal,
    WithdrawalLimits,
    WriteState,
)

STALLED = WriteState("the bucket stalls", False, True, False, WriterId("w"))
WELL = replace(STALLED, reason=None)


@pytest.fixture
def withdrawal() -> Withdrawal:
    return Withdrawal(WithdrawalLimits(withdrawal_ms=1000, between_epochs_ms=5000, return_ms=3000))


def test_a_broker_withdraws_after_a_pause_and_returns_after_another(withdrawal: Withdrawal) -> None:
    keeps = (None, None)
    gave = (STALLED.reason, STALLED.writer)
    for now_s, found, wanted in (
        (10.0, STALLED, keeps),
        (10.75, STALLED, keeps),
        (11.0, STALLED, gave),
        (20.0, WELL, gave),
        (22.0, STALLED, gave),  # the pause begins again
        (23.0, WELL, gave),
        (25.75, WELL, gave),
        (26.0, WELL, keeps),
    ):
        withdrawal.decide(found, now_s)
        assert (withdrawal.reason, withdrawal.given_up_writer) == wanted, now_s


def test_a_moment_without_writes_is_forgotten(withdrawal: Withdrawal) -> None:
    for now_s, found in ((0.0, STALLED), (0.9, WELL), (1.0, STALLED), (1.9, STALLED)):
        withdrawal.decide(found, now_s)
    assert withdrawal.reason is None


def test_a_broker_keeps_its_roles_while_all_join_the_next_epoch(withdrawal: Withdrawal) -> None:
    """The others cannot write either, so roles would move back and forth."""
    between = replace(STALLED, is_between_epochs=True)
    for now_s, wanted in ((0.0, None), (4.75, None), (5.0, STALLED.reason)):
        withdrawal.decide(between, now_s)
        assert withdrawal.reason == wanted, now_s


def test_the_last_broker_that_serves_keeps_its_roles(withdrawal: Withdrawal) -> None:
    last = replace(STALLED, has_substitute=False)
    withdrawal.decide(last, 0.0)
    withdrawal.decide(last, 60.0)
    assert withdrawal.reason is None


def test_a_broker_that_is_needed_takes_its_roles_back(withdrawal: Withdrawal) -> None:
    withdrawal.decide(STALLED, 0.0)
    withdrawal.decide(STALLED, 1.0)
    withdrawal.decide(replace(STALLED, has_substitute=False, is_needed=True), 1.1)
    assert (withdrawal.reason, withdrawal.given_up_writer) == (None, None)
