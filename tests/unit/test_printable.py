"""Untrusted text: which characters are escaped in lines, tables, errors and logs."""

import json
import logging
import unicodedata

import pytest

from bucketlog.client.lines import json_line, to_json_line
from bucketlog.client.topic import Record
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.printable import printable, printable_json, printable_lines
from bucketlog.stateless_broker.process.log_lines import JsonLines, TextLines
from bucketlog.stateless_broker.process.start_up import exit_code
from bucketlog.terminal import Output, note, print_rows, say

TITLE = "\x1b]0;pwned\x07"
HOSTILE = f"a{TITLE}\x9b2J\x7f\u202e\u2066\u2028\u0085\r\nb\tc"
ESCAPED = "a\\x1b]0;pwned\\x07\\x9b2J\\x7f\\u202e\\u2066\\u2028\\x85\\r\\nb\\tc"
Captured = pytest.CaptureFixture[str]


def test_a_line_has_nothing_that_steers_a_terminal() -> None:
    assert printable(HOSTILE) == ESCAPED
    assert printable("gruppe-ü 組 🙂 \\ \u00a0") == "gruppe-ü 組 🙂 \\ \u00a0"
    everything = "".join(map(chr, range(0x110000)))
    shown = printable(everything)
    left = {char for char in shown if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")}
    assert left == set()
    bidirectional = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert [char for char in shown if unicodedata.bidirectional(char) in bidirectional] == []
    assert len(shown.splitlines()) == 1
    shown.encode()


def test_lines_keep_their_ends() -> None:
    assert printable_lines(f"{TITLE}\n\tx\r") == "\\x1b]0;pwned\\x07\n\tx\\r"


def test_escaped_json_has_the_same_value() -> None:
    for text in (HOSTILE, "plain", "\u061c\u200e", "\ud800"):
        row = json.dumps({"key": text}, ensure_ascii=False)
        assert json.loads(printable_json(row)) == {"key": text}
        assert printable(printable_json(row)) == printable_json(row)
    record = Record("t", 0, 1, 2, HOSTILE.encode(), HOSTILE.encode(), ((HOSTILE, b"x"),))
    line = to_json_line(record)
    assert printable(line) == line
    assert json_line(line.encode()).value == HOSTILE.encode()


def test_tables_and_remarks_are_escaped(capsys: Captured) -> None:
    rows = [{"group": HOSTILE, "state": "Stable"}, {"group": "plain", "state": "Empty"}]
    for output in Output:
        print_rows(rows, ("group", "state"), output)
    say(HOSTILE)
    note(HOSTILE)
    shown = capsys.readouterr()
    assert printable_lines(shown.out) == shown.out
    assert printable_lines(shown.err) == shown.err
    table = shown.out.splitlines()[:3]
    assert [line.split() for line in table[1:]] == [[ESCAPED, "Stable"], ["plain", "Empty"]]
    assert (
        len({line.index(state) for line, state in zip(table[1:], ("Stable", "Empty"), strict=True)})
        == 1
    )


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()], ids=["text", "json"])
def test_a_log_line_is_one_line(formatter: logging.Formatter) -> None:
    def record_of(message: str, *, fails: bool) -> logging.LogRecord:
        info = None
        if fails:
            error = ValueError(HOSTILE)
            info = (ValueError, error, None)
        made = logging.LogRecord("x", logging.INFO, "", 0, "%s", (message,), info)
        made.client_id = HOSTILE
        return made

    line = formatter.format(record_of(HOSTILE, fails=False))
    assert printable(line) == line
    with_traceback = formatter.format(record_of("plain", fails=True))
    assert printable_lines(with_traceback) == with_traceback
    assert "ValueError" in with_traceback


def test_why_a_broker_does_not_start(capsys: Captured) -> None:
    def fail() -> None:
        raise ConfigurationError(f"no setting {HOSTILE}")

    logging.getLogger().handlers, kept = [], logging.getLogger().handlers
    try:
        assert exit_code(fail) == 2
    finally:
        logging.getLogger().handlers = kept
    assert capsys.readouterr().err == f"bucketlog broker: no setting {ESCAPED}\n"
