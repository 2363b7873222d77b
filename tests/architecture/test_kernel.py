"""The kernels' files of LLVM's intermediate representation match their sources."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from scripts.kernels import KERNELS, Kernel

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.source.stem)
def test_the_file_is_what_the_script_writes(kernel: Kernel) -> None:
    written = kernel.target.read_text()
    if f"numba {version('numba')}." not in written.splitlines()[0]:
        pytest.skip("another version of numba wrote the file")
    program = "import sys; from scripts.kernels import KERNELS, render; "
    program += "print(render(KERNELS[int(sys.argv[1])]), end='')"
    made = subprocess.run(
        [sys.executable, "-c", program, str(KERNELS.index(kernel))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert made == written, "run: python scripts/kernels.py"
