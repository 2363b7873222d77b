"""The check of copy jobs, with a good outcome and planted bad outcomes."""

import pytest

from tests.scenarios.copy_job import SOURCE
from tests.scenarios.transactional_copy import complaints

Rows = list[tuple[int, bytes]]
IN: Rows = [(0, b"a"), (1, b"b"), (2, b"c")]
OUT: Rows = [(0, b"a"), (2, b"b"), (5, b"c")]


def found(
    out: Rows | None = None, *, shown: Rows | None = None, stored: Rows | None = None
) -> list[str]:
    final = {(SOURCE, 0): IN, ("out", 0): OUT if out is None else out}
    there = final | ({("out", 0): stored} if stored is not None else {})
    return complaints(final, {("out", 0): OUT if shown is None else shown}, there, ["out"])


def test_a_good_outcome() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (OUT[:2], "1 are missing, 0 are there too often"),
        ([*OUT, (6, b"a")], "0 are missing, 1 are there too often"),
        ([*OUT[:2], (5, b"x")], "1 are missing, 1 are there too often"),
        ([(0, b"b"), (2, b"a"), (5, b"c")], "in another order"),
    ],
)
def test_what_is_not_copied_once_and_in_order(out: Rows, words: str) -> None:
    (complaint,) = found(out, shown=out)
    assert words in complaint


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (OUT[:2], "2 records, not 3"),
        ([OUT[0], (1, b"aborted"), *OUT[1:]], "(1, b'aborted') as record 1"),
        ([OUT[0], *OUT], "(0, b'a') as record 1"),
    ],
)
def test_what_a_consumer_was_shown_on_the_way(shown: Rows, words: str) -> None:
    (complaint,) = found(shown=shown)
    assert "the consumer was shown" in complaint
    assert words in complaint


def test_what_only_the_bucket_has() -> None:
    (complaint,) = found(stored=[*OUT[:2], (3, b"aborted"), OUT[2]])
    assert complaint == "('out', 0): the bucket has (3, b'aborted') as record 2, not (5, b'c')"
