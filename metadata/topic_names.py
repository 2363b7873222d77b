"""Finds topic names that differ only in '.' and '_': their metric names would collide.

Source: Kafka's Topic.hasCollision. Invariant: the cost of a lookup does not grow with the number of
topics.
"""

from collections.abc import Iterable


class TopicNames:
    """The names of all topics, grouped by their form with '_' for '.'."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._alike: dict[str, dict[str, None]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        self._alike.setdefault(_plain(name), {})[name] = None

    def remove(self, name: str) -> None:
        plain = _plain(name)
        alike = self._alike.get(plain, {})
        alike.pop(name, None)
        if not alike:
            self._alike.pop(plain, None)

    def colliding(self, name: str) -> str | None:
        """A topic whose name equals `name`, or differs from it only in '.' and '_'."""
        if "." not in name and "_" not in name:
            return None
        return next(iter(self._alike.get(_plain(name), ())), None)


def _plain(name: str) -> str:
    return name.replace(".", "_")
