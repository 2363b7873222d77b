"""Ends a proof that waits forever, and says where each of its threads waits."""

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psutil

from tests.proofs.shortfall import ShortfallError
from tests.rigs.patience import PATIENCE_S

SHORT_FORM_S = 2 * PATIENCE_S
"""A short form takes seconds; a wait within it fails by its own bound before."""

CLEANUP_S = 120.0


@contextmanager
def time_limit(limit_s: float, cleanup_s: float = CLEANUP_S) -> Iterator[None]:
    """Raises `ShortfallError` in the main thread after `limit_s` seconds. If the block's cleanup
    then takes longer than `cleanup_s`, the process and its children end."""
    reached = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal reached
        faulthandler.dump_traceback(sys.__stderr__ or 2, all_threads=True)
        if reached:
            for child in psutil.Process().children(recursive=True):
                child.kill()
            os._exit(1)
        reached = True
        signal.setitimer(signal.ITIMER_REAL, cleanup_s)
        raise ShortfallError(f"still running after {limit_s:.0f} s", {})

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
