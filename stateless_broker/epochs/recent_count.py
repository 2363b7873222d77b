"""A count of recent events. Pure: the time is passed in."""


class RecentCount:
    """Counts events. The count restarts if the last event was long ago."""

    def __init__(self) -> None:
        self.count = 0
        self._last_s = 0.0

    def add(self, now_s: float, forgotten_after_s: float) -> None:
        if now_s - self._last_s > forgotten_after_s:
            self.count = 0
        self.count += 1
        self._last_s = now_s
