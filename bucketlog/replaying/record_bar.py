"""A bar that counts the records of a replay, on stderr of a terminal or in a notebook."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from bucketlog.log_format.printable import printable

if TYPE_CHECKING:
    from bucketlog.log_reader.replay_plan import ReplayPlan

Rows = Callable[[int, int], None]
"""Is called with the number of records and their bytes as they pass."""


def expected_records(plan: "ReplayPlan") -> int:
    """The records of the plan. If a range cuts batches: the offsets of its ranges."""
    if plan.records is not None:
        return plan.records
    return sum(wanted.end - wanted.start for wanted in plan.ranges)


def is_bar_visible(stream: TextIO) -> bool:
    """Whether somebody sees a bar: `stream` is a terminal, or the program runs in a notebook."""
    return stream.isatty() or "ipykernel" in sys.modules


@contextmanager
def record_bar(description: str, total_records: int) -> Iterator[Rows]:
    """Counts records and their bytes. Shows nothing where nobody would see the bar."""
    if not is_bar_visible(sys.stderr):
        yield lambda records, size_bytes: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,} records"),
        TextColumn("{task.fields[megabytes]:,.1f} MB"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(printable(description), total=total_records, megabytes=0.0)
        seen = 0

        def passed(records: int, size_bytes: int) -> None:
            nonlocal seen
            seen += size_bytes
            bars.update(task, advance=records, megabytes=seen / 1e6)

        yield passed


@contextmanager
def record_bar_beside(on_rows: Rows | None, description: str, plan: "ReplayPlan") -> Iterator[Rows]:
    """A bar for `plan`, beside `on_rows`."""
    with record_bar(description, expected_records(plan)) as counted:

        def passed(records: int, size_bytes: int) -> None:
            counted(records, size_bytes)
            if on_rows is not None:
                on_rows(records, size_bytes)

        yield passed
