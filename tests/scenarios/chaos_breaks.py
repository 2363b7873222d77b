"""Brokers that break a rule on purpose: the judge of chaos must report it by its name.

A break shows only under the faults for which the rule exists. If a round does not show the break,
because nothing was under way at that moment, another round follows.
"""

from collections.abc import Callable
from pathlib import Path

from tests.models.fault_plan import PlannedFault, Target
from tests.models.promises import Rule
from tests.scenarios.chaos import ChaosOptions, chaos
from tests.servers.broken_rules import BROKEN_RULES
from tests.servers.cluster import Store

BEGINS_S = 3.0
QUIET_S = 3.0
ROUNDS = 3
TIMES = 2
"""How often the faults come in a round, at another broker each time."""


def plan_of(broken_rule: str, *, broker: int, times: int = TIMES) -> list[PlannedFault]:
    """The faults that show the break, first at this broker."""
    faults = BROKEN_RULES[broken_rule].faults
    slot_s = max(faults.values())
    return [
        PlannedFault(name, Target.ANY, (broker + turn) % 3, begins_s, begins_s + slot_s)
        for turn in range(times)
        for begins_s in [BEGINS_S + turn * (slot_s + QUIET_S)]
        for name in faults
    ]


def reported(name: str, folder: Path, told: Callable[[str], None]) -> set[Rule]:
    """The rules that the judge reports for this break, on a folder. Raises `AssertionError` if none
    of them is among the rules that must report the break."""
    wanted = BROKEN_RULES[name].reported
    found: set[Rule] = set()
    for turn in range(ROUNDS):
        plan = plan_of(name, broker=turn)
        options = ChaosOptions(
            folder / f"{name}-{turn}", 0, turn, Store.FILE, java=False, plan=plan, broken_rule=name
        )
        found = {broken.rule for broken in chaos(options, told).broken}
        if found & wanted:
            return found
    raise AssertionError(f"{name}: reported is {sorted(found)}, not one of {sorted(wanted)}")
