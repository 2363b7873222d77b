"""SIGTERM as Ctrl-C: what is open is closed in order, and the exit code tells which it was."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within the block SIGTERM raises `Terminated`, once: a second one ends the process at once.

    For the main thread. What SIGTERM did before is restored.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
