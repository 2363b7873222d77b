"""SIGTERM as Ctrl-C: what is open is closed in order, and the exit code tells which it was.

For the main thread. What the signals did before is restored.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


class TerminationSignal(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within the block SIGTERM raises `TerminationSignal`, once: a second one ends the process at
    once."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise TerminationSignal

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class StopSignals:
    """Where SIGINT and SIGTERM may raise: anywhere, but for `held` blocks. There the first one is
    kept until `look` or `next_of` is called; a second one does not wait."""

    def __init__(self) -> None:
        self._kept: type[KeyboardInterrupt] | None = None
        self._may_raise = True

    def arrived(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._kept = TerminationSignal if number == signal.SIGTERM else KeyboardInterrupt
        if self._may_raise:
            self.look()

    def look(self) -> None:
        """Raise what was kept."""
        if self._kept is not None:  # one that comes after this stays kept
            kept, self._kept = self._kept, None
            raise kept

    @contextmanager
    def held(self) -> Iterator[None]:
        self._may_raise = False
        try:
            yield
        finally:
            self._may_raise = True
        self.look()

    def next_of(self, items: Iterator[T]) -> T | None:
        """The next one, or None; within a `held` block, where it may be waited for without end."""
        self._may_raise = True  # before the look: what comes between is raised by the signal
        try:
            self.look()
            return next(items, None)
        finally:
            self._may_raise = False


@contextmanager
def stops() -> Iterator[StopSignals]:
    """Within the block SIGINT and SIGTERM raise `KeyboardInterrupt` and `TerminationSignal` as
    `StopSignals` says. A SIGINT that is ignored (of a job in the background) stays so."""
    taken = StopSignals()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if number == signal.SIGTERM or handler is not signal.SIG_IGN:
            signal.signal(number, taken.arrived)
    try:
        yield taken
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class StopRequest:
    """Whether Ctrl-C or SIGTERM came; called, it says so."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> bool:
        return self.number != 0

    def raise_signal(self) -> None:
        """Raise the signal, as without `stop_asked`."""
        if self.number:
            raise TerminationSignal if self.number == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def stop_asked() -> Iterator[StopRequest]:
    """Within the block the first Ctrl-C or SIGTERM is noted and interrupts nothing; another one
    does as before the block. For the main thread."""
    asked = StopRequest()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, frame: FrameType | None) -> None:
        asked.number = number
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup, or in the background of a script
            signal.signal(number, note)
    try:
        yield asked
    finally:
        restore()
