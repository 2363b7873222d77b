"""What happened in a run, in order: a hash of all of it, and the last of it to read."""

from collections import Counter, deque
from collections.abc import Callable
from hashlib import blake2b

KEPT = 400


class ViolationError(AssertionError):
    """The log broke its promise. `rule` names the part of it."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


class Trace:
    """`violation` is the first one, or None."""

    def __init__(self, time: Callable[[], float], *, everything: bool = False) -> None:
        self._time = time
        self._hash = blake2b(digest_size=16)
        self._last: deque[tuple[float, str, str]] = deque(maxlen=None if everything else KEPT)
        self.events: Counter[str] = Counter()
        self.violation: ViolationError | None = None

    def add(self, who: str, what: str) -> None:
        now = self._time()
        self._hash.update(b"%r %s %s\n" % (now, who.encode(), what.encode()))
        self._last.append((now, who, what))

    def count(self, event: str) -> None:
        self.events[event] += 1

    def fault(self, call: Callable[[], object]) -> None:
        """It begins now, under the name of what brings it about."""
        name = getattr(call, "__name__", "").replace("_", " ")
        self.count(f"fault: {name}")
        self.add("fault", name)

    def violate(self, rule: str, what: str) -> None:
        self.add("VIOLATION", f"{rule}: {what}")
        if self.violation is None:
            self.violation = ViolationError(rule, what)

    def digest(self) -> str:
        return self._hash.hexdigest()

    def tail(self, count: int = KEPT) -> list[str]:
        lines = [f"{now:12.6f} {who:10} {what}" for now, who, what in self._last]
        return lines[-count:]
