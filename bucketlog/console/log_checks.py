"""Runs checks of the whole log, each in a process of limited memory, and follows their progress.

Invariants: at most one check runs. After the end of a check, no other check starts for
`interval_ms`. A running check ends when somebody stops the check, or when the console ends.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from bucketlog.console.followed_process import FollowedProcess
from bucketlog.inspect.verify_report import Damage
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import WallClock


class CheckRefusedError(BucketlogError):
    """A check cannot start, because another check runs or has just ended."""

    code = "CHECK_REFUSED"
    retriable = True


class Outcome(StrEnum):
    RUNNING = "running"
    SOUND = "sound"
    DAMAGED = "damaged"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LogCheck:
    """The state of a check at one moment. Times are in milliseconds of the console's clock.

    `checked` counts the checked objects, and `of` the objects that were listed so far. `counts` has
    the figures of `VerifyReport`, or is None without a report. `damage` has the first of the
    `damage_count` damaged places. `error` says why the check failed."""

    begun_ms: int
    ended_ms: int | None = None
    outcome: Outcome = Outcome.RUNNING
    checked: int = 0
    of: int = 0
    counts: Mapping[str, int] | None = None
    damage: Sequence[Damage] = ()
    damage_count: int = 0
    error: str = ""

    @property
    def is_running(self) -> bool:
        return self.outcome is Outcome.RUNNING


class LogChecks:
    """Starts, follows and stops checks. `command` starts the process of a check
    (`verify_program`). `interval_ms` is the least time from the end of a check to the start of the
    next check. Several threads may use one instance."""

    def __init__(self, command: Sequence[str], *, interval_ms: int, now_ms: WallClock) -> None:
        self._command = command
        self._interval_ms = interval_ms
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._latest: LogCheck | None = None
        self._process: FollowedProcess | None = None

    @property
    def latest(self) -> LogCheck | None:
        """The running check, or the last check; None before the first check."""
        return self._latest

    def start(self) -> None:
        """Start a check. Raises `CheckRefusedError` if a check runs, or ended less than
        `interval_ms` ago."""
        with self._lock:
            self._refuse_soon()
            self._process = FollowedProcess(
                self._command, "check", on_line=self._take, on_end=self._fail
            )
            self._latest = LogCheck(self._now_ms())

    def stop(self) -> None:
        """Stop the running check, if there is one."""
        with self._lock:
            if self._process is not None:
                self._end(self._process, Outcome.STOPPED)
                self._process.kill()

    def close(self) -> None:
        """Stop the running check, and wait for the end of its process."""
        self.stop()
        if self._process is not None:
            self._process.join()

    def _refuse_soon(self) -> None:
        latest = self._latest
        if latest is None:
            return
        if latest.ended_ms is None:
            raise CheckRefusedError("a check is running", remedy="wait for its end, or stop it")
        left_ms = latest.ended_ms + self._interval_ms - self._now_ms()
        if left_ms > 0:
            raise CheckRefusedError(
                f"the last check ended less than {self._interval_ms} ms ago",
                remedy=f"try again in {left_ms} ms, or lower BUCKETLOG_CONSOLE_VERIFY_INTERVAL_MS",
            )

    def _fail(self, process: FollowedProcess, status: int) -> None:
        """End a check that has not ended with a report."""
        with self._lock:
            self._end(
                process,
                Outcome.FAILED,
                error=f"the process ended with exit status {status}. If the check needs more "
                "memory, raise BUCKETLOG_CONSOLE_VERIFY_MEMORY_BYTES_MAX.",
            )

    def _take(self, process: FollowedProcess, message: Mapping[str, Any]) -> None:
        with self._lock:
            if "of" in message:
                self._set(process, checked=message["checked"], of=message["of"])
            elif "error" in message:
                self._end(process, Outcome.FAILED, error=message["error"])
            else:
                damage = [Damage(*each) for each in message["damage"]]
                self._end(
                    process,
                    Outcome.DAMAGED if damage else Outcome.SOUND,
                    counts=message["counts"],
                    damage=damage,
                    damage_count=message["damage_count"],
                )

    def _end(self, process: FollowedProcess, outcome: Outcome, **values: Any) -> None:
        """End the check of `process`. If the check has already ended, change nothing."""
        self._set(process, outcome=outcome, ended_ms=self._now_ms(), **values)

    def _set(self, process: FollowedProcess, **values: Any) -> None:
        if process is self._process and self._latest is not None and self._latest.is_running:
            self._latest = replace(self._latest, **values)
