"""Runs each proof in a process of its own.

A Java machine has the class path of its first session, and a changed environment stays. So a proof
in the process of an earlier proof could fail by that proof's leftovers.
"""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

from tests.proofs.shortfall import Figures

_FORKED = multiprocessing.get_context("fork")
"""Without a new import of all proofs, which takes seconds."""
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)
"""Signals that wait while the process is started: later, they end the process, too."""


def in_own_process(work: Callable[[], Figures]) -> Figures:
    """Return the result of `work`, which runs in a forked process.

    When the caller is interrupted, the process gets SIGTERM, and the caller waits for its cleanup.

    Raises:
        RuntimeError: The process ended without a result. It prints the traceback of an error.
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
            f"the proof's process ended with exit code {child.exitcode}; see its error above"
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
