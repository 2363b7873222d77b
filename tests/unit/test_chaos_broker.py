"""What tests do to brokers of chaos: their clocks, and their rules."""

import time
from pathlib import Path

import pytest

from bucketlog.metadata.sequencer.scripts import lua_source
from tests.models.promises import Rule
from tests.scenarios.chaos_breaks import BEGINS_S, plan_of
from tests.servers.broken_rules import BROKEN_RULES
from tests.servers.chaos_broker import JumpingClock, clock_file, set_clock
from tests.simulation.source_changes import changed_source, lua_patch

NODE_ID = 1


def test_a_clock_jumps_and_comes_back(tmp_path: Path) -> None:
    clock = JumpingClock(clock_file(str(tmp_path), NODE_ID))
    clock.look()
    before = clock.time_ns() - time.time_ns()
    set_clock(str(tmp_path), NODE_ID, -600)
    clock.look()
    behind = clock.time_ns() - time.time_ns()
    set_clock(str(tmp_path), NODE_ID, 0)
    clock.look()
    after = clock.time() - time.time()
    found = [round(before / 1e9, -2), round(behind / 1e9, -2), round(after, -2)]
    assert found == [0, -600, 0]


@pytest.mark.parametrize("name", BROKEN_RULES)
def test_a_break_changes_what_is_there(name: str) -> None:
    """Applying a change raises where its text is gone."""
    broken = BROKEN_RULES[name]
    for change in broken.mutant.changes:
        if change.where.endswith(".lua"):
            name = change.where.removesuffix(".lua")
            text = lua_source(name)
            assert lua_patch([change])(name, text) != text
        else:
            _, before = changed_source(change.where, [])
            _, text = changed_source(change.where, [change])
            assert text != before
    assert broken.reported <= set(Rule)


@pytest.mark.parametrize("name", BROKEN_RULES)
def test_the_faults_of_a_break_meet_one_broker_at_once(name: str) -> None:
    plan = plan_of(name, broker=2, times=2)
    assert plan[0].begins_s == BEGINS_S
    assert [each.broker for each in plan] == [
        broker for broker in (2, 0) for _ in BROKEN_RULES[name].faults
    ]
