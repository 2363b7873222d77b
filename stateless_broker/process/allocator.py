"""Settings of the C library's allocator for a broker's large, short-lived buffers.

Frames and ranges of some hundred kilobytes come and go all the time. By default glibc maps each
anew and gives it back, and the kernel clears and faults in every page again: measured, a third of
the broker's CPU time. One heap that keeps its top costs some memory and none of that.
"""

import ctypes
import sys
from typing import ClassVar

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

KEPT_BYTES = 128 * 1024 * 1024
MAPPED_FROM_BYTES = 32 * 1024 * 1024
"""glibc accepts no more."""
GROWN_BY_BYTES = 16 * 1024 * 1024
UNUSED_BYTES_MIN = 16 * 1024 * 1024
UNUSED_LOOKS = 4


def keep_buffers_on_one_heap() -> None:
    """Keep buffers on one heap. Call this once, before there are threads. It has no effect if the C
    library is not glibc."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_ARENA_MAX, 1)
    mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)
    mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(_M_TOP_PAD, GROWN_BY_BYTES)


class Peaks:
    """Decides when memory is returned to the system after a peak. Pure."""

    def __init__(self) -> None:
        self._peak_bytes = 0

    def is_over(self, held_bytes: int) -> bool:
        """Call regularly with the bytes of frames and responses. True once after each peak of at
        least `KEPT_BYTES`."""
        self._peak_bytes = max(self._peak_bytes, held_bytes)
        if self._peak_bytes < KEPT_BYTES or held_bytes > self._peak_bytes // 2:
            return False
        self._peak_bytes = held_bytes
        return True


class UnusedMemory:
    """Decides when free memory inside the heap is returned to the system. Pure."""

    def __init__(self) -> None:
        self._returned_bytes = 0
        """Upper limit of the free bytes that were returned to the system and not used since."""
        self._looks = 0
        """Number of consecutive last calls at which there was much to return."""

    def is_worth_returning(self, free_bytes: int) -> bool:
        """Call this regularly with the free bytes of the heap. True if at least
        `UNUSED_BYTES_MIN` of them were free, and not yet returned, at the last calls."""
        self._returned_bytes = min(self._returned_bytes, free_bytes)
        if free_bytes - self._returned_bytes < UNUSED_BYTES_MIN:
            self._looks = 0
            return False
        self._looks += 1
        if self._looks < UNUSED_LOOKS:
            return False
        self._returned_bytes, self._looks = free_bytes, 0
        return True


class _HeapFigures(ctypes.Structure):
    """glibc's `struct mallinfo2`, with glibc's names of the fields."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def free_bytes() -> int:
    """The free bytes inside the heap, returned to the system or not. 0 if the C library does not
    provide the number: it is not glibc, or a glibc before 2.33."""
    figures = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if figures is None:
        return 0
    figures.restype = _HeapFigures
    return int(figures().fordblks)


def give_back_unused(kept_bytes: int = KEPT_BYTES) -> None:
    """Return free memory inside the heap to the system, which automatic trimming does not. Does
    nothing if the C library is not glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(kept_bytes)
