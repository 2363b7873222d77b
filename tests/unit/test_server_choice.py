"""The rules by which brokers start a Valkey, follow one, and move back to their Redis."""

from itertools import product

import pytest

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.model import WriterId
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSigns
from bucketlog.stateless_broker.epochs.server_choice import (
    PLACE_S,
    Outage,
    OutageStep,
    Reach,
    ServerLimits,
    Sight,
    Steadiness,
    Step,
    Wish,
    next_step,
)

TIMEOUT_MS = 3500
LIMITS = ServerLimits(
    timeout_ms=TIMEOUT_MS,
    sealed_wait_ms=30_000,
    quiet=Backoff(1500, 30_000),
    steady=Backoff(5000, 600_000),
)
POLL_S = 0.1
MINE, OTHER = WriterId("0" * 32), WriterId("1" * 32)


def sight(
    claimed: Reach | None = None,
    configured: Reach | None = None,
    silent_ms: float = 0,
    wish: Wish | None = None,
) -> Sight:
    return Sight(claimed, configured, silent_ms, wish)


def test_the_server_of_the_newest_claim_comes_first() -> None:
    for configured, wish in product([None, *Reach], [None, Wish.ELECT]):
        seen = sight(Reach.ANSWERS, configured, 1e9, wish)
        assert next_step(seen, TIMEOUT_MS) is Step.FOLLOW


def test_the_configured_redis_comes_before_a_valkey_that_has_to_be_started() -> None:
    for claimed, wish in product([None, Reach.GONE, Reach.SILENT], [None, *Wish]):
        seen = sight(claimed, Reach.ANSWERS, 0, wish)
        assert next_step(seen, TIMEOUT_MS) is Step.CONFIGURED


def test_whoever_gives_the_log_back_does_not_follow_the_claim_of_its_own_valkey() -> None:
    back = sight(Reach.ANSWERS, Reach.ANSWERS, 0, Wish.RETURN)
    assert next_step(back, TIMEOUT_MS) is Step.CONFIGURED
    gone_again = sight(Reach.ANSWERS, Reach.SILENT, 0, Wish.RETURN)
    assert next_step(gone_again, TIMEOUT_MS) is Step.FOLLOW


@pytest.mark.parametrize("configured", [Reach.SILENT, Reach.GONE])
def test_a_configured_redis_is_waited_for_until_the_time_out(configured: Reach) -> None:
    for claimed in (None, Reach.GONE, Reach.SILENT):
        waiting = sight(claimed, configured, TIMEOUT_MS - 1)
        assert next_step(waiting, TIMEOUT_MS) is Step.WAIT
        assert next_step(sight(claimed, configured, TIMEOUT_MS), TIMEOUT_MS) is Step.JUDGE


def test_without_a_configured_redis_nothing_is_waited_for() -> None:
    assert next_step(sight(), TIMEOUT_MS) is Step.JUDGE
    assert next_step(sight(Reach.GONE), TIMEOUT_MS) is Step.JUDGE


def test_a_mandate_starts_a_valkey_at_once() -> None:
    for claimed, configured in product([None, Reach.GONE], [None, Reach.SILENT]):
        seen = sight(claimed, configured, 0, Wish.ELECT)
        assert next_step(seen, TIMEOUT_MS) is Step.START


# Within an epoch ---------------------------------------------------------------------------------


def signs(other_end: int = 0, *, is_sealed: bool = False) -> EpochSigns:
    """This broker and another one in epoch 5."""
    live = {OTHER: other_end} if is_sealed else {OTHER: other_end, MINE: 0}
    names = {OTHER: "other", MINE: "me"}
    return EpochSigns(True, live, names, active_before=4, sealed_before=0, newest_ms=0)


class Broker:
    """Asks a server that does not answer every `POLL_S`. `ends` gives the end of the other broker's
    chain at a time (seconds since the server was heard last)."""

    def __init__(self, *, place: int = 0) -> None:
        self.place = place
        self.outage = Outage(LIMITS, now_s=100.0, own="me")
        self.now_s = 100.0
        self.looks = 0

    def leaves_after_s(
        self,
        longest_s: float = 300,
        *,
        is_gone: bool = False,
        writes_until_s: float = 0,
        sealed_after_s: float = 1e9,
    ) -> float | None:
        """None if it stays for `longest_s`."""
        began = self.now_s
        while self.now_s - began < longest_s:
            self.now_s += POLL_S
            passed = self.now_s - began
            step = self.outage.step(self.now_s, is_gone=is_gone, place=self.place)
            if step is OutageStep.LEAVE:
                return passed
            if step is OutageStep.LOOK:
                self.looks += 1
                self.outage.note_signs(
                    signs(int(min(passed, writes_until_s) * 4), is_sealed=passed >= sealed_after_s),
                    self.now_s,
                    is_sealed=passed >= sealed_after_s,
                    place=self.place,
                    drawn=0.0,
                )
        return None


