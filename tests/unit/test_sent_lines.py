"""Which lines were acknowledged, and the command that sends the others."""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.cli.sent_lines import SentLines, ranges
from bucketlog.log_format.errors import InvalidDataError, LogError


@dataclass
class Fate:
    done: bool = True
    error: LogError | None = None


def refusal(code: str = "MESSAGE_TOO_LARGE") -> LogError:
    return LogError("refused", code=code, kafka_code=10, retriable=False, remedy="be smaller")


def sent(fates: Iterable[Fate], *, path: str | None = None) -> SentLines:
    lines = SentLines("stdin", "t", path=path, wait=lambda: pytest.fail("nothing to wait for"))
    for number, fate in enumerate(fates, 1):
        lines.add(number, fate, 1, has_key=number % 2 == 0)
    return lines


def remaining(command: str, last: int) -> list[int]:
    """The lines that its sed gives of so many."""
    found = re.search(r"sed -n '([^']*)'|sed -n -f (\S+)", command)
    assert found is not None, command
    script = found[1] or Path(found[2]).read_text()
    if found[2]:
        Path(found[2]).unlink()
    text = "".join(f"{number}\n" for number in range(1, last + 1))
    done = subprocess.run(
        ["sed", "-n", script], input=text, capture_output=True, text=True, check=True
    )
    return [int(line) for line in done.stdout.split()]


@given(
    fates=st.lists(st.sampled_from(["acknowledged", "refused", "open"]), max_size=80),
    unread=st.integers(0, 5),
)
def test_the_way_on_is_exactly_what_is_not_acknowledged(fates: list[str], unread: int) -> None:
    lines = sent(Fate(fate != "open", refusal() if fate == "refused" else None) for fate in fates)
    lines.settle()
    # outcomes are counted in order: what stands behind an open one may be sent twice, never lost
    known = fates.index("open") if "open" in fates else len(fates)
    acknowledged = {at for at, fate in enumerate(fates[:known], 1) if fate == "acknowledged"}
    assert lines.acknowledged == len(acknowledged)
    every = range(1, len(fates) + 1 + unread)
    assert remaining(lines.resume_command(len(fates)), len(every)) == [
        number for number in every if number not in acknowledged
    ]


def test_a_line_that_was_read_and_not_sent_is_sent_again() -> None:
    lines = sent([Fate(), Fate()])
    lines.settle()
    assert remaining(lines.resume_command(3), 4) == [3, 4]


def test_the_first_refusal_is_named() -> None:
    lines = sent([Fate(), Fate(error=refusal()), Fate()], path="a b.txt")
    error = lines.explained(InvalidDataError("not JSON"), 4, needs_keys=lambda: False)
    assert isinstance(error, LogError)
    assert str(error) == (
        "stdin, line 2: refused; 2 records are acknowledged (be smaller; then send the rest: "
        "sed -n '2p;4,$p' 'a b.txt' | bucketlog produce t with the same flags)"
    )


@pytest.mark.parametrize(
    ("codes", "needs_keys", "place"),
    [
        (["INVALID_RECORD"] * 3, True, "line 1 (without a key, for a compacted topic)"),
        (["INVALID_RECORD"] * 3, False, "line 1 or another of its batch"),
        ([None, "INVALID_RECORD", None], True, "line 2"),
        (["INVALID_DIFFERENT_RECORD", "INVALID_RECORD", "INVALID_RECORD"], False, "line 2 or"),
        ([None, "INVALID_RECORD", "INVALID_RECORD"], True, "line 3 (without a key"),
    ],
)
def test_the_culprit_of_a_batch(codes: list[str | None], needs_keys: bool, place: str) -> None:
    lines = sent(Fate(error=refusal(code) if code else None) for code in codes)
    error = lines.explained(refusal(), 3, needs_keys=lambda: needs_keys)
    assert error.message.startswith(f"stdin, {place}")


def test_spans() -> None:
    assert list(ranges([1, 2, 3, 5, 8, 9])) == ["1,3", "5", "8,9"]
    assert list(ranges([])) == []
