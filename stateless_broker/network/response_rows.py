"""The rows of a response, at all levels: how many there are, and their errors."""

from collections.abc import Iterator, Mapping
from itertools import islice

from kio.schema.errors import ErrorCode

COUNTED_ROWS = 100
"""Limit of the rows that are searched for errors in each level of a response."""
ERROR_LEVELS = 3
SHORT_ROWS = 500
"""A response with at most this many rows is encoded on the event loop."""


def is_long(values: Mapping[str, object]) -> bool:
    """Return whether there are more than `SHORT_ROWS` rows, at all levels together."""
    found, left = 0, [values]
    while left:
        for rows in left.pop().values():
            if isinstance(rows, list | tuple):
                found += len(rows)
                if found > SHORT_ROWS:
                    return True
                left += [row for row in rows if isinstance(row, dict)]
    return False


def error_codes(values: Mapping[str, object]) -> Iterator[ErrorCode]:
    """The errors of the response, of its rows (topics, groups, …), and of their rows
    (partitions)."""
    level = [values]
    for _ in range(ERROR_LEVELS):
        for row in level:
            if isinstance(code := row.get("error_code"), ErrorCode) and code:
                yield code
        level = list(islice((each for row in level for each in _rows(row)), COUNTED_ROWS))


def _rows(values: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for rows in values.values():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            yield from rows
