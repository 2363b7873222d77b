"""Output of the command line. Invariants: data goes to stdout and errors to stderr; progress goes
to stderr, on a terminal only. The command line prints text only through this module, which escapes
control characters: group ids and errors of servers are hostile. Exit codes: `bucketlog --help`."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TextIO, TypeVar

import typer

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.printable import printable, printable_json, printable_lines

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LAST_COLUMN_MIN = 24
"""Characters of a last column that is wrapped, at the least."""
BOLD, RED, CYAN = "1", "1;31", "36"
"""Styles of ECMA-48 (SGR)."""

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CHANGES = 3
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
EXIT_TERMINATED = 143

IDENTIFIERS = frozenset(
    {
        *("partition", "earliest", "latest", "base_offset", "hw_stamp", "position", "broker"),
        *("committed", "before", "after", "leader_epoch", "id", "version"),
        *("max_timestamp", "producer_id", "producer_epoch", "base_sequence", "attributes"),
    }
)
"""Columns whose numbers name something: printed as they are typed, without thousands separators."""

EXIT_CODES = (
    "Exit codes: 0 done; 1 failed (also: damage or a mismatch was found); 2 wrong usage or "
    "configuration; 3 apply --dry-run found something to do; 130 interrupted; "
    "141 the reader of the output went away; "
    "143 bench, consume, deadletter replay, produce, replay or top was stopped by SIGTERM."
)


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], output: Output) -> None:
    """Rows as an aligned table, one JSON array, or an object a line."""
    if output is Output.JSONL:
        for row in rows:
            say_json(row)
    elif output is Output.JSON:
        say_json(list(rows), indent=2)
    else:
        _print_table(
            [[_cell(column, row.get(column)) for column in columns] for row in rows], columns
        )


def time_text(at_ms: int) -> str:
    """A time in ms since the Unix epoch, as ISO 8601 in UTC; as "12 ms" outside the calendar, the
    years 1 to 9999. Timestamps of producers are hostile."""
    try:
        when = EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return f"{at_ms} ms"
    return when.isoformat(timespec="milliseconds")


def say(*lines: str) -> None:
    """Print lines of data on stdout; without arguments, an empty line."""
    for line in lines or ("",):
        print("\n".join(_wrapped(printable(line), _columns())))


def say_text(text: str) -> None:
    """Print a text of several lines unchanged. On a terminal, control characters are escaped,
    except line feeds and tabs."""
    shown = printable_lines(text) if sys.stdout.isatty() else text
    print(shown.encode(errors="backslashreplace").decode().removesuffix("\n"))


def indented_json(text: str) -> str:
    """Return JSON indented, for a terminal. Other text, and text for a pipe, is unchanged."""
    if not sys.stdout.isatty():
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def say_json(value: object, *, indent: int | None = None) -> None:
    print(printable_json(json.dumps(value, indent=indent)))


def _cell(column: str, value: object) -> str:
    if value is None:
        return "-"
    is_amount = isinstance(value, int) and not isinstance(value, bool) and column not in IDENTIFIERS
    return f"{value:,}" if is_amount else printable(str(value))


def _print_table(cells: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    """Numbers to the right, text to the left. If the table is wider than the terminal, the text of
    its last column is wrapped; if this is not enough, the table is printed as blocks, a line for
    each cell."""
    heads = [column.replace("_", " ").upper() for column in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    numeric = [
        bool(cells) and all(row[at][:1].isdigit() or row[at] == "-" for row in cells)
        for at in range(len(columns))
    ]
    columns_here = _columns()
    if columns_here is not None and sum(widths) + 2 * (len(widths) - 1) > columns_here:
        room = columns_here - sum(widths[:-1]) - 2 * (len(widths) - 1)
        if numeric[-1] or room < LAST_COLUMN_MIN:
            _print_blocks(cells, columns, columns_here)
            return
        cells = [line for row in cells for line in _wrapped_rows(row, room)]
        widths[-1] = room
    for row in (heads, *cells):
        line = "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        print(styled(line, BOLD) if row is heads else line)


def _wrapped_rows(row: Sequence[str], room: int) -> list[Sequence[str]]:
    """The row, and below it the rest of the text in its last column."""
    first, *rest = _wrapped(row[-1], room)
    return [(*row[:-1], first), *((*("",) * (len(row) - 1), line) for line in rest)]


def _print_blocks(cells: Sequence[Sequence[str]], columns: Sequence[str], width: int) -> None:
    heads = [column.replace("_", " ").upper() for column in columns]
    indent = max(map(len, heads)) + 2
    for number, row in enumerate(cells):
        if number:
            print()
        for head, text in zip(heads, row, strict=True):
            first, *rest = _wrapped(text, max(width - indent, 1))
            print(f"{styled(head.ljust(indent), BOLD)}{first}".rstrip())
            for line in rest:
                print(f"{'':{indent}}{line}")


def _columns() -> int | None:
    """The width of the terminal, None if stdout is not a terminal."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _wrapped(line: str, columns: int | None) -> list[str]:
    """Lines of at most `columns` characters, broken at blanks if possible."""
    if columns is None or len(line) <= columns:
        return [line]
    from textwrap import wrap

    return wrap(line, columns, break_on_hyphens=False)


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a style, if `stream` (stdout by default) is a terminal that shows styles."""
    shown = stream or sys.stdout
    has_styles = shown.isatty() and "NO_COLOR" not in os.environ
    if not has_styles or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def counted(number: int, noun: str) -> str:
    """As in "1 partition", "2,000 partitions", "2 batches"."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def note(*lines: str) -> None:
    """Print remarks on stderr, whether or not stderr is a terminal."""
    for line in lines:
        print(printable(line), file=sys.stderr, flush=True)


def print_error(program: str, message: str) -> None:
    """An error, a line on stderr."""
    name = styled(f"{program}:", RED, sys.stderr)
    print(f"{name} {printable(message)}", file=sys.stderr, flush=True)


def plainly(message: str) -> None:
    """What a bar says on a terminal, for a log."""
    if not sys.stderr.isatty():
        note(message)


def confirm(question: str) -> None:
    """Only a yes continues. Asked on stderr alone: stdout is for data."""
    print(f"{printable(question)} [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigurationError("nobody answered", remedy="add --yes")
    if answer.strip().lower() not in ("y", "yes"):
        raise typer.Abort


def ask_secret(question: str) -> str:
    """A line that the terminal does not show. Asked on stderr or the terminal itself."""
    from getpass import getpass

    try:
        return getpass(printable(question), stream=sys.stderr)
    except EOFError:
        raise ConfigurationError("nobody answered", remedy="give the password") from None


class ProgressBar(Protocol):
    def advance(self, amount: int = 1) -> None: ...

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Advance by one for each item that passes."""
        for item in items:
            yield item
            self.advance()


class _SilentProgressBar(ProgressBar):
    def advance(self, amount: int = 1) -> None:
        pass

    def over(self, items: Iterable[T]) -> Iterator[T]:
        return iter(items)


@contextmanager
def progress(
    description: str, total: int | None, *, is_shown: bool = True
) -> Iterator[ProgressBar]:
    """A bar on stderr where that is a terminal, else nothing."""
    if not (is_shown and sys.stderr.isatty()):
        yield _SilentProgressBar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(description, total=total)

        class _Bar(ProgressBar):
            def advance(self, amount: int = 1) -> None:
                bars.advance(task, amount)

        yield _Bar()
