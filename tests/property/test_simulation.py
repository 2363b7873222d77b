"""The simulation is deterministic: a seed is all that a run depends on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def digest(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--batches", "12"]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return str(json.loads(done.stdout.splitlines()[-1])["digest"])


@pytest.mark.long
def test_a_seed_gives_one_trace_in_any_process() -> None:
    assert digest(3, "1") == digest(3, "2")
    assert digest(3, "1") != digest(4, "1")
