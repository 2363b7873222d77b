"""When records are due. Pure: time comes in, in nanoseconds since the load began.

An open loop does not ask whether earlier records were acknowledged: whoever is late measures from
when a record was due, so that an outage counts for all records that it delayed (no coordinated
omission).
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from bucketlog.log_format.errors import ConfigurationError

NS_PER_S = 1_000_000_000
STEP_NS = 1_000_000
"""Records that are due within the same millisecond are due at its begin."""
_RATE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([KMG])B)?(?:/s)?", re.ASCII | re.IGNORECASE)
_BYTES = {"K": 1e3, "M": 1e6, "G": 1e9}


class DueRecords(NamedTuple):
    """Number of records that are due at a time."""

    due_ns: int
    records: int


class Schedule(Protocol):
    @property
    def next_ns(self) -> int | None:
        """When the next records are due; None: there are no more."""

    def due(self, elapsed_ns: int) -> Iterator[DueRecords]:
        """What has become due and was not given yet, in order; all counts as given."""


class PacedSchedule:
    """`records_per_s` from the begin on, evenly; `records` or `duration_ns` ends it, None: not."""

    def __init__(
        self, records_per_s: float, *, records: int | None, duration_ns: int | None
    ) -> None:
        self._rate = records_per_s
        in_time = math.inf if duration_ns is None else self._before(duration_ns)
        self._total = min(math.inf if records is None else records, in_time)
        self._given = 0

    def _before(self, elapsed_ns: int) -> int:
        """Record i is due at i / rate: so many are due earlier than that."""
        return math.ceil(self._rate * elapsed_ns / NS_PER_S)

    @property
    def next_ns(self) -> int | None:
        if self._given >= self._total:
            return None
        return int(self._given / self._rate * NS_PER_S) // STEP_NS * STEP_NS

    def due(self, elapsed_ns: int) -> Iterator[DueRecords]:
        while (at_ns := self.next_ns) is not None and at_ns <= elapsed_ns:
            end = min(self._before(at_ns + STEP_NS), self._total)
            count = max(1, int(end) - self._given)
            self._given += count
            yield DueRecords(at_ns, count)


class UnpacedSchedule:
    """As fast as somebody takes them: always `chunk` more. Those before `free_ns` are not counted
    among `records`."""

    def __init__(
        self, chunk: int, *, records: int | None, duration_ns: int | None, free_ns: int = 0
    ) -> None:
        self._free_ns = free_ns
        self._chunk = chunk
        self._left = math.inf if records is None else records
        self._end_ns = math.inf if duration_ns is None else duration_ns
        self._now_ns = 0

    @property
    def next_ns(self) -> int | None:
        return self._now_ns if self._left > 0 and self._now_ns < self._end_ns else None

    def due(self, elapsed_ns: int) -> Iterator[DueRecords]:
        self._now_ns = elapsed_ns
        if self.next_ns is not None:
            count = int(min(self._chunk, self._left))
            if elapsed_ns >= self._free_ns:
                self._left -= count
            yield DueRecords(elapsed_ns, count)


def parse_rate(text: str, record_bytes: int) -> float:
    """Records a second; 0: as fast as it can. Raises `ConfigurationError`."""
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(
            f"--rate {text}",
            remedy="give records a second, as 5000, or bytes, as 10MB/s; 0: as fast as it can",
        )
    unit = found[2]
    return float(found[1]) * (_BYTES[unit.upper()] / record_bytes if unit else 1)
