"""What an ingest has done to a table: the figures behind its metrics.

Invariant: freshness does not depend on timestamps of records, because producers can send any
timestamp.
"""

import time
from collections.abc import Callable

from bucketlog.log_reader.tables.ingest_loop import WrittenBatch


class TableFigures:
    """The figures of one table, since this process began. Times are in seconds since 1970.

    Attributes:
        complete_s: Time at which the table last held all records that the log had. Before the
            first such time, the time at which this process began.
        lag: Offsets of the log that are not ingested yet, when the ingest last looked. None before
            the first look.
        newest_ms: Highest timestamp of the ingested records, in ms since 1970; None if not known.
    """

    def __init__(self, table: str, wall_s: Callable[[], float] = time.time) -> None:
        self.table = table
        self.rows = 0
        self.dead_letters = 0
        self.file_bytes = 0
        self.commits = 0
        self.failures = 0
        self.is_failing = False
        self.last_commit_s: float | None = None
        self.newest_ms: int | None = None
        self.lag: int | None = None
        self.complete_s = self._began_s = wall_s()
        self._wall_s = wall_s

    def began(self) -> None:
        """As `IngestObserver.began`."""
        self._began_s = self._wall_s()

    def advanced(self, lag: int, written: WrittenBatch | None) -> None:
        """As `IngestObserver.advanced`."""
        self.lag = lag
        if written is not None:
            self.rows += written.rows
            self.dead_letters += written.dead_letters
            self.file_bytes += written.file_bytes
            self.commits += 1
            self.last_commit_s = self._wall_s()
            known = [each for each in (self.newest_ms, written.newest_ms) if each is not None]
            self.newest_ms = max(known, default=None)
        if lag == 0:
            self.complete_s = self._began_s
            self.is_failing = False

    def failed(self) -> None:
        """Count a failure. The table is failing until a later run is complete."""
        self.failures += 1
        self.is_failing = True

    @property
    def freshness_s(self) -> float:
        """Seconds since the table last held all records that the log had."""
        return max(0.0, self._wall_s() - self.complete_s)
