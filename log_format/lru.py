"""A bounded map that forgets what was used least recently. Pure; not thread-safe.

Invariant: the weights of all that is kept never exceed the bound; what is heavier is not kept.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """`weight_max` bounds the sum of weights: a number of entries, where each weighs 1, or of
    bytes. `on_evicted` is called with each key that gives way to others."""

    def __init__(self, weight_max: int, *, on_evicted: Callable[[K], None] | None = None) -> None:
        self._weight_max = weight_max
        self._on_evicted = on_evicted
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0

    def __contains__(self, key: K) -> bool:
        """Does not count as use."""
        return key in self._kept

    def find(self, key: K) -> V | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def keep(self, key: K, value: V, weight: int = 1) -> None:
        """Replaces what was kept under `key`, even if the new value is too heavy to be kept."""
        self.forget(key)
        if weight > self._weight_max:
            return
        self._kept[key] = value, weight
        self.weight += weight
        while self.weight > self._weight_max:
            oldest, (_, its_weight) = self._kept.popitem(last=False)
            self.weight -= its_weight
            if self._on_evicted is not None:
                self._on_evicted(oldest)

    def forget(self, key: K) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.weight -= kept[1]
