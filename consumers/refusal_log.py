"""The rate of a coordinator's log lines about requests that exceed a limit."""

from collections.abc import Callable

LOG_INTERVAL_MS = 60_000


class RefusalLog:
    """The time of the last line about a limit. Clients can cause many refusals, so a limit logs at
    most one line in `LOG_INTERVAL_MS`. `now_ms` is a monotonic clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._logged_ms: int | None = None

    def is_due(self) -> bool:
        """Return whether to log a line now. True starts the next interval."""
        now_ms = self._now_ms()
        if self._logged_ms is not None and now_ms - self._logged_ms < LOG_INTERVAL_MS:
            return False
        self._logged_ms = now_ms
        return True
