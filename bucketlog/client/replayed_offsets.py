"""Which offsets of one partition of a dead-letter topic were replayed: a committed offset and what
its metadata says.

A replay with filters leaves records out, so that one offset cannot name its progress. All offsets
below the committed offset were replayed. The metadata lists further ranges. Invariant: what
`metadata` returns fits in `METADATA_BYTES_MAX`, or it raises an error.
"""

import base64
import binascii
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError

METADATA_BYTES_MAX = 4096
"""Kafka's default of offset.metadata.max.bytes."""
RANGES_MAX = 50_000
_TEXT_BYTES_MAX = 1024 * 1024
_PREFIX = "bucketlog-deadletter-1:"


class ReplayedOffsets:
    """`next_offset`: all offsets below it were replayed. `ranges`: others that were, as first and
    end (exclusive), ascending and apart from each other."""

    def __init__(self, next_offset: int, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self.next_offset = next_offset
        self._firsts: list[int] = []
        self._ends: list[int] = []
        for first, end in ranges:
            self.add(first, end)

    @classmethod
    def committed(cls, offset: int, metadata: str) -> "ReplayedOffsets":
        """As `metadata` wrote it; metadata of other programs counts as none. Raises
        `InvalidDataError`."""
        if not metadata.startswith(_PREFIX):
            return cls(offset)
        try:
            packed = base64.b64decode(metadata.removeprefix(_PREFIX), validate=True)
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(packed, _TEXT_BYTES_MAX)
            if not unpacking.eof:
                raise ValueError("too long, or cut off")
            steps = [int(step) for step in text.split(b",")]
            if len(steps) % 2 or len(steps) > 2 * RANGES_MAX or min(steps) < 1:
                raise ValueError("no ranges")
        except (binascii.Error, zlib.error, ValueError) as error:
            raise InvalidDataError(f"the metadata of committed offset {offset}: {error}") from error
        found, at = cls(offset), offset
        for distance, length in zip(steps[::2], steps[1::2], strict=True):
            first = at + distance
            at = first + length
            found._firsts.append(first)
            found._ends.append(at)
        return found

    def copy(self) -> "ReplayedOffsets":
        made = ReplayedOffsets(self.next_offset)
        made._firsts, made._ends = self._firsts.copy(), self._ends.copy()
        return made

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return list(zip(self._firsts, self._ends, strict=True))

    def __contains__(self, offset: int) -> bool:
        if offset < self.next_offset:
            return True
        at = bisect_right(self._firsts, offset) - 1
        return at >= 0 and offset < self._ends[at]

    def add(self, first: int, end: int) -> None:
        """Offsets from `first` to before `end` were replayed, or hold no record. Raises
        `ConfigurationError` for more than `RANGES_MAX` ranges."""
        if end <= max(first, self.next_offset):
            return
        low = bisect_left(self._ends, first)
        high = bisect_right(self._firsts, end)
        if low < high:
            first, end = min(first, self._firsts[low]), max(end, self._ends[high - 1])
        if first <= self.next_offset:
            self.next_offset = end
            del self._firsts[:high], self._ends[:high]
            return
        self._firsts[low:high], self._ends[low:high] = [first], [end]
        if len(self._firsts) > RANGES_MAX:
            raise _too_many()

    def metadata(self) -> str:
        """Empty if no range is behind `next_offset`. Raises `ConfigurationError`."""
        if not self._firsts:
            return ""
        edges = [self.next_offset]
        for first, end in self.ranges:
            edges += [first, end]
        text = ",".join(str(after - before) for before, after in pairwise(edges))
        made = _PREFIX + base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        if len(made) > METADATA_BYTES_MAX or len(text) > _TEXT_BYTES_MAX:
            raise _too_many()
        return made


def _too_many() -> ConfigurationError:
    return ConfigurationError(
        "the filters leave too many gaps: the progress does not fit in an offset's metadata",
        remedy="replay up to an earlier offset (--until), or with fewer filters",
    )
