"""Slow requests: which connections are closed, and when."""

from dataclasses import dataclass, field

from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.receiving import Receiving

MIB = 1 << 20


@dataclass
class Part:
    """The received part of a request of 100 MiB."""

    address: str = "a"
    received_bytes: int = 0
    held_bytes: int = 0
    missing_bytes: int = 100 * MIB
    is_waiting_for_room: bool = False


@dataclass(eq=False)
class Sender:
    incoming: Part = field(default_factory=Part)
    closed: str = ""

    def end(self, reason: str) -> None:
        self.closed = reason


def receiving(budget: MemoryBudget, senders: list[Sender]) -> Receiving:
    found = Receiving(budget, bytes_per_s_min=1_000, window_ms=10_000)
    for sender in senders:
        found.begin(sender, 0.0)
    return found


def holding(budget: MemoryBudget, size_bytes: int, **values: object) -> Sender:
    sender = Sender(Part(received_bytes=size_bytes, held_bytes=size_bytes, **values))  # type: ignore[arg-type] # of Part's own fields
    assert budget.acquire(size_bytes, sender, lambda: None, address=sender.incoming.address)
    return sender


def test_a_request_that_comes_too_slowly_is_closed_in_any_window() -> None:
    silent, slow, fast, late = senders = [Sender() for _ in range(4)]
    watched = receiving(MemoryBudget(100), senders)
    for second in range(1, 31):
        slow.incoming.received_bytes += 999
        fast.incoming.received_bytes += 1_000
        late.incoming.received_bytes += 1_000_000 if second <= 10 else 0
        watched.look(float(second))
        assert bool(silent.closed) == (second >= 10)
        assert bool(slow.closed) == (second >= 10)
        assert bool(late.closed) == (second >= 20), "what came before does not count"
    assert not fast.closed
    assert "BYTES_PER_S_MIN" in slow.closed


def test_a_request_that_the_broker_makes_wait_is_not_slow() -> None:
    (sender,) = senders = [Sender(Part(is_waiting_for_room=True))]
    watched = receiving(MemoryBudget(100), senders)
    for second in range(1, 100):
        watched.look(float(second))
    sender.incoming.is_waiting_for_room = False
    watched.look(105.0)
    assert not sender.closed
    watched.look(120.0)
    assert sender.closed


def test_the_slowest_one_gives_way_when_others_wait() -> None:
    budget = MemoryBudget(100 * MIB)
    slow, slower, nearly = senders = [
        holding(budget, 30 * MIB),
        holding(budget, 30 * MIB),
        holding(budget, 30 * MIB, missing_bytes=MIB),
    ]
    watched = receiving(budget, senders)
    watched.look(1.0)
    assert not budget.acquire(20 * MIB, "bystander", lambda: None, address="b")
    for sender, came in zip(senders, (MIB, 0, MIB), strict=True):
        sender.incoming.received_bytes += came
    watched.look(2.0)
    assert [bool(sender.closed) for sender in senders] == [False, True, False]
    budget.release(30 * MIB, address="a")
    assert budget.acquire(20 * MIB, "bystander", lambda: None, address="b")
    watched.look(3.0)
    assert not slow.closed, "nobody waits"
    assert not nearly.closed
    assert "others wait" in slower.closed


def test_a_newcomer_is_looked_at_once_before_it_gives_way() -> None:
    budget = MemoryBudget(100 * MIB)
    watched = receiving(budget, [])
    fresh = holding(budget, 90 * MIB)
    watched.begin(fresh, 1.9)
    assert not budget.acquire(20 * MIB, "bystander", lambda: None, address="b")
    watched.look(2.0)
    assert not fresh.closed
    watched.look(3.0)
    assert fresh.closed


def test_requests_that_all_wait_for_each_other_are_told_apart() -> None:
    budget = MemoryBudget(100 * MIB)
    senders = [holding(budget, 30 * MIB, is_waiting_for_room=True) for _ in range(3)]
    for sender in senders:
        budget.acquire(30 * MIB, sender, lambda: None, address="a", own_bytes=30 * MIB)
    watched = receiving(budget, senders)
    watched.look(1.0)
    assert [bool(sender.closed) for sender in senders] == [False, False, True], "the youngest"


def test_requests_that_wait_for_what_is_written_are_left_alone() -> None:
    budget = MemoryBudget(100 * MIB)
    assert budget.acquire(40 * MIB, "whole", lambda: None, address="b")
    senders = [holding(budget, 25 * MIB, is_waiting_for_room=True) for _ in range(2)]
    for sender in senders:
        budget.acquire(30 * MIB, sender, lambda: None, address="a", own_bytes=25 * MIB)
    watched = receiving(budget, senders)
    for second in range(1, 100):
        watched.look(float(second))
    assert not any(sender.closed for sender in senders)


def test_an_address_over_its_share_has_its_own_slow_ones_closed() -> None:
    budget = MemoryBudget(100 * MIB, address_percent_max=40)
    mine, others = holding(budget, 35 * MIB), holding(budget, 35 * MIB, address="b")
    watched = receiving(budget, [mine, others])
    watched.look(1.0)
    assert not budget.acquire(10 * MIB, "mine", lambda: None, address="a")
    watched.look(2.0)
    assert mine.closed
    assert not others.closed
