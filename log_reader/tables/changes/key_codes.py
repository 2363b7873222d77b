"""Keys of a batch as numbers, so that rows of files are compared with them column by column. Pure.

Invariants: two rows have the same code if and only if all columns of their keys are equal. Codes
are 0, 1, 2, … without gaps. A row that has no key of the batch, or a null in its key, has -1.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Column: TypeAlias = pa.ChunkedArray
Numbers: TypeAlias = NDArray[np.int64]
ABSENT = -1


class KeyCodes:
    """The codes of the keys in `columns`, one column for each part of the key. Memory: the distinct
    values of each column, and some numbers for each row."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.values: list[pa.Array] = []
        """The distinct values of each column."""
        self._combined: list[Numbers] = []
        """Sorted pairs of a code for the columns before, and of a value's number in this column."""
        codes: Numbers | None = None
        for column in columns:
            values = pc.drop_null(pc.unique(column))
            own = _numbers(column, values)
            self.values.append(values)
            pairs = own if codes is None else _pairs(codes, own, len(values))
            combined = np.unique(pairs[pairs >= 0])
            self._combined.append(combined)
            codes = _places(pairs, combined)
        assert codes is not None
        self.codes = codes
        """The codes of the rows that the keys were taken from."""
        self.count = len(self._combined[-1])

    def of(self, columns: Sequence[Column]) -> Numbers:
        """Return the codes of other rows. The columns have the types of the first ones."""
        codes: Numbers | None = None
        for column, values, combined in zip(columns, self.values, self._combined, strict=True):
            own = _numbers(column, values)
            pairs = own if codes is None else _pairs(codes, own, len(values))
            codes = _places(pairs, combined)
        assert codes is not None
        return codes


def _numbers(column: Column, values: pa.Array) -> Numbers:
    found = pc.index_in(column, value_set=values, skip_nulls=True)
    return np.asarray(pc.fill_null(found, ABSENT)).astype(np.int64)


def _pairs(codes: Numbers, own: Numbers, count: int) -> Numbers:
    return np.where((codes < 0) | (own < 0), ABSENT, codes * count + own)


def _places(pairs: Numbers, combined: Numbers) -> Numbers:
    """Return the index in `combined` of each pair, or -1."""
    if not len(combined):
        return np.full(len(pairs), ABSENT, np.int64)
    at = np.minimum(np.searchsorted(combined, pairs), len(combined) - 1)
    return np.where(combined[at] == pairs, at, ABSENT).astype(np.int64)
