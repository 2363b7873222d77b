"""The simulation is deterministic: a seed is all that a run depends on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


EVENTS = (
    "split",
    "split that did not count",
    "merge",
    "manifest",
    "trim",
    "keys compacted",
    "log starts moved",
    "swept",
    "object deleted",
    "orphan deleted",
    "a fault in the middle of a job",
)
SEEDS = 8
FIRST = 4
REPEATED = 2
"""The first of the seeds, run again in a process whose strings have other hashes."""


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
    events = figures["events"]
    counts = {event: events.get(f"tier: {event}", 0) for event in EVENTS}
    assert min(counts.values()) > 0, counts
    assert events["log start: a consumer was below it"] > 0
    assert 0 < events["keys: records left"] < events["keys: records written"]
