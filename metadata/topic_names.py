"""Topic names that differ only in '.' and '_': metric names would collide, as in Kafka.

Source: Kafka's Topic.hasCollision. Invariant: a look-up costs the same however many topics there
are.
"""

from collections.abc import Iterable


class TopicNames:
    """The names of all topics, by what they have in common with others."""

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
        """A topic whose name differs from `name` in '.' and '_' alone, or in nothing."""
        if "." not in name and "_" not in name:
            return None
        return next(iter(self._alike.get(_plain(name), ())), None)


def _plain(name: str) -> str:
    return name.replace(".", "_")
