"""Runs replays to Parquet files, each in a process of limited memory, and follows their progress.

Invariants: at most one replay runs. Each replay writes to a new folder below one folder, and the
console chooses the name. The folder has the suffix `.partial` until the replay is complete. If a
replay fails or is stopped, its folder is removed before its end is shown.
"""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from bucketlog.console.followed_process import FollowedProcess
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.model import WallClock

PARTIAL = ".partial"


class ReplayRefusedError(BucketlogError):
    """A replay cannot start, because another replay runs."""

    code = "REPLAY_REFUSED"
    retriable = True


class ReplayFolderError(BucketlogError):
    """The folder for replays cannot be written."""

    code = "REPLAY_FOLDER"


class ReplayOutcome(StrEnum):
    RUNNING = "running"
    WRITTEN = "written"
    STOPPED = "stopped"
    FAILED = "failed"


class ReplayedFile(NamedTuple):
    """`path` is relative to the folder of the replay."""

    path: str
    size_bytes: int


class ReplayLimits(NamedTuple):
    """Sizes in bytes, of the stored batches and of the records before encoding; and the time in
    milliseconds."""

    threads: int
    stored_bytes: int
    record_bytes: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """The state of a replay at one moment. Times are in milliseconds of the console's clock.

    `folder` is the name of the new folder. `records` and `record_bytes` have been read so far.
    `expected` is the number of records of the plan, or None before the plan. Without `is_exact`,
    there may be fewer records. `files` are those of a complete replay. `error` says why the replay
    failed."""

    topic: str
    folder: str
    begun_ms: int
    ended_ms: int | None = None
    outcome: ReplayOutcome = ReplayOutcome.RUNNING
    records: int = 0
    record_bytes: int = 0
    expected: int | None = None
    is_exact: bool = False
    files: Sequence[ReplayedFile] = ()
    error: str = ""

    @property
    def is_running(self) -> bool:
        return self.outcome is ReplayOutcome.RUNNING

    @property
    def percent(self) -> int:
        return min(100, 100 * self.records // max(1, self.expected or 0))

    @property
    def file_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files)


def new_folder_name(now_ms: int) -> str:
    """A name that no other folder has, such as replay-20260131T120000Z-1f2e3d4c."""
    when = datetime.fromtimestamp(now_ms / 1000, UTC)
    return f"replay-{when:%Y%m%dT%H%M%SZ}-{token_hex(4)}"


