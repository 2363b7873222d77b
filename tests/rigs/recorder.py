"""A history that is written to a file as it happens, one line of JSON for each operation.

Invariant: a line is whole, and the lines of one thread are in its order. Nothing is kept in memory.
"""

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tests.models import recorded_history as lines
from tests.models.history import History, Log, Seen, Sent

T = TypeVar("T")
LOG_ROWS = 1000


class _Noted(list[T]):
    """A list that writes each appended item, and does not keep it."""

    def __init__(self, write: Callable[[T], None]) -> None:
        super().__init__()
        self._write = write

    def append(self, item: T) -> None:
        self._write(item)

    def __iadd__(self, items: Iterable[T]) -> Self:  # type: ignore[misc,override] # as list's
        for item in items:
            self._write(item)
        return self


class _WrittenHistory(History):
    def __init__(self, write_invoked: Callable[[Sent, float], None], **fields: object) -> None:
        super().__init__(**fields)  # type: ignore[arg-type] # its lists are `_Noted`
        self._write_invoked = write_invoked

    def invoke(self, sent: Sent, at: float) -> None:
        self._write_invoked(sent, at)


class Recorder:
    """Writes to `path` while the `with` block lasts. Clients note the answers that they get in
    `history`. `clock` gives the history's times."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self.path = path
        self.written = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str, int], int] = {}
        self._file = path.open("w")
        write, now = self._write, clock
        self.history: History = _WrittenHistory(
            lambda sent, at: write(lines.invoked_line(sent, at)),
            acknowledged=_Noted(lambda row: write(lines.acknowledged_line(row))),
            refused=_Noted(lambda row: write(lines.refused_line(row))),
            reads=_Noted(lambda row: write(lines.read_line(row, now()))),
            high_watermarks=_Noted(lambda row: self._write_seen("high watermark", row)),
            ends=_Noted(lambda row: write(lines.end_line(row, now()))),
            positions=_Noted(lambda row: self._write_seen("position", row)),
            resets=_Noted(lambda what: write(lines.reset_line(what, now()))),
            commits=_Noted(lambda row: write(lines.commit_line(row))),
            committed_seen=_Noted(lambda row: write(lines.committed_line(row))),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def fault_begins(self, name: str, broker: int | None) -> None:
        self._write(lines.fault_line("invoke", name, broker, self._clock()))

    def fault_ended(self, name: str, broker: int | None) -> None:
        self._write(lines.fault_line("ok", name, broker, self._clock()))

    def sealed(self, at: float) -> None:
        self._write(lines.seal_line(at))

    def log(self, log: Log) -> None:
        """What the bucket holds in the end. An empty partition has a line, too."""
        for partition, rows in log.items():
            for at in range(0, max(1, len(rows)), LOG_ROWS):
                self._write(lines.log_line(partition, rows[at : at + LOG_ROWS]))

    def _write_seen(self, f: str, row: Seen) -> None:
        """An offset that was seen before says nothing new."""
        key = f, row.observer, row.partition
        with self._lock:
            if self._seen.get(key) == row.offset:
                return
            self._seen[key] = row.offset
        self._write(lines.seen_line(f, row, self._clock()))

    def _write(self, line: lines.Line) -> None:
        text = json.dumps(line, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(text)
            self.written += 1
