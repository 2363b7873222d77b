"""A proof that waits forever ends, and says where it waits."""

import signal
import subprocess
import sys
import threading

import pytest

from tests.proofs.limit import time_limit
from tests.proofs.shortfall import ShortfallError
from tests.rigs.patience import PATIENCE_S

STUCK = """
import threading
from tests.proofs.limit import time_limit

with time_limit(0.1, 0.1):
    try:
        threading.Event().wait()
    finally:
        threading.Event().wait()
"""


def test_a_wait_without_end_is_a_shortfall() -> None:
    with pytest.raises(ShortfallError, match="still running after 0 s"), time_limit(0.05):
        threading.Event().wait(PATIENCE_S)


def test_a_cleanup_without_end_ends_the_process_and_names_the_place() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert 'File "<string>", line 7 in <module>' in done.stderr
    assert 'File "<string>", line 9 in <module>' in done.stderr


def test_a_block_that_ends_in_time_leaves_no_alarm() -> None:
    with time_limit(PATIENCE_S):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
