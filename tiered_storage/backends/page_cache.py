"""Reads of files that bypass the system's page cache, and the few files that stay in the cache.

Owns the calls that concern the page cache. Invariant: both ways of reading return the same bytes.
"""

import ctypes
import fcntl
import os
import threading

from bucketlog.log_format.model import Buffer

_BLOCK_BYTES = 4096


def read_range(fd: int, start: int, length: int) -> Buffer:
    data = os.pread(fd, length, start)
    if len(data) == length:
        return data
    pieces = [data]
    missing = length - len(data)
    while missing and pieces[-1]:  # one pread(2) gives at most 2 GiB
        pieces.append(os.pread(fd, missing, start + length - missing))
        missing -= len(pieces[-1])
    return b"".join(pieces)


def bypass_page_cache(fd: int) -> bool:
    """Read this file from the disk from now on. Returns False if the system cannot do this."""
    if not hasattr(os, "O_DIRECT"):
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_DIRECT)
    except OSError:
        return False
    return True


def read_blocks(fd: int, start: int, length: int) -> Buffer:
    """Read as `read_range` does, from a file that bypasses the page cache. Position, size and
    memory address of each read are multiples of the block size, except at the end of the file."""
    first = start - start % _BLOCK_BYTES
    size = start + length - first
    memory = bytearray(size + 2 * _BLOCK_BYTES)
    aligned = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % _BLOCK_BYTES
    room = memoryview(memory)[aligned : aligned + size + -size % _BLOCK_BYTES]
    filled = 0
    while filled < size:
        read = os.preadv(fd, [room[filled:]], first + filled)
        if not read:
            break
        filled += read
    return room[start - first : min(filled, size)]


class PageCachedFiles:
    """The files that may stay in the page cache; the oldest leave it first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, path: str, size_bytes: int) -> None:
        old: list[str] = []
        with self._lock:
            self._sizes[path] = size_bytes
            self._bytes += size_bytes
            while self._bytes > self._max_bytes and len(self._sizes) > 1:
                oldest = next(iter(self._sizes))
                self._bytes -= self._sizes.pop(oldest)
                old.append(oldest)
        for path_of_old in old:
            try:
                fd = os.open(path_of_old, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                leave_page_cache(fd, 0, 0)
            finally:
                os.close(fd)

    def has_left(self, path: str) -> bool:
        """Return whether a bucket that writes considers the file old."""
        return bool(self._sizes) and path not in self._sizes


def leave_page_cache(fd: int, start: int, length: int) -> None:
    """Advise the system to drop these bytes, if it takes advice. `length` 0: up to the end."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
