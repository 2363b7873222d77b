"""Plans of faults follow from their seed."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.models.fault_plan import (
    ONE_BROKER,
    PlannedFault,
    Target,
    decode_plan,
    encode_plan,
    plan_faults,
)

BROKERS = 3
KINDS = {
    **{f"fault-{number}": ONE_BROKER for number in range(6)},
    **{f"whole-{number}": (Target.ALL,) for number in range(2)},
    "lonely": ONE_BROKER,
}


def planned(seed: int, seconds: float) -> list[PlannedFault]:
    return plan_faults(seed, seconds, KINDS, brokers=BROKERS, alone={"lonely"})


@given(seed=st.integers(0, 1 << 40), seconds=st.floats(30, 900))
def test_a_plan_follows_from_its_seed_and_can_be_replayed(seed: int, seconds: float) -> None:
    plan = planned(seed, seconds)
    assert plan == planned(seed, seconds)
    assert decode_plan(encode_plan(plan)) == plan


@given(seed=st.integers(0, 1 << 40))
def test_a_quarter_of_the_time_has_no_fault(seed: int) -> None:
    plan = planned(seed, 900)
    spans = sorted({(each.begins_s, each.ends_s) for each in plan})
    faulty_s = sum(ended - began for began, ended in spans)
    assert 0.70 < faulty_s / 900 < 0.76
    assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))


@given(seed=st.integers(0, 1 << 40))
def test_faults_at_once_are_different_and_of_different_brokers(seed: int) -> None:
    slots: dict[float, list[PlannedFault]] = {}
    for each in planned(seed, 900):
        assert each.target in KINDS[each.fault]
        assert 0 <= each.broker < BROKERS
        slots.setdefault(each.begins_s, []).append(each)
    for slot in slots.values():
        assert len(slot) <= 2
        assert len({each.fault for each in slot}) == len(slot)
        assert len({each.broker for each in slot}) == len(slot)
        assert sum(each.target is Target.ALL for each in slot) <= 1
        assert len(slot) == 1 or "lonely" not in {each.fault for each in slot}


def test_a_long_plan_has_every_fault_and_pairs() -> None:
    plan = planned(7, 600)
    assert {each.fault for each in plan} == set(KINDS)
    assert len({each.begins_s for each in plan}) < len(plan)


def test_another_seed_is_another_plan() -> None:
    assert planned(1, 300) != planned(2, 300)
