"""Many tables in one process: each turn is one batch of one table, or its maintenance.

Invariants: no table that is due has a second turn before each other due table has had one, however
large its backlog is. The error of a table ends its run, and no other table's run.
"""

import logging
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from bucketlog.ingesting.ingest_figures import TableFigures
from bucketlog.ingesting.local_ingest import LocalIngest, RepeatedUpkeep
from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketError, BucketlogError, CorruptObjectError
from bucketlog.log_reader.tables.ingest_loop import IngestReport, IngestRun

RETRIES = Backoff(1_000, 300_000, jitter=0.2)
"""Pauses after failures of a table: from a second to five minutes."""
logger = logging.getLogger(__name__)


class TurnOrder:
    """Decides which table is next. Pure: times are passed in."""

    def __init__(self, names: Iterable[str], now_s: float) -> None:
        self._due_s = dict.fromkeys(names, now_s)
        self._served = dict.fromkeys(self._due_s, 0)
        self._turns = 0

    def next(self, now_s: float) -> str | None:
        """Return the table that is due, and whose last turn is the longest ago. None: none is
        due."""
        due = [name for name, at_s in self._due_s.items() if at_s <= now_s]
        if not due:
            return None
        chosen = min(due, key=lambda name: self._served[name])
        self._turns += 1
        self._served[chosen] = self._turns
        return chosen

    def due_at(self, name: str, at_s: float) -> None:
        """Set the earliest time of the next turn of a table."""
        self._due_s[name] = at_s

    def end(self, name: str) -> None:
        """Give a table no further turn."""
        del self._due_s[name]

    def pause_s(self, now_s: float) -> float | None:
        """Return the time until a table is due. None: there are no tables left."""
        first_s = min(self._due_s.values(), default=math.inf)
        return None if first_s == math.inf else max(0.0, first_s - now_s)


class TableTurn(NamedTuple):
    """`report` is of the run that ended in this turn. With `has_more`, the table has work left."""

    report: IngestReport | None
    has_more: bool


@dataclass
class TableTurns:
    """An ingest into one table, turn by turn. A run begins `every_s` after the last one began, or
    at once if that is over."""

    ingest: LocalIngest
    figures: TableFigures
    every_s: float
    upkeep: RepeatedUpkeep | None = None
    began_s: float = 0.0
    failures: int = 0
    """Failures since the table last had a commit or a complete run."""
    _run: IngestRun | None = field(default=None, init=False)
    _maintained_s: float | None = field(default=None, init=False)
    _is_upkeep_next: bool = field(default=False, init=False)

    def turn(self, now_s: float) -> TableTurn:
        """Write the next batch of the run, or begin a run, or maintain the table. After an error,
        the next turn begins a run. Raises the errors of `IngestRun`, and of the maintenance."""
        if self._maintained_s is None:
            self._maintained_s = now_s
        if self._is_upkeep_next and self.upkeep is not None:
            self._is_upkeep_next = False
            self._maintained_s = now_s
            self.upkeep.run()
            return TableTurn(None, has_more=False)
        run, self._run = self._run, None  # an error ends the run
        if run is None:
            self.began_s = now_s
            run = self.ingest.begin(self.figures)
        if run.lag and run.write_batch() is not None:
            self.failures = 0
        if run.lag:
            self._run = run
            return TableTurn(None, has_more=True)
        self.failures = 0
        due = self.upkeep is not None and now_s - self._maintained_s >= self.upkeep.every_s
        self._is_upkeep_next = due
        return TableTurn(run.report(), has_more=due)

    def failed(self, error: Exception) -> None:
        """Count a failure of `turn`."""
        self.failures += 1
        self.figures.failed()
        if isinstance(error, BucketError | CorruptObjectError | OSError):
            self.ingest.log.close()


class TableFailure(NamedTuple):
    """`retry_s` is the time until the next try; None: there is none."""

    table: str
    error: Exception
    retry_s: float | None


class TableFleet:
    """Ingests into several tables by turns, in one thread."""

    def __init__(
        self,
        tables: Mapping[str, TableTurns],
        *,
        failed: Callable[[TableFailure], None],
        hidden: Callable[[str], str] = lambda text: text,
        now_s: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        """`failed` is called with each failure of a table. `hidden` removes secrets from text for
        the log. `random` is for the jitter of pauses."""
        self._tables = tables
        self._failed = failed
        self._hidden = hidden
        self._now_s = now_s
        self._random = random or Random()

    def run(self) -> Iterator[IngestReport]:
        """Yield the report of one complete run of each table. A table that fails has none."""
        order = TurnOrder(self._tables, self._now_s())
        while (name := order.next(self._now_s())) is not None:
            turn = self._turn(name, retries=False)
            if isinstance(turn, TableFailure) or not turn.has_more:
                order.end(name)
            if isinstance(turn, TableTurn) and turn.report is not None:
                yield turn.report

    def follow(self, stopped: threading.Event) -> Iterator[IngestReport]:
        """Run again and again until `stopped` is set, and yield the report of each complete run. A
        table that fails is tried again, with growing pauses."""
        order = TurnOrder(self._tables, self._now_s())
        while not stopped.is_set():
            name = order.next(self._now_s())
            if name is None:
                stopped.wait(order.pause_s(self._now_s()))
                continue
            table = self._tables[name]
            turn = self._turn(name, retries=True)
            if isinstance(turn, TableFailure):
                order.due_at(name, self._now_s() + (turn.retry_s or 0.0))
            elif turn.has_more:
                order.due_at(name, self._now_s())
            else:
                order.due_at(name, table.began_s + table.every_s)
            if isinstance(turn, TableTurn) and turn.report is not None:
                yield turn.report

    def _turn(self, name: str, *, retries: bool) -> TableTurn | TableFailure:
        table = self._tables[name]
        try:
            return _taken(table, self._now_s())
        except OtherTableError as other:
            trace = self._hidden("".join(traceback.format_exception(other.error)))
            logger.error("the ingest into %s fails\n%s", name, trace)
            error = other.error
        except (BucketlogError, OSError) as known:
            error = known
        table.failed(error)
        pause_s = RETRIES.pause_s(table.failures - 1, self._random.random())
        failure = TableFailure(name, error, pause_s if retries else None)
        self._failed(failure)
        return failure


class OtherTableError(BucketlogError):
    """An error of a library, such as that of a catalog, or of a defect. Other tables continue."""

    code = "TABLE_FAILED"

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _taken(table: TableTurns, now_s: float) -> TableTurn:
    """Raises the errors of bucketlog and of the system, and `OtherTableError`."""
    try:
        return table.turn(now_s)
    except (BucketlogError, OSError):
        raise
    except Exception as error:
        raise OtherTableError(error) from error
