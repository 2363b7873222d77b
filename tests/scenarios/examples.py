"""The programs of `examples/`, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.rigs.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TIMEOUT_S = 2 * PATIENCE_S


def run_example(name: str, *arguments: str, bootstrap: str, warnings: str = "error") -> list[str]:
    """The lines that it prints. Raises `AssertionError` where it fails, or warns."""
    done = subprocess.run(
        [sys.executable, "-W", warnings, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BUCKETLOG_BOOTSTRAP": bootstrap},
    )
    assert done.returncode == 0, f"{name}: {done.stderr}"
    return done.stdout.splitlines()
