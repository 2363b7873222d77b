"""The newest change of each key, and whether a change is newer than a row. Pure.

In a partition, the record with the higher offset is newer. A batch has later offsets than all
batches before, so a change of a batch is newer than a stored row of the same partition. Between
partitions, the record with the later timestamp is newer, then the one whose topic and partition are
greater. Invariant: the order of the changes in a batch's files has no effect.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bucketlog.log_reader.tables.changes.key_codes import Column, Numbers

PLACE_COLUMNS = ("_log_topic", "_log_partition", "_log_offset", "_log_timestamp")
_OLDEST = np.iinfo(np.int64).min


class Coordinates(NamedTuple):
    """Where rows come from. `ranks` order their topics and partitions."""

    ranks: Numbers
    offsets: Numbers
    times: Numbers

    def at(self, chosen: Numbers) -> "Coordinates":
        return Coordinates(self.ranks[chosen], self.offsets[chosen], self.times[chosen])


class Places:
    """The topics and partitions of a batch, in order. Each has an odd rank. The ranks of others are
    even, and in the same order."""

    def __init__(self, rows: pa.Table) -> None:
        self._known = _distinct(rows)[0]
        self._known.sort()
        self.width = 2 * len(self._known) + 1
        """Ranks are smaller than this number."""

    def coordinates(self, rows: pa.Table) -> Coordinates:
        """`rows` have `PLACE_COLUMNS`. Rows without a place or a time are the oldest."""
        places, index = _distinct(rows)
        ranks = np.array([self._rank(place) for place in places], np.int64)
        times = rows.column("_log_timestamp").cast(pa.int64())
        return Coordinates(
            ranks[index] if len(index) else np.empty(0, np.int64),
            np.asarray(pc.fill_null(rows.column("_log_offset"), _OLDEST)),
            np.asarray(pc.fill_null(times, _OLDEST)),
        )

    def _rank(self, place: tuple[str, int]) -> int:
        at = bisect_left(self._known, place)
        return 2 * at + (at < len(self._known) and self._known[at] == place)


def _distinct(rows: pa.Table) -> tuple[list[tuple[str, int]], Numbers]:
    """Return the topics and partitions of rows, and for each row the index of its place."""
    topics: Column = pc.fill_null(rows.column("_log_topic"), "")
    names = pc.unique(topics)
    numbers = np.asarray(pc.index_in(topics, value_set=names)).astype(np.int64)
    partitions = np.asarray(pc.fill_null(rows.column("_log_partition"), -1)).astype(np.int64)
    keys, index = np.unique((numbers << 32) | (partitions & 0xFFFFFFFF), return_inverse=True)
    texts: Sequence[str] = names.to_pylist()
    signed = (keys & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)
    places = zip((keys >> 32).tolist(), signed.tolist(), strict=True)
    return [(texts[number], partition) for number, partition in places], index


@dataclass(frozen=True)
class NewestChanges:
    """The newest change of each code. `rows` are the indexes of these changes in their batch."""

    width: int
    rows: Numbers
    at: Coordinates
    """The coordinates of `rows`."""
    pairs: Numbers
    """Codes and ranks of all changes, as one number, in order."""
    pair_offsets: Numbers
    """The highest offset of each pair."""

    @classmethod
    def of(cls, codes: Numbers, at: Coordinates, width: int) -> "NewestChanges":
        """`codes` are 0, 1, 2, …, without gaps. A row with another code does not count."""
        pairs = codes * width + at.ranks
        in_order = np.lexsort((at.offsets, pairs))
        in_order = in_order[codes[in_order] >= 0]
        in_place = in_order[_is_last(pairs[in_order])]
        by_time = np.lexsort((at.ranks[in_place], at.times[in_place], codes[in_place]))
        by_time = in_place[by_time]
        rows = by_time[_is_last(codes[by_time])]
        return cls(width, rows, at.at(rows), pairs[in_place], at.offsets[in_place])

    def replaces(self, codes: Numbers, at: Coordinates, *, are_stored: bool) -> NDArray[np.bool_]:
        """Return for each row whether its code has a newer change. `are_stored`: the rows are in
        the table, and not changes of the same batch. A row with the code -1 has no newer change."""
        if not len(self.rows):
            return np.zeros(len(codes), np.bool_)
        is_known = codes >= 0
        known = np.where(is_known, codes, 0)
        pairs = known * self.width + at.ranks
        place = np.minimum(np.searchsorted(self.pairs, pairs), len(self.pairs) - 1)
        is_later = self.pairs[place] == pairs
        if not are_stored:
            is_later &= self.pair_offsets[place] > at.offsets
        ranks, times = self.at.ranks[known], self.at.times[known]
        is_elsewhere = (ranks != at.ranks) & (
            (times > at.times) | ((times == at.times) & (ranks > at.ranks))
        )
        found: NDArray[np.bool_] = is_known & (is_later | is_elsewhere)
        return found


def _is_last(values: Numbers) -> NDArray[np.bool_]:
    """Return for each of the sorted values whether it is the last one of its kind."""
    return np.append(values[1:] != values[:-1], np.ones(min(1, len(values)), np.bool_))
