"""Turns of tables: fair, on time, and apart from each other's failures."""

import threading
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from pyiceberg.exceptions import ResolveError

from bucketlog.ingesting.ingest_figures import TableFigures
from bucketlog.ingesting.local_ingest import RepeatedUpkeep
from bucketlog.ingesting.table_turns import TableFailure, TableFleet, TableTurns, TurnOrder
from bucketlog.log_format.errors import BucketUnavailableError, ConfigurationError
from bucketlog.log_reader.tables.ingest_loop import WrittenBatch

NOTHING: Any = None


class FakeClock:
    """Time passes by batches and by waits."""

    def __init__(self, until_s: float) -> None:
        self.s = 0.0
        self.until_s = until_s

    def __call__(self) -> float:
        return self.s


class EndingEvent(threading.Event):
    """Is set when the clock has reached its end."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def is_set(self) -> bool:
        return self._clock.s >= self._clock.until_s

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert timeout > 0, "a wait without time would be a busy loop"
        self._clock.s += timeout
        return self.is_set()


class FakeIngest:
    """An ingest of `backlog` offsets in batches of 10. `fails` says which batches fail."""

    def __init__(
        self,
        name: str,
        clock: FakeClock,
        done: list[str],
        *,
        backlog: int,
        fails: Callable[[int], Exception | None] = lambda tried: None,
        batch_s: float = 1.0,
    ) -> None:
        self.name = name
        self.clock = clock
        self.done = done
        self.backlog = backlog
        self.fails = fails
        self.batch_s = batch_s
        self.tried = 0
        self.closed = 0
        self.begun_s: list[float] = []
        self.log = self

    def close(self) -> None:
        self.closed += 1

    def begin(self, figures: TableFigures) -> "FakeIngest":
        self.begun_s.append(self.clock.s)
        figures.began()
        figures.advanced(self.lag, None)
        self.figures = figures
        return self

    @property
    def lag(self) -> int:
        return self.backlog

    def write_batch(self) -> WrittenBatch:
        self.tried += 1
        self.clock.s += self.batch_s
        error = self.fails(self.tried)
        if error is not None:
            raise error
        self.done.append(self.name)
        self.backlog -= 10
        written = WrittenBatch(NOTHING, 10, 1, 1_000, 5_000)
        self.figures.advanced(self.backlog, written)
        return written

    def report(self) -> str:
        return self.name


def turns_of(
    ingest: Any, every_s: float = 10.0, upkeep: RepeatedUpkeep | None = None
) -> TableTurns:
    figures = TableFigures(ingest.name, wall_s=lambda: ingest.clock.s)
    return TableTurns(ingest, figures, every_s, upkeep)


def fleet_of(clock: FakeClock, failures: list[TableFailure], *tables: TableTurns) -> TableFleet:
    return TableFleet(
        {table.figures.table: table for table in tables},
        failed=failures.append,
        now_s=clock,
        random=Random(1),
    )


def test_a_backlog_does_not_keep_others_waiting() -> None:
    clock, done = FakeClock(60), list[str]()
    large = FakeIngest("large", clock, done, backlog=100_000)
    small = FakeIngest("small", clock, done, backlog=30)
    other = FakeIngest("other", clock, done, backlog=20)
    list(fleet_of(clock, [], *map(turns_of, (large, small, other))).follow(EndingEvent(clock)))
    assert done[:9] == [*("large", "small", "other") * 2, "large", "small", "large"]


def test_a_due_table_waits_for_one_turn_of_each_other() -> None:
    order = TurnOrder(["a", "b", "c"], 0.0)
    assert [order.next(0.0) for _ in range(6)] == [*"abcabc"]
    order.due_at("b", 5.0)
    assert [order.next(0.0) for _ in range(3)] == [*"aca"]
    assert order.next(5.0) == "b", "its last turn is the longest ago"
    order.end("b")
    order.due_at("a", 7.0)
    order.due_at("c", 9.0)
    assert (order.next(6.0), order.pause_s(6.0)) == (None, 1.0)
    order.end("a")
    order.end("c")
    assert order.pause_s(6.0) is None


def test_each_table_has_its_own_interval() -> None:
    clock, done = FakeClock(31), list[str]()
    often = FakeIngest("often", clock, done, backlog=0)
    seldom = FakeIngest("seldom", clock, done, backlog=0)
    fleet = fleet_of(clock, [], turns_of(often, 5), turns_of(seldom, 20))
    reports = list(fleet.follow(EndingEvent(clock)))
    assert often.begun_s == [0, 5, 10, 15, 20, 25, 30]
    assert seldom.begun_s == [0, 20]
    assert len(reports) == 9


def test_a_failing_table_is_tried_again_with_growing_pauses() -> None:
    clock, done = FakeClock(100), list[str]()
    failures: list[TableFailure] = []
    wrong = FakeIngest(
        "wrong",
        clock,
        done,
        backlog=10,
        fails=lambda tried: ConfigurationError("no column") if tried < 6 else None,
        batch_s=0.0,
    )
    good = FakeIngest("good", clock, done, backlog=1_000, batch_s=0.0)
    tables = turns_of(wrong), turns_of(good)
    list(fleet_of(clock, failures, *tables).follow(EndingEvent(clock)))
    assert len(failures) == 5
    pauses = [failure.retry_s or 0 for failure in failures]
    assert all(later > 1.5 * sooner for sooner, later in pairwise(pauses))
    assert wrong.begun_s[1] == pytest.approx(pauses[0]), "it waits as long as it says"
    assert (good.backlog, wrong.backlog) == (0, 0)
    assert (wrong.closed, good.closed) == (0, 0), "the others use the same connection"
    figures = tables[0].figures
    assert (figures.failures, figures.is_failing, tables[0].failures) == (5, False, 0)


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("no column"),
        ValueError("a defect"),
        OSError("a disk"),
        ResolveError("of PyIceberg, which has no base class"),
        MemoryError(),
    ],
)
def test_one_complete_run_ends_though_a_table_fails(error: Exception) -> None:
    clock, done = FakeClock(100), list[str]()
    failures: list[TableFailure] = []
    wrong = FakeIngest("wrong", clock, done, backlog=50, fails=lambda tried: error)
    good = FakeIngest("good", clock, done, backlog=50)
    tables = turns_of(wrong), turns_of(good)
    reports: list[Any] = list(fleet_of(clock, failures, *tables).run())
    assert reports == ["good"]
    assert failures == [("wrong", error, None)]
    assert good.backlog == 0
    assert tables[0].figures.is_failing


def test_the_trace_of_a_defect_has_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock(100)
    wrong = FakeIngest("wrong", clock, [], backlog=1, fails=lambda tried: ValueError("s3cr3t"))
    turns = turns_of(wrong)
    fleet = TableFleet(
        {"wrong": turns},
        failed=lambda failure: None,
        hidden=lambda text: text.replace("s3cr3t", "***"),
        now_s=clock,
        random=Random(1),
    )
    list(fleet.run())
    assert "ValueError: ***" in caplog.text
    assert "s3cr3t" not in caplog.text


def test_an_outage_opens_the_connection_again() -> None:
    clock = FakeClock(100)
    away = FakeIngest(
        "away", clock, [], backlog=10, fails=lambda tried: BucketUnavailableError("away")
    )
    list(fleet_of(clock, [], turns_of(away)).run())
    assert away.closed == 1


def test_maintenance_is_a_turn_and_its_error_stops_nothing() -> None:
    clock, done = FakeClock(100), list[str]()
    failures: list[TableFailure] = []

    def maintained() -> None:
        done.append("maintained")
        raise ConfigurationError("its files are elsewhere")

    kept = FakeIngest("kept", clock, done, backlog=0)
    busy = FakeIngest("busy", clock, done, backlog=10_000)
    tables = turns_of(kept, 10, RepeatedUpkeep(30, maintained)), turns_of(busy)
    list(fleet_of(clock, failures, *tables).follow(EndingEvent(clock)))
    assert done.count("maintained") == len(failures) == 3
    assert len(kept.begun_s) >= 9
    assert done.count("busy") >= 95


def test_figures_say_what_was_done() -> None:
    clock = FakeClock(100)
    figures = TableFigures("t", wall_s=clock)
    clock.s = 5
    assert figures.freshness_s == 5, "since the process began"
    figures.began()
    clock.s = 7
    figures.advanced(20, None)
    figures.advanced(10, WrittenBatch(NOTHING, 8, 2, 700, 3_000))
    assert (figures.lag, figures.freshness_s) == (10, 7)
    clock.s = 9
    figures.advanced(0, WrittenBatch(NOTHING, 10, 0, 300, None))
    assert figures.freshness_s == 4, "since this run looked at the log"
    assert (figures.rows, figures.dead_letters, figures.file_bytes) == (18, 2, 1_000)
    assert (figures.commits, figures.last_commit_s, figures.newest_ms) == (2, 9, 3_000)
