"""Which JSON values have more levels or longer numbers than pydantic reads. pyarrow's reader skips
unknown fields without these limits.

Invariant: no value beyond a limit of pydantic's JSON parser is left out. The values are valid JSON.
"""

import re

import numpy as np

LEVELS_SURE = 190
"""pydantic reads 200 levels of arrays and objects inside a value, at least."""
DIGITS_SURE = 4_000
"""pydantic reads integers of 4,300 digits, as Python."""
_BLOCK_BYTES = 1_000
_QUOTE, _CASE = ord('"'), 0x20
_OPEN, _CLOSE = ord("{"), ord("}")
"""With the bit of lower case, `[` is `{`, and `]` is `}`."""
_ESCAPED = re.compile(rb"\\.", re.DOTALL)


def rows_beyond(data: memoryview, lengths: np.ndarray) -> np.ndarray:
    """The rows, ascending. `data` has the values, each with a byte behind it; `lengths` are theirs
    without this byte, in bytes."""
    longest = int(lengths.max(initial=0))
    found = []
    ends = np.cumsum(lengths.astype(np.int64) + 1)
    text = np.frombuffer(data, np.uint8)
    if longest >= 2 * LEVELS_SURE:
        found.append(_too_deep(text, ends))
    if longest >= DIGITS_SURE:
        found.append(_long_numbers(text))
    if not found:
        return np.zeros(0, np.int64)
    return np.unique(np.searchsorted(ends, np.concatenate(found), side="right"))


def _too_deep(text: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Places inside of the values that have too many levels."""
    opened = np.flatnonzero((text | _CASE) == _OPEN)
    if np.diff(np.searchsorted(opened, ends), prepend=0).max() < LEVELS_SURE:
        return np.zeros(0, np.int64)
    if (text == ord("\\")).any():  # only in strings
        text = np.frombuffer(_ESCAPED.sub(b"  ", text.tobytes()), np.uint8)
    outside = np.bitwise_xor.accumulate(text == _QUOTE) == 0
    lower = text | _CASE
    places = np.flatnonzero(((lower == _OPEN) | (lower == _CLOSE)) & outside)
    levels = np.cumsum(np.where(lower[places] == _OPEN, 1, -1))
    return places[levels >= LEVELS_SURE]


def _long_numbers(text: np.ndarray) -> np.ndarray:
    """Places inside of the values that have too many digits in a row."""
    blocks = len(text) // _BLOCK_BYTES
    is_digit = text[: blocks * _BLOCK_BYTES] - ord("0") < 10
    full = is_digit.reshape(blocks, _BLOCK_BYTES).all(axis=1)
    in_a_row = DIGITS_SURE // _BLOCK_BYTES - 1
    if blocks < in_a_row:
        return np.zeros(0, np.int64)
    runs = np.lib.stride_tricks.sliding_window_view(full, in_a_row).all(axis=1)
    return np.flatnonzero(runs) * _BLOCK_BYTES
