"""The thread that reads the log in intervals, and adds the lag of groups to the history.

Invariants: an error of the bucket costs one sample, and never ends the thread. The thread begins no
sample after `close`.
"""

import threading
from contextlib import suppress

from bucketlog.console.pages import Console
from bucketlog.log_format.errors import BucketlogError

CLOSE_S_MAX = 2.0


def take_sample(console: Console) -> None:
    """Add the groups' lag to the console's history. Raises the errors of `Console.look`."""
    view = console.look_patiently()
    console.lag_history.add(view.read_ms, console.groups(view))


class LagSampler:
    """Takes a sample for `console` at once, and then every `lag_interval_ms` of its settings.

    With an interval of 0, there is no thread and no sample.

    Args:
        console: The console whose history gets the samples. Its `stop` ends a sample that waits
            for the bucket.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._interval_s = console.settings.lag_interval_ms / 1000
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="console-lag", daemon=True)
        if self._interval_s:
            self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread. A request to the bucket that hangs delays this by at most 2 seconds."""
        self._closed.set()
        if self._interval_s:
            self._thread.join(CLOSE_S_MAX)

    def _run(self) -> None:
        while not self._closed.is_set():
            with suppress(BucketlogError, OSError):
                take_sample(self._console)
            self._closed.wait(self._interval_s)
