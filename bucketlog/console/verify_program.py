"""The program of the process that verifies the whole log for the console.

    python -m bucketlog.console.verify_program PLACE MEMORY_BYTES DAMAGE_MAX

PLACE is the URL of the bucket. The report has at most DAMAGE_MAX damaged places. The process writes
lines of JSON: its progress, then the report or an error. Invariants: the process uses at most
MEMORY_BYTES of address space. It changes nothing in the bucket. If nobody reads its output any
more, the process ends when it writes the next line.
"""

import json
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import fields
from typing import Any, BinaryIO

from bucketlog.inspect.verify import verify_log
from bucketlog.inspect.verify_report import VerifyReport
from bucketlog.log_format.errors import BucketlogError
from bucketlog.tiered_storage.backends.location import open_patient_bucket

PROGRESS_S = 0.2
"""Time between two lines of progress while objects are checked."""
COUNTS = tuple(each.name for each in fields(VerifyReport) if each.name != "damage")
Send = Callable[[Mapping[str, Any]], None]


class Progress:
    """Sends the numbers of listed and checked objects. `now_s` is a monotonic clock in seconds."""

    def __init__(self, send: Send, now_s: Callable[[], float]) -> None:
        self._send = send
        self._now_s = now_s
        self._of = self._checked = 0
        self._next_s = 0.0

    def listed(self, objects: int) -> Callable[[], None]:
        """Add `objects` to the number of listed objects. Return a function to call after each
        checked object."""
        self._of += objects
        self._say()
        return self._count

    def _count(self) -> None:
        self._checked += 1
        if self._checked == self._of or self._now_s() >= self._next_s:
            self._say()

    def _say(self) -> None:
        self._send({"checked": self._checked, "of": self._of})
        self._next_s = self._now_s() + PROGRESS_S


def report_line(report: VerifyReport, damage_max: int) -> dict[str, Any]:
    """Return the report as a value for JSON, with the first `damage_max` damaged places."""
    return {
        "counts": {name: getattr(report, name) for name in COUNTS},
        "damage": [[each.key, each.position, each.reason] for each in report.damage[:damage_max]],
        "damage_count": len(report.damage),
    }


def main(place: str, memory_bytes: int, damage_max: int, out: BinaryIO) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the console ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))

    def send(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message).encode() + b"\n")
        out.flush()

    try:
        with closing(open_patient_bucket(place)) as bucket:
            progress = Progress(send, time.monotonic)
            report = verify_log(bucket, place=place, on_listed=progress.listed)
    except BucketlogError as error:
        send({"error": str(error)})
    else:
        send(report_line(report, damage_max))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.stdout.buffer)
