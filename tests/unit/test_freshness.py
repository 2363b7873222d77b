"""The judge of `freshness` finds what is planted."""

from collections import Counter

import pytest

from tests.scenarios.freshness import fresh_after_s, row_problems

ACKNOWLEDGED = {(0, 0): 10.0, (0, 1): 11.0, (1, 0): 11.5}


def test_times_count_until_the_table_has_the_row() -> None:
    seen = [(10.5, {0: 1}), (14.0, {0: 2, 1: 0}), (15.0, {0: 2, 1: 1})]
    assert fresh_after_s(ACKNOWLEDGED, seen) == [0.5, 3.0, 3.5]


def test_a_row_that_the_table_never_had_is_an_error() -> None:
    with pytest.raises(AssertionError, match="never had"):
        fresh_after_s(ACKNOWLEDGED, [(12.0, {0: 2})])


@pytest.mark.parametrize(
    ("rows", "problems"),
    [
        ([(0, 0), (0, 1), (1, 0)], []),
        ([(0, 0), (1, 0)], ["1 rows missing"]),
        ([(0, 0), (0, 0), (0, 1), (1, 0)], ["1 rows twice"]),
        ([(0, 0), (0, 1), (1, 0), (1, 7)], ["1 rows of no record"]),
    ],
)
def test_rows_are_compared(rows: list[tuple[int, int]], problems: list[str]) -> None:
    assert row_problems(ACKNOWLEDGED, Counter(rows)) == problems
