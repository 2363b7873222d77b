"""Decoded batches, cut into what goes into one folder each. Pure.

Invariant: no record is lost, added or changed, and those of a partition keep their order.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_HOUR_US = 3_600_000_000


class Part(NamedTuple):
    """Rows of one partition that go into one folder."""

    topic: str
    partition: int
    folder: str
    first_offset: int
    last_offset: int
    rows: pa.RecordBatch


class Splitter:
    """Decoded batches, cut where topic, partition, day or hour change."""

    def __init__(
        self, places: set[tuple[str, int]], partition_by: Sequence[str], kept: Sequence[str]
    ) -> None:
        self._partition_by = partition_by
        self._kept = kept
        self._only = next(iter(places)) if len(places) == 1 else None
        self._topics = sorted({topic for topic, _ in places})
        self._by_time = [column for column in partition_by if column in ("day", "hour")]
        needed = {"offset"}
        if self._only is None:
            needed |= {"partition"} | ({"topic"} if len(self._topics) > 1 else set())
        if self._by_time:
            needed.add("timestamp")
        self.names = [*kept, *sorted(needed - set(kept))]

    def split(self, batch: pa.RecordBatch) -> Iterator[Part]:
        for topic, partition, rows in self._places(batch):
            for times, same in self._times(rows):
                offsets = same.column("offset")
                yield Part(
                    topic,
                    partition,
                    self._folder(topic, partition, times),
                    offsets[0].as_py(),
                    offsets[-1].as_py(),
                    same.select(self._kept),
                )

    def _places(self, batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.RecordBatch]]:
        if self._only is not None:
            yield *self._only, batch
            return
        numbers = batch.column("partition").to_numpy()
        codes, topics = np.zeros(len(numbers), np.int32), self._topics
        if len(topics) > 1:
            encoded = batch.column("topic").dictionary_encode()
            codes, topics = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        for start, end in _stretches(codes, numbers):
            yield topics[codes[start]], int(numbers[start]), batch.slice(start, end - start)

    def _times(self, rows: pa.RecordBatch) -> Iterator[tuple[dict[str, str], pa.RecordBatch]]:
        if not self._by_time:
            yield {}, rows
            return
        hours = rows.column("timestamp").cast(pa.int64()).to_numpy() // _HOUR_US
        units = hours if "hour" in self._by_time else hours // 24
        if units[0] != units[-1] or (units != units[0]).any():
            order = np.argsort(units, kind="stable")
            rows, hours, units = rows.take(pa.array(order)), hours[order], units[order]
        for start, end in _stretches(units):
            day, hour = divmod(int(hours[start]), 24)
            times = {"day": str(np.datetime64(day, "D")), "hour": str(hour)}
            yield times, rows.slice(start, end - start)

    def _folder(self, topic: str, partition: int, times: dict[str, str]) -> str:
        values = {"topic": topic, "partition": str(partition), **times}
        return "/".join(f"{column}={values[column]}" for column in self._partition_by)


def _stretches(*keys: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Where rows are together that have the same keys."""
    differs = np.zeros(len(keys[0]), np.bool_)
    for key in keys:
        differs[1:] |= key[1:] != key[:-1]
    starts = [0, *np.flatnonzero(differs).tolist()]
    yield from zip(starts, [*starts[1:], len(differs)], strict=True)
