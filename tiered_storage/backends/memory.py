"""A dictionary as a bucket, for tests: the invariants of the real ones, nothing of their cost.

It lists in a scrambled order, so that tests find code that trusts an order.
"""

import threading
import time
from collections.abc import Iterator, Sequence

from crc32c import crc32c as checksum

from bucketlog.log_format.errors import BucketRefusedError, ObjectNotFoundError
from bucketlog.log_format.model import Buffer, WallClock
from bucketlog.tiered_storage.bucket import (
    Body,
    ObjectInfo,
    Span,
    Suffix,
    check_key,
    check_prefix,
    clip,
)


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


class MemoryBucket:
    """`SyncBucket` in this process's memory. Thread-safe. What it holds outlives `close`."""

    def __init__(self, clock: WallClock = _wall_clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, int]] = {}

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        check_key(key)
        data = b"".join(parts)
        if crc32c is not None and checksum(data) != crc32c:
            raise BucketRefusedError(
                f"the checksum given for {key!r} is not its body's",
                remedy="a buffer was changed while it was written: this is a bug",
            )
        with self._lock:
            if key in self._objects:
                return False
            self._objects[key] = (data, self._clock())
            return True

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        check_key(key)
        found = self._objects.get(key)
        if found is None:
            raise ObjectNotFoundError(key)
        data = found[0]
        start, length = clip(span, len(data))
        return Body(data[start : start + length], start, len(data))

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix)
        with self._lock:
            infos = [
                ObjectInfo(key, len(data), modified_ms)
                for key, (data, modified_ms) in self._objects.items()
                if key.startswith(prefix) and key > start_after
            ]
        yield from sorted(infos, key=lambda info: checksum(info.key.encode()))

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        with self._lock:
            for key in keys:
                self._objects.pop(key, None)

    def head(self, key: str) -> ObjectInfo | None:
        check_key(key)
        found = self._objects.get(key)
        return None if found is None else ObjectInfo(key, len(found[0]), found[1])

    def close(self) -> None:
        pass
