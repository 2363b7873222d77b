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


def simulated(*options: str, hash_seed: str = "1") -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.simulation", "--jobs", "2", *options]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


@pytest.mark.long
def test_a_seed_has_a_trace_of_its_own() -> None:
    small = ("--batches", "12")
    assert simulated("--seed", "3", *small)["digest"] != simulated("--seed", "4", *small)["digest"]


@pytest.mark.long
def test_a_few_seeds_have_all_that_tiers_are_made_for_and_one_trace_in_any_process() -> None:
    """Else checks of tiers and log starts would hold of nothing, and no seed could be repeated."""
    few = ("--first", str(FIRST), "--seeds", str(SEEDS))
    figures = simulated(*few)
    assert simulated(*few, hash_seed="2")["digest"] == figures["digest"]
    events = figures["events"]
    counts = {event: events.get(f"tier: {event}", 0) for event in EVENTS}
    assert min(counts.values()) > 0, counts
    assert events["log start: a consumer was below it"] > 0
    assert 0 < events["keys: records left"] < events["keys: records written"]
