"""What was used last, up to a bound; what was used least recently goes first. Pure.

Invariant: the weights of all that is kept never exceed the bound; what is heavier is not kept.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LeastRecent(Generic[K, V]):
    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def find(self, key: K) -> V | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def keep(self, key: K, value: V, weight: int = 1) -> None:
        self.forget(key)
        if weight > self._weight_max:
            return
        self._kept[key] = value, weight
        self.weight += weight
        while self.weight > self._weight_max:
            _, (_, oldest) = self._kept.popitem(last=False)
            self.weight -= oldest

    def forget(self, key: K) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.weight -= kept[1]
