"""Runs each proof in a separate process.

A Java virtual machine keeps the class path of its first Spark session, and changes to the
environment remain. In a shared process, an earlier proof could therefore make a later proof fail.
"""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

from tests.proofs.shortfall import Figures

_FORKED = multiprocessing.get_context("fork")
"""A forked process does not import all proofs again. This import takes seconds."""
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)
"""Signals that the caller blocks while the process starts. Afterwards, such a signal interrupts the
caller, which then ends the process."""


def in_own_process(work: Callable[[], Figures]) -> Figures:
    """Return the result of `work`, which runs in a forked process.

    When the caller is interrupted, it sends SIGTERM to the process, and waits for the process to
    clean up.

    Raises:
        RuntimeError: The process ended without a result. After an exception in `work`, the process
            prints the traceback.
    """
    receiving, sending = _FORKED.Pipe(duplex=False)
    child = _FORKED.Process(target=_send_result, args=(work, sending))
    signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
    child.start()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
        sending.close()
        figures: Figures = receiving.recv()
    except EOFError:
        child.join()
        raise RuntimeError(
            f"the proof's process ended with exit code {child.exitcode} and without a result: "
            "see the output above"
        ) from None
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
        receiving.close()
    return figures


def _send_result(work: Callable[[], Figures], sending: Connection) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTIONS)
    sending.send(work())
