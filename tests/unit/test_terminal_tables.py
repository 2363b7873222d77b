"""Tables and lines on a terminal: wide tables become blocks, and hostile names stay escaped."""

import io
from contextlib import redirect_stderr, redirect_stdout

import pytest

from bucketlog.terminal import Output, print_error, print_rows, say

ROWS: list[dict[str, object]] = [
    {"key": "k" * 30, "reason": "no floor is old enough", "size": 1000},
    {"key": "\x1b[31m"},
]
COLUMNS = ("key", "reason", "size")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return Terminal()


def test_a_table_that_fits_is_a_table(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with redirect_stdout(terminal):
        print_rows(ROWS, COLUMNS, Output.TABLE)
    head, first, second = terminal.getvalue().splitlines()
    assert head.split() == ["KEY", "REASON", "SIZE"]
    assert first.endswith("1,000")
    assert second.startswith("\\x1b[31m ")


def test_a_wide_table_is_blocks(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        print_rows(ROWS, COLUMNS, Output.TABLE)
    assert terminal.getvalue().splitlines() == [
        f"KEY     {'k' * 30}",
        "REASON  no floor is old enough",
        "SIZE    1,000",
        "",
        "KEY     \\x1b[31m",
        "REASON  -",
        "SIZE    -",
    ]


def test_long_cells_and_lines_are_wrapped(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        print_rows([{"key": "k" * 50, "reason": "a " * 30, "size": 1}], COLUMNS, Output.TABLE)
        say("word " * 20)
    shown = terminal.getvalue().splitlines()
    assert max(map(len, shown)) <= 40
    assert shown[:2] == [f"KEY     {'k' * 32}", f"        {'k' * 18}"]


def test_a_pipe_gets_the_whole_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Output.TABLE)
    say("word " * 40)
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_styles_are_for_terminals(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = Terminal()
    with redirect_stderr(errors):
        print_error("bucketlog", "no")
        monkeypatch.delenv("NO_COLOR")
        print_error("bucketlog", "no \x1b[31m")
    assert errors.getvalue() == "bucketlog: no\n\x1b[1;31mbucketlog:\x1b[0m no \\x1b[31m\n"
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stdout(terminal):
        print_rows([{"key": "a"}], ("key",), Output.TABLE)
    assert "\x1b" not in terminal.getvalue()
