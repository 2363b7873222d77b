"""The simulation is deterministic: a seed is all that a run depends on."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


EVENTS = (
    "tier: split",
    "tier: split that did not count",
    "tier: merge",
    "tier: manifest",
    "tier: trim",
    "tier: keys compacted",
    "tier: log starts moved",
    "tier: swept",
    "tier: object deleted",
    "tier: orphan deleted",
    "tier: a fault in the middle of a job",
    "log start: a consumer was below it",
)
SEEDS = 2
FIRST = 30
LAST = 60
"""Seeds below this one are tried until all events have occurred, `SEEDS` at a time."""
REPEATED = 2
"""Number of seeds that run again in a process whose strings have other hashes."""


def simulated(*options: str, hash_seed: str = "1") -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.simulation", "--jobs", "2", *options]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


@pytest.mark.long
def test_seeds_reach_what_tiers_are_made_for_and_their_traces_repeat() -> None:
    """Else checks of tiers and log starts would hold of nothing, and no seed could be repeated."""
    figures = simulated("--first", str(FIRST), "--seeds", str(SEEDS))
    digests = figures["digests"]
    assert len(set(digests.values())) == SEEDS, "each seed has a trace of its own"
    repeated = simulated("--first", str(FIRST), "--seeds", str(REPEATED), hash_seed="2")["digests"]
    assert repeated == {seed: digests[seed] for seed in repeated}
    assert len(repeated) == REPEATED
    events = Counter(figures["events"])
    for first in range(FIRST + SEEDS, LAST, SEEDS):
        if all(events[event] for event in EVENTS):
            break
        events.update(simulated("--first", str(first), "--seeds", str(SEEDS))["events"])
    assert not [event for event in EVENTS if not events[event]]
    assert 0 < events["keys: records left"] < events["keys: records written"]


@pytest.mark.long
def test_what_is_prepared_ends_as_decided() -> None:
    """Successors meet transactions that are decided, and ones that are not."""
    events = Counter(simulated("--first", "0", "--seeds", "2", "--prepared", "2")["events"])
    for outcome in (True, False):
        assert events[f"prepared job: keeps, {outcome}"] > 5
        assert events[f"prepared job: decides, {outcome}"] > 5
