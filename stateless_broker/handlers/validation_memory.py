"""Bounds of the memory that validation needs beyond the frames: for threads, which wait.

Invariant: recompressed batches that are not settled stay within about twice `bytes_max`. A request
waits until there is room, and a request alone may not need more than `bytes_max`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SharedBytes:
    """A number of bytes that threads share. A thread waits until its bytes are free."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self._changed = threading.Condition()

    @contextmanager
    def lent(self, size_bytes: int) -> Iterator[None]:
        """Borrow `size_bytes`, at most the total, within the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._left >= size_bytes)
            self._left -= size_bytes
        try:
            yield
        finally:
            with self._changed:
                self._left += size_bytes
                self._changed.notify_all()


class RecompressedBytes:
    """The bytes of recompressed batches that are not settled."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._held = 0
        self._is_closed = False
        self._changed = threading.Condition()

    @property
    def held(self) -> int:
        return self._held

    def wait_for_room(self) -> None:
        """Wait for room before the batches of a request are recompressed. Not on the event loop."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._held <= self.bytes_max)

    def hold(self, size_bytes: int) -> Callable[[], None]:
        """Hold memory. Returns a function to call once the batch is settled; further calls have no
        effect."""
        with self._changed:
            self._held += size_bytes
        left = [size_bytes]

        def release() -> None:
            with self._changed:
                self._held -= left[0]
                left[0] = 0
                self._changed.notify_all()

        return release

    def close(self) -> None:
        """Release all that wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
