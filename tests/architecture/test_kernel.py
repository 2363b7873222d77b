"""log_format/record_kernel.ll matches its source."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_file_is_what_the_script_writes() -> None:
    written = (ROOT / "log_format/record_kernel.ll").read_text()
    if f"numba {version('numba')}." not in written.splitlines()[0]:
        pytest.skip("another version of numba wrote the file")
    made = subprocess.run(
        [sys.executable, "-c", "from scripts.record_kernel import render; print(render(), end='')"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert made == written, "run: python scripts/record_kernel.py"
