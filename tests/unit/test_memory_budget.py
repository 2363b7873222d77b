"""The memory budget: granted in order, never above the bound, nobody forgotten."""

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from bucketlog.stateless_broker.network.memory_budget import MemoryBudget, payer, pays_for


def never() -> None:
    raise AssertionError("nobody waits")


def test_grants_up_to_the_bound() -> None:
    budget = MemoryBudget(100)
    assert budget.acquire(60, "a", never)
    assert budget.acquire(40, "b", never)
    assert budget.held_bytes == 100


def test_wakes_the_first_waiter_when_its_bytes_fit() -> None:
    woken: list[str] = []
    budget = MemoryBudget(100)
    budget.acquire(60, "a", never)
    budget.acquire(30, "b", never)
    assert not budget.acquire(50, "c", lambda: woken.append("c"))
    budget.release(30)
    assert woken == []  # 60 + 50 do not fit
    budget.release(60)
    assert woken == ["c"]
    assert budget.acquire(50, "c", never)


def test_a_small_request_does_not_overtake_a_large_one() -> None:
    budget = MemoryBudget(100)
    budget.acquire(90, "a", never)
    woken: list[str] = []
    assert not budget.acquire(80, "large", lambda: woken.append("large"))
    assert not budget.acquire(5, "small", lambda: woken.append("small"))
    budget.release(90)
    assert woken == ["large"]
    assert not budget.acquire(5, "small", lambda: woken.append("small"))
    assert budget.acquire(80, "large", never)
    assert woken == ["large", "small"]
    assert budget.acquire(5, "small", never)


def test_more_than_the_budget_is_granted_alone() -> None:
    budget = MemoryBudget(100)
    budget.acquire(1, "a", never)
    woken: list[str] = []
    assert not budget.acquire(500, "huge", lambda: woken.append("huge"))
    budget.release(1)
    assert woken == ["huge"]
    assert budget.acquire(500, "huge", never)
    assert not budget.acquire(1, "b", never)


def test_a_waiter_that_goes_lets_the_next_one_in() -> None:
    budget = MemoryBudget(100)
    budget.acquire(90, "a", never)
    woken: list[str] = []
    budget.acquire(80, "gone", never)
    budget.acquire(10, "next", lambda: woken.append("next"))
    budget.forget("gone")
    assert woken == ["next"]


class Asker:
    """A connection as the budget sees it: asks, waits to be woken, asks again, gives back."""

    def __init__(self, budget: MemoryBudget, size: int, served: list["Asker"]) -> None:
        self.budget = budget
        self.size = size
        self.served = served
        self.woken = False

    def ask(self) -> None:
        self.woken = False
        if self.budget.acquire(self.size, self, self.wake):
            self.served.append(self)

    def wake(self) -> None:
        self.woken = True


@given(st.lists(st.integers(1, 150), max_size=40), st.data())
def test_all_are_served_in_the_order_in_which_they_asked(
    sizes: list[int], data: st.DataObject
) -> None:
    budget = MemoryBudget(100)
    served: list[Asker] = []
    askers = [Asker(budget, size, served) for size in sizes]
    new = list(askers)
    released = 0
    while released < len(askers):
        steps: list[Callable[[], None]] = [asker.ask for asker in askers if asker.woken]
        if new:
            steps.append(lambda: new.pop(0).ask())
        if released < len(served):
            steps.append(partial(budget.release, served[released].size))
        assert steps, "everybody waits for somebody"
        step = data.draw(st.integers(0, len(steps) - 1))
        gives_back = released < len(served) and step == len(steps) - 1
        steps[step]()
        released += gives_back
        held = served[released:]
        assert budget.held_bytes == sum(asker.size for asker in held)
        assert budget.held_bytes <= 100 or len(held) == 1
    assert served == askers
    assert budget.held_bytes == 0


