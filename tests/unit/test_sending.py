"""Slow readers of responses: which connections are closed, and when."""

import pytest

from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.sending import Sending

MIB = 1 << 20
HOUR_S = 3_600


class Target:
    """A connection with one response of `size_bytes`, which holds as many bytes of `budget`."""

    def __init__(
        self, size_bytes: int = 1_000, *, budget: MemoryBudget | None = None, host: str = "a"
    ) -> None:
        self.payer = host
        self.due_bytes = self.unsent_bytes = self.held_bytes = size_bytes
        self.taken_bytes = 0
        self.closed = ""
        self._budget = budget
        if budget is not None:
            assert budget.acquire(size_bytes, self, lambda: None, address=host)

    def end(self, reason: str) -> None:
        self.closed = reason
        self._release()

    def take(self, count: int) -> None:
        self.unsent_bytes -= count
        self.taken_bytes += count
        if not self.unsent_bytes:
            self._release()

    def answer_again(self, size_bytes: int) -> None:
        self.due_bytes += size_bytes
        self.unsent_bytes += size_bytes
        self.held_bytes += size_bytes

    def _release(self) -> None:
        if self._budget is not None:
            self._budget.release(self.held_bytes, address=self.payer)
        self.held_bytes = 0


def sending(budget: MemoryBudget, *targets: Target) -> Sending:
    """While others wait, a client may need at most 30 s for its response."""
    found = Sending(budget, stalled_ms_max=30_000, slow_ms_max=30_000)
    for target in targets:
        found.watch(target)
    return found


def waits(budget: MemoryBudget, size_bytes: int, host: str = "bystander") -> bool:
    return not budget.acquire(size_bytes, "a waiter", lambda: None, address=host)


def test_a_client_that_takes_nothing_is_closed() -> None:
    silent, slow, done = targets = [Target() for _ in range(3)]
    watched = sending(MemoryBudget(100), *targets)
    for second in range(100):
        slow.take(1)
        if second == 20:
            done.take(1_000)
        watched.look(float(second))
        assert bool(silent.closed) == (second >= 30)
    assert "RESPONSE_STALLED_MS_MAX" in silent.closed
    assert not slow.closed
    assert not done.closed


def test_what_was_taken_before_more_was_written_counts() -> None:
    target = Target()
    watched = sending(MemoryBudget(100), target)
    for second in range(100):
        target.take(10)
        target.answer_again(10)
        watched.watch(target)
        watched.look(float(second))
    assert not target.closed


def test_a_response_that_the_broker_holds_back_is_not_stalled() -> None:
    """An earlier response of the connection is not ready yet."""
    target = Target()
    target.unsent_bytes = 0
    watched = sending(MemoryBudget(100), target)
    for second in range(100):
        watched.look(float(second))
    target.unsent_bytes = 1_000
    watched.look(110.0)
    assert not target.closed
    watched.look(130.0)
    assert target.closed


def test_a_slow_reader_is_never_closed_while_nobody_waits() -> None:
    budget = MemoryBudget(MIB)
    modem = Target(MIB, budget=budget)
    watched = sending(budget, modem)
    for second in range(HOUR_S):
        modem.take(100)
        watched.look(float(second))
    assert not modem.closed


def test_the_largest_of_the_slow_gives_way_when_others_wait() -> None:
    budget = MemoryBudget(100 * MIB)
    modem = Target(MIB, budget=budget, host="b")
    slow = Target(30 * MIB, budget=budget)
    slower = Target(32 * MIB, budget=budget)
    quick = Target(35 * MIB, budget=budget, host="b")
    watched = sending(budget, modem, slow, slower, quick)
    for second in range(10):
        if second == 7:
            assert waits(budget, 10 * MIB)
        if second > 8:
            assert not waits(budget, 0), "there is room again"
        for target, count in ((modem, 100), (slow, MIB // 2), (slower, MIB // 4), (quick, 2 * MIB)):
            target.take(count)
        watched.look(float(second))
        assert bool(slower.closed) == (second >= 8), "others wait at two checks in a row"
    assert "RESPONSE_SLOW_MS_MAX" in slower.closed
    assert not modem.closed
    assert not slow.closed
    assert not quick.closed


def test_as_many_give_way_as_the_first_waiter_needs() -> None:
    budget = MemoryBudget(100 * MIB)
    targets = [Target(20 * MIB, budget=budget) for _ in range(5)]
    watched = sending(budget, *targets)
    for second in range(4):
        assert waits(budget, 30 * MIB) == (second < 3)
        for target in targets:
            target.take(1)
        watched.look(float(second))
    assert [bool(target.closed) for target in targets] == [True, True, False, False, False]


def test_a_reader_is_measured_before_it_gives_way() -> None:
    budget = MemoryBudget(100 * MIB)
    old = Target(50 * MIB, budget=budget)
    watched = sending(budget, old)
    assert waits(budget, 60 * MIB)
    fresh = Target(40 * MIB)
    for second in range(5):
        old.take(2 * MIB)
        if second == 2:
            watched.watch(fresh)
        watched.look(float(second))
        assert bool(fresh.closed) == (second >= 4)
    assert not old.closed


def test_idle_time_before_a_response_does_not_make_its_client_slow() -> None:
    """A long poll: the next response is ready just before the end of a window."""
    budget = MemoryBudget(100 * MIB)
    target = Target(MIB, budget=budget)
    watched = sending(budget, target)
    assert waits(budget, 100 * MIB)
    watched.look(0.0)
    watched.look(1.0)
    target.take(MIB)
    target.answer_again(50 * MIB)
    watched.look(2.0)
    assert not target.closed
    watched.look(4.0)
    assert target.closed, "now it takes nothing"


@pytest.mark.parametrize("behind", [True, False])
def test_a_large_response_behind_an_unfinished_one_gives_way(behind: bool) -> None:
    """The response holds memory, but the broker may not send it yet."""
    budget = MemoryBudget(100 * MIB)
    target = Target(90 * MIB, budget=budget)
    target.unsent_bytes = 0 if behind else 90 * MIB
    watched = sending(budget, target)
    assert waits(budget, 20 * MIB)
    for second in range(3):
        watched.look(float(second))
    assert target.closed


def test_an_address_over_its_share_has_its_own_slow_readers_closed() -> None:
    budget = MemoryBudget(100 * MIB, address_percent_max=40)
    mine = Target(39 * MIB, budget=budget)
    others = Target(40 * MIB, budget=budget, host="b")
    watched = sending(budget, mine, others)
    assert waits(budget, 10 * MIB, "a")
    for second in range(3):
        watched.look(float(second))
    assert mine.closed
    assert not others.closed
