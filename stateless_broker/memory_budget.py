"""The bytes of received frames that the broker holds, and the connections that wait for room.

Invariant: a frame's memory is allocated only after its bytes were granted; a frame that is larger
than the whole budget is granted when nothing else is held, so none waits for ever.
"""

from collections import OrderedDict
from collections.abc import Callable


class MemoryBudget:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.held_bytes = 0
        self._waiting: OrderedDict[object, Callable[[], None]] = OrderedDict()

    def acquire(self, size_bytes: int, waiter: object, wake: Callable[[], None]) -> bool:
        """Take the bytes; or False, and `wake` is called once when it is worth asking again."""
        if self.held_bytes and self.held_bytes + size_bytes > self._max_bytes:
            self._waiting[waiter] = wake
            return False
        self._waiting.pop(waiter, None)
        self.held_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes
        if self._waiting and self.held_bytes < self._max_bytes:
            waiting = list(self._waiting.values())
            self._waiting.clear()
            for wake in waiting:
                wake()

    def forget(self, waiter: object) -> None:
        self._waiting.pop(waiter, None)