def test_no_address_has_more_than_its_share_and_others_are_served() -> None:
    budget = MemoryBudget(100, address_percent_max=40)
    woken: list[str] = []
    assert budget.acquire(30, "a1", never, address="a")
    assert not budget.acquire(20, "a2", lambda: woken.append("a2"), address="a")
    assert not budget.acquire(5, "a3", lambda: woken.append("a3"), address="a")
    assert budget.acquire(40, "b", never, address="b"), "others do not stand behind it"
    assert budget.accounts_over_share == ["a"]
    assert budget.needed_bytes == 0
    budget.release(30, address="a")
    assert woken == ["a2"]
    assert budget.acquire(20, "a2", never, address="a")
    assert woken == ["a2", "a3"]
    assert budget.acquire(5, "a3", never, address="a")
    assert budget.accounts_over_share == []


def test_more_than_a_share_is_granted_alone() -> None:
    budget = MemoryBudget(100, address_percent_max=40)
    assert budget.acquire(5, "small", never, address="a")
    assert not budget.acquire(60, "large", lambda: None, address="a")
    budget.release(5, address="a")
    assert budget.acquire(60, "large", never, address="a")
    assert budget.acquire(30, "large", never, address="a", own_bytes=60), "it holds all of it"
    assert not budget.acquire(1, "other", never, address="a")


def test_who_waits_for_its_share_does_not_keep_its_place_in_line() -> None:
    budget = MemoryBudget(100, address_percent_max=50)
    woken: list[str] = []
    budget.acquire(50, "b", never, address="b")
    budget.acquire(30, "a1", never, address="a")
    assert not budget.acquire(30, "c", lambda: woken.append("c"), address="c")
    assert budget.needed_bytes == 30
    assert not budget.acquire(10, "a2", lambda: woken.append("a2"), address="a")
    budget.release(50, address="b")
    assert woken == ["c"]
    assert budget.acquire(30, "c", never, address="c")
    assert woken == ["c", "a2"]


def test_what_is_taken_has_a_share_of_its_own() -> None:
    budget = MemoryBudget(100, address_percent_max=20)
    assert budget.acquire(20, "a", never, address="a")
    assert budget.take(15, address="a")
    assert not budget.take(10, address="a")
    assert budget.take(10, address="b")
    budget.release(15, address="a", is_taken=True)
    assert budget.take(10, address="a")
    assert budget.held_bytes == 40


def test_the_addresses_of_a_tenant_share_its_part() -> None:
    budget = MemoryBudget(100, tenant_percent_max=40)
    woken: list[str] = []
    assert budget.acquire(30, 1, never, address=payer("acme", "x"))
    assert not budget.acquire(20, 2, lambda: woken.append("acme"), address=payer("acme", "y"))
    assert budget.accounts_over_share == [payer("acme", "")]
    assert pays_for(payer("acme", "y"), payer("acme", ""))
    assert not pays_for(payer("globex", "y"), payer("acme", ""))
    assert budget.acquire(40, 3, never, address=payer("globex", "x")), "others have room"
    assert budget.acquire(30, 4, never, address="nobody's")
    budget.release(30, address=payer("acme", "x"))
    assert woken == ["acme"]
    assert budget.acquire(20, 2, never, address=payer("acme", "y"))
    assert budget.accounts_over_share == []
    assert budget.granted_to(payer("acme", "")) == 20


def test_an_address_waits_in_its_own_share_before_that_of_its_tenant() -> None:
    budget = MemoryBudget(100, address_percent_max=20, tenant_percent_max=30)
    assert budget.acquire(20, 1, never, address="acme/x")
    assert not budget.acquire(15, 2, lambda: None, address="acme/x")
    assert budget.accounts_over_share == ["acme/x"]
    assert budget.acquire(10, 3, never, address="acme/y")
    budget.release(20, address="acme/x")
    assert budget.acquire(20, 4, never, address="acme/z")
    assert not budget.acquire(15, 2, lambda: None, address="acme/x"), "the tenant has no room now"
    assert budget.accounts_over_share == ["acme/"]
    budget.forget(2)
    assert budget.accounts_over_share == []


def test_a_tenant_takes_no_more_than_its_part() -> None:
    budget = MemoryBudget(100, tenant_percent_max=40)
    assert budget.take(30, address="acme/x")
    assert not budget.take(20, address="acme/y")
    assert budget.take(20, address="globex/x")
    budget.release(30, address="acme/x", is_taken=True)
    assert budget.take(20, address="acme/y")
