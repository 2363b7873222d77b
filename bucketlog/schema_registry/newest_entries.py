"""A bound on what is kept of a schema registry's answers: the oldest entry is evicted.

Plain dicts, not `LruCache`: several threads read them for each record, without a lock.
"""

from contextlib import suppress
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep_newest(kept: dict[K, V], key: K, value: V, *, count_max: int) -> None:
    """Add an entry to `kept`, which holds at most `count_max`. Other threads may do the same."""
    with suppress(StopIteration, RuntimeError):  # another thread made room, too
        while len(kept) >= count_max:
            kept.pop(next(iter(kept)), None)
    kept[key] = value
