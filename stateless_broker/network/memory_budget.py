"""The bytes of received frames that the broker holds, and the connections that wait for room.

Invariants: a frame's memory is allocated only after its bytes were granted; bytes are granted in
the order in which they were first asked for, and a frame that is larger than the whole budget when
nothing else is held: none waits for ever. `wake` is called from within `release` and `forget`: it
may not run the waiter's work then and there.
"""

from collections import OrderedDict
from collections.abc import Callable


class MemoryBudget:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held_bytes = 0
        self._waiting: OrderedDict[object, tuple[int, Callable[[], None]]] = OrderedDict()

    def acquire(self, size_bytes: int, waiter: object, wake: Callable[[], None]) -> bool:
        """Take the bytes; or False, and `wake` is called when it is worth asking again.

        A waiter that will not ask again calls `forget`: all others stand behind it.
        """
        first = next(iter(self._waiting), waiter)
        if first is not waiter or not self._fits(size_bytes):
            self._waiting[waiter] = (size_bytes, wake)
            return False
        self.held_bytes += size_bytes
        self.forget(waiter)
        return True

    def take(self, size_bytes: int) -> None:
        """Take bytes that are in memory already, whether there is room or not."""
        self.held_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes
        self._wake_first()

    def forget(self, waiter: object) -> None:
        if self._waiting.pop(waiter, None) is not None:
            self._wake_first()

    def _fits(self, size_bytes: int) -> bool:
        return not self.held_bytes or self.held_bytes + size_bytes <= self._max_bytes

    def _wake_first(self) -> None:
        if self._waiting:
            size_bytes, wake = next(iter(self._waiting.values()))
            if self._fits(size_bytes):
                wake()