def test_an_epoch_whose_server_answers_nobody_is_left_after_the_time_out() -> None:
    broker = Broker()
    assert broker.leaves_after_s() == pytest.approx(3.6, abs=0.15)
    assert broker.looks == 2, "one to compare with, one to decide"


def test_brokers_leave_one_after_another() -> None:
    times = [Broker(place=place).leaves_after_s() for place in range(3)]
    assert times == pytest.approx([3.6, 3.6 + PLACE_S, 3.6 + 2 * PLACE_S], abs=0.15)


def test_what_was_in_flight_when_the_server_went_is_no_sign_of_work() -> None:
    assert Broker().leaves_after_s(writes_until_s=1.0) == pytest.approx(3.6, abs=0.15)


def test_an_epoch_in_which_others_write_is_not_left() -> None:
    broker = Broker()
    assert broker.leaves_after_s(writes_until_s=300) is None
    assert "other brokers write" in broker.outage.reason
    assert broker.looks < 30, "looks become rare"


def test_an_epoch_is_left_some_time_after_the_last_write_of_others() -> None:
    left = Broker().leaves_after_s(writes_until_s=10)
    assert left is not None
    assert 11 < left < 30


def test_whom_others_have_sealed_waits_for_them() -> None:
    """They are idle, and they reach the sequencer: without it, nobody seals."""
    broker = Broker()
    assert broker.leaves_after_s(sealed_after_s=3.3) == pytest.approx(33.6, abs=0.3)
    assert "sealed" in broker.outage.reason


def test_an_answer_ends_the_outage() -> None:
    broker = Broker()
    assert broker.leaves_after_s(3.4) is None
    broker.outage.note_answer(broker.now_s)
    assert broker.leaves_after_s() == pytest.approx(3.6, abs=0.15)


def test_an_answer_of_before_the_outage_does_not_end_it() -> None:
    broker = Broker()
    broker.outage.note_answer(99.0)
    assert broker.leaves_after_s(3.4) is None
    broker.outage.note_answer(100.0)
    assert broker.leaves_after_s(1.0) is not None


def test_a_server_whose_process_has_ended_is_left_at_once() -> None:
    times = [Broker(place=place).leaves_after_s(is_gone=True) for place in range(3)]
    assert times == pytest.approx([0.2, 0.2 + PLACE_S, 0.2 + 2 * PLACE_S], abs=0.15)


def test_one_refused_connection_is_not_enough() -> None:
    broker = Broker()
    assert broker.outage.step(100.1, is_gone=True, place=0) is OutageStep.STAY
    broker.outage.note_answer(100.15)
    assert broker.outage.step(100.2, is_gone=True, place=0) is OutageStep.STAY
    assert broker.outage.step(100.3, is_gone=True, place=0) is OutageStep.LEAVE


def test_a_call_is_not_waited_for_beyond_the_time_out() -> None:
    outage = Outage(LIMITS, now_s=100.0, own="me")
    assert outage.call_timeout_s(100.5) == pytest.approx(3.0)
    assert outage.call_timeout_s(200) == pytest.approx(PLACE_S)


# Back to the configured Redis --------------------------------------------------------------------


def steady_after_s(steadiness: Steadiness, now_s: float) -> float:
    """How long the configured Redis has to answer."""
    began = now_s
    while not steadiness.is_steady(now_s):
        steadiness.note(now_s, answers=True)
        now_s += POLL_S
        assert now_s - began < 3000
    return now_s - began


def test_the_log_moves_back_to_a_redis_that_has_answered_for_some_time() -> None:
    steadiness = Steadiness(LIMITS.steady)
    steadiness.note_move(10.0)
    assert steady_after_s(steadiness, 100.0) == pytest.approx(5.1, abs=0.2)


def test_one_miss_begins_the_time_anew() -> None:
    steadiness = Steadiness(LIMITS.steady)
    for tenth in range(200):
        steadiness.note(100 + tenth / 10, answers=tenth % 30 != 0)
        assert not steadiness.is_steady(100 + tenth / 10)


def test_a_redis_that_comes_and_goes_has_to_answer_for_longer_each_time() -> None:
    steadiness = Steadiness(LIMITS.steady)
    now_s, waits = 100.0, []
    for _ in range(4):
        steadiness.note_move(now_s)
        waits.append(steady_after_s(steadiness, now_s))
        now_s += waits[-1]
    assert waits == pytest.approx([5.1, 10.1, 20.1, 40.1], abs=0.3)


def test_moves_of_long_ago_are_forgotten() -> None:
    steadiness = Steadiness(LIMITS.steady)
    for _ in range(5):
        steadiness.note_move(100.0)
    steadiness.note_move(100.0 + 1201)
    assert steady_after_s(steadiness, 2000.0) == pytest.approx(5.1, abs=0.2)
