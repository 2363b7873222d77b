"""A process that writes lines of JSON, and a thread that follows it to its end.

Invariants: lines have a bounded length. A process that writes something else than JSON objects is
ended. `on_end` is called once, after the process has ended.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

LINE_BYTES_MAX = 4 * 1024 * 1024


class FollowedProcess:
    """Starts `command`, and gives it `request` as its input. A thread calls `on_line` with each
    object, then `on_end` with the exit status. Both also get this process. After `ms_max`
    milliseconds, the process is ended, and `is_late` is True. None means no such limit."""

    def __init__(
        self,
        command: Sequence[str],
        name: str,
        *,
        on_line: Callable[["FollowedProcess", Mapping[str, Any]], None],
        on_end: Callable[["FollowedProcess", int], None],
        request: bytes = b"",
        ms_max: int | None = None,
    ) -> None:
        self.is_late = False
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._on_line, self._on_end = on_line, on_end
        self._timer: threading.Timer | None = None
        if ms_max is not None:
            self._timer = threading.Timer(ms_max / 1000, self._end_late)
            self._timer.daemon = True
            self._timer.start()
        self._thread = threading.Thread(
            target=self._follow, args=(request,), name=f"console-{name}", daemon=True
        )
        self._thread.start()

    def kill(self) -> None:
        """End the process, if it runs."""
        self._process.kill()

    def join(self) -> None:
        """Wait until `on_end` has returned."""
        self._thread.join()

    def _end_late(self) -> None:
        self.is_late = True
        self._process.kill()

    def _follow(self, request: bytes) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            with suppress(BrokenPipeError), self._process.stdin as given:
                given.write(request)
            try:
                while line := lines.readline(LINE_BYTES_MAX):
                    self._on_line(self, json.loads(line))
            except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
                # not a line of the program
                self._process.kill()
        status = self._process.wait()
        if self._timer is not None:
            self._timer.cancel()
        self._on_end(self, status)
