"""Librdkafka's log during an outage: each line is written once in a while, with how many were not.

Two lines are the same if they differ in nothing but the client, its thread, and how long it took.
What is new is never held back. Memory is bounded.
"""

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

REPEAT_S = 30.0
LINES_MAX = 1000
"""Different lines that are remembered; then the older ones are forgotten, and written anew."""

_VARIES = re.compile(
    r"\[thrd:[^\]]*\]: "
    r"|(?<=/)(?:bootstrap|\d+)(?=: )"
    r"|\b\d+ms\b"
    r"|, \d+ identical error\(s\) suppressed"
)
_LIBRDKAFKA = "%s [%s] %s"
"""How confluent's client logs: kind, client, text."""


@dataclass(slots=True)
class _Line:
    written_s: float
    left_out: int = 0


class RepeatedLines(logging.Filter):
    """For a logger that librdkafka writes to, from any thread."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._lines: dict[tuple[int, str, str], _Line] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg != _LIBRDKAFKA or not isinstance(record.args, tuple) or len(record.args) != 3:
            return True
        kind, _, text = record.args
        key = (record.levelno, str(kind), _VARIES.sub("", str(text)))
        now_s = self._clock_s()
        with self._lock:
            line = self._lines.pop(key, None)
            if line is not None and now_s - line.written_s < REPEAT_S:
                line.left_out += 1
                self._lines[key] = line
                return False
            self._lines[key] = _Line(now_s)
            if len(self._lines) > LINES_MAX:
                del self._lines[next(iter(self._lines))]
        if line is not None and line.left_out:
            record.msg += " (and %d like it in the last %.0f s)"
            record.args = (*record.args, line.left_out, now_s - line.written_s)
        return True
