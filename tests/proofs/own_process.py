"""Runs each proof in a process of its own.

A Java machine has the class path of its first session, and a changed environment stays. So a proof
in the process of an earlier proof could fail by that proof's leftovers.
"""

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

from tests.proofs.shortfall import Figures

_FORKED = multiprocessing.get_context("fork")
"""Without a new import of all proofs, which takes seconds."""


def in_own_process(work: Callable[[], Figures]) -> Figures:
    """Return the result of `work`, which runs in a forked process.

    When the caller is interrupted, the process gets SIGTERM, and the caller waits for its cleanup.

    Raises:
        RuntimeError: `work` raised an error, which the text names, or the process ended without a
            result. The process prints the error's traceback.
    """
    receiving, sending = _FORKED.Pipe(duplex=False)
    child = _FORKED.Process(target=_send_result, args=(work, sending))
    child.start()
    sending.close()
    try:
        error, figures = receiving.recv()
    except EOFError:
        child.join()
        raise RuntimeError(f"the proof's process ended with exit code {child.exitcode}") from None
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
        receiving.close()
    if error is not None:
        raise RuntimeError(error)
    return figures


def _send_result(work: Callable[[], Figures], sending: Connection) -> None:
    try:
        figures = work()
    except Exception as error:
        traceback.print_exc()
        sending.send((f"{type(error).__name__}: {error}", {}))
    else:
        sending.send((None, figures))