class ReplayRuns:
    """Starts, follows and stops replays to new folders below `folder`. `command` starts the process
    of a replay (`replay_program`). Several threads may use one instance. Raises
    `ConfigurationError` if `folder` is not a folder that can be written."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        limits: ReplayLimits,
        *,
        now_ms: WallClock,
        new_name: Callable[[int], str] = new_folder_name,
    ) -> None:
        self.folder = folder.resolve()
        if not self.folder.is_dir() or not os.access(self.folder, os.W_OK | os.X_OK):
            raise ConfigurationError(
                f"--replay-folder {folder} is not a folder that can be written",
                remedy="create it, or name another folder",
            )
        self._command = command
        self._limits = limits
        self._now_ms = now_ms
        self._new_name = new_name
        self._lock = threading.Lock()
        self._latest: ReplayRun | None = None
        self._process: FollowedProcess | None = None
        self._is_written = False

    @property
    def latest(self) -> ReplayRun | None:
        """The running replay, or the last replay; None before the first replay."""
        return self._latest

    def start(self, topic: str, options: Mapping[str, str]) -> None:
        """Start a replay with these options of the reader. Raises `ReplayRefusedError` if a replay
        runs, and `ReplayFolderError`."""
        with self._lock:
            if self._latest_runs():
                raise ReplayRefusedError(
                    "a replay is running", remedy="wait for its end, or stop it"
                )
            run = ReplayRun(topic, self._new_name(self._now_ms()), self._now_ms())
            target = self._partial(run)
            try:
                target.mkdir(mode=0o700)
                self._process = FollowedProcess(
                    self._command,
                    "replay",
                    on_line=self._take,
                    on_end=partial(self._finish, run),
                    request=self._request(topic, options, target),
                    ms_max=self._limits.time_ms,
                )
            except OSError as error:
                _removed(target)
                raise ReplayFolderError(
                    f"no replay to {self.folder} can start: {error.strerror}",
                    remedy="make room, or start the console with another --replay-folder",
                ) from error
            self._latest, self._is_written = run, False

    def stop(self) -> None:
        """Stop the running replay, if there is one. Its files are removed before this returns."""
        with self._lock:
            process = self._process
            if process is not None:
                self._set(process, outcome=ReplayOutcome.STOPPED, ended_ms=self._now_ms())
                process.kill()
        if process is not None:
            process.join()

    def close(self) -> None:
        """Stop the running replay, and wait for the end of its process."""
        self.stop()

    def _request(self, topic: str, options: Mapping[str, str], target: Path) -> bytes:
        request = {
            "topic": topic,
            "options": dict(options),
            "target": str(target),
            "threads": self._limits.threads,
            "stored_bytes_max": self._limits.stored_bytes,
            "record_bytes_max": self._limits.record_bytes,
        }
        return json.dumps(request).encode()

    def _partial(self, run: ReplayRun) -> Path:
        return self.folder / (run.folder + PARTIAL)

    def _take(self, process: FollowedProcess, message: Mapping[str, Any]) -> None:
        with self._lock:
            if process is not self._process:
                return
            if "error" in message:
                self._set(process, error=str(message["error"]))
            elif "expected" in message:
                is_exact = bool(message["is_exact"])
                self._set(process, expected=int(message["expected"]), is_exact=is_exact)
            else:
                counts = int(message["records"]), int(message["bytes"])
                self._set(process, records=counts[0], record_bytes=counts[1])
                self._is_written = "written" in message

    def _finish(self, run: ReplayRun, process: FollowedProcess, status: int) -> None:
        with self._lock:
            is_current = process is self._process and self._latest_runs()
            if is_current and self._is_written and not status:
                self._complete(process, run)
                return
        left = _removed(self._partial(run))
        with self._lock:
            error = "" if self._latest is None else self._latest.error
            error = error or self._reason(process, status)
            ended = {"outcome": ReplayOutcome.FAILED, "ended_ms": self._now_ms()}
            self._set(process, **ended, error=". ".join(filter(None, (error, left))))

    def _latest_runs(self) -> bool:
        return self._latest is not None and self._latest.is_running

    def _complete(self, process: FollowedProcess, run: ReplayRun) -> None:
        unfinished, whole = self._partial(run), self.folder / run.folder
        ended: dict[str, Any] = {"ended_ms": self._now_ms()}
        try:
            unfinished.rename(whole)
            ended["files"] = sorted(_files(whole))
        except OSError as error:
            text = f"{unfinished.name} is complete, and cannot get its name: {error.strerror}"
            self._set(process, **ended, outcome=ReplayOutcome.FAILED, error=text)
        else:
            self._set(process, **ended, outcome=ReplayOutcome.WRITTEN)

    def _reason(self, process: FollowedProcess, status: int) -> str:
        if process.is_late:
            return (
                f"the replay took more than {self._limits.time_ms} ms. Choose a smaller range, or "
                "raise BUCKETLOG_CONSOLE_REPLAY_MS_MAX"
            )
        return (
            f"the process ended with exit status {status}. If the replay needs more memory, raise "
            "BUCKETLOG_CONSOLE_REPLAY_MEMORY_BYTES_MAX"
        )

    def _set(self, process: FollowedProcess, **values: Any) -> None:
        """Change the state of the replay of `process`. If it has ended, change nothing."""
        if process is self._process and self._latest is not None and self._latest.is_running:
            self._latest = replace(self._latest, **values)


def _removed(folder: Path) -> str:
    """Remove the folder. Returns what could not be removed, as text."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{folder.name} is still there: {error.strerror}"
    return ""


def _files(folder: Path) -> Iterator[ReplayedFile]:
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root) / name
            yield ReplayedFile(str(path.relative_to(folder)), path.lstat().st_size)
