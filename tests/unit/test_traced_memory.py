"""Tests that trace memory pass, in a process without the threads of other tests' clients."""

import re
import subprocess
import sys

import pytest

from tests.models.repository import ROOT, listed_files
from tests.rigs.traced_memory import FIXTURE, ONLY_TRACED, TracedMemory

TESTS_MIN = 20


def test_tests_that_trace_memory_pass() -> None:
    files = [
        file
        for file in listed_files()
        if re.fullmatch(r"tests/\w+/test_\w+\.py", file) and FIXTURE in (ROOT / file).read_text()
    ]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:xdist", ONLY_TRACED, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= TESTS_MIN


def test_memory_that_a_block_frees_counts_for_its_peak_only(traced_memory: TracedMemory) -> None:
    with traced_memory.measured() as found:
        passing = bytes(10_000)
        del passing
        kept = bytes(1_000)
    assert len(kept) == 1_000
    assert found.peak > 10_000
    assert 1_000 <= found.held < 5_000
    with pytest.raises(AssertionError, match=r"0\.1 MiB"), traced_memory.below(100_000):
        bytes(120_000)
