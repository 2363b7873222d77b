"""What of a topic is to be replayed: from words to the source's options. Pure.

Invariant: a word that could mean two things, or contradicts another, is refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

from bucketlog.log_format.durations import is_duration, parse_duration_ms
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import WallClock

Moment: TypeAlias = datetime | date | str
OffsetRange: TypeAlias = int | tuple[int | None, int | None]
"""The first offset, or the first one and the one after the last; None: as the log has it."""

_EARLIEST, _LATEST = -2, -1
_REMEDY = (
    "a datetime, a date as 2026-01-31, a time as 2026-01-31T12:00Z, or so far back: 7d, 2h, 30m"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """`offsets` (by partition) are alone; `partitions` None: all of them."""

    topic: str
    since: Moment | None = None
    until: Moment | None = None
    offsets: Mapping[int, OffsetRange] | None = None
    partitions: Sequence[int] | None = None

    def options(self, clock: WallClock) -> dict[str, str]:
        """As the source takes them. Raises `ConfigurationError`."""
        if self.offsets is not None:
            return self._by_offsets(self.offsets)
        found = self._partitions(self.partitions)
        if self.since is not None:
            found["startingTimestamp"] = str(milliseconds("since", self.since, clock))
            found["startingOffsetsByTimestampStrategy"] = "latest"
        if self.until is not None:
            found["endingTimestamp"] = str(milliseconds("until", self.until, clock))
        if self.since is not None and self.until is not None:
            first, last = int(found["startingTimestamp"]), int(found["endingTimestamp"])
            if first > last:
                raise ConfigurationError(f"since {self.since} is after until {self.until}")
        return found

    def _partitions(self, numbers: Sequence[int] | None) -> dict[str, str]:
        if numbers is None:
            return {"subscribe": self.topic}
        if not numbers:
            raise ConfigurationError("no partition to replay", remedy="name one, or leave it out")
        return {"assign": json.dumps({self.topic: list(numbers)})}

    def _by_offsets(self, offsets: Mapping[int, OffsetRange]) -> dict[str, str]:
        if self.since is not None or self.until is not None:
            raise ConfigurationError(
                "offsets with since or until", remedy="give offsets, or points in time"
            )
        numbers = sorted(offsets) if self.partitions is None else list(self.partitions)
        lacking = sorted(set(numbers) ^ set(offsets))
        if lacking:
            raise ConfigurationError(
                f"offsets and partitions differ in {lacking}", remedy="leave partitions out"
            )
        starting, ending = {}, {}
        for number, wanted in offsets.items():
            first, last = (wanted, None) if isinstance(wanted, int) else wanted
            if min(first or 0, last or 0) < 0:
                raise ConfigurationError(f"partition {number}: offsets {first} to {last}")
            starting[number] = _EARLIEST if first is None else first
            ending[number] = _LATEST if last is None else last
        return {
            **self._partitions(numbers),
            "startingOffsets": json.dumps({self.topic: starting}),
            "endingOffsets": json.dumps({self.topic: ending}),
        }


def milliseconds(name: str, moment: Moment, clock: WallClock) -> int:
    """Since 1970 UTC. A moment without a zone is local time, as of `consume --from`.

    Raises `ConfigurationError`.
    """
    if isinstance(moment, str):
        if is_duration(moment):
            return max(0, clock() - parse_duration_ms(moment))
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            raise ConfigurationError(f"{name} {moment!r}", remedy=f"give {_REMEDY}") from None
    if not isinstance(moment, date):  # a datetime is one, too
        raise ConfigurationError(f"{name} {moment!r}", remedy=f"give {_REMEDY}")
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - local time is meant
    found = int(moment.timestamp() * 1000)
    if found < 0:
        raise ConfigurationError(f"{name} {moment} is before 1970", remedy=f"give {_REMEDY}")
    return found


def parse_offsets(text: str) -> dict[int, OffsetRange]:
    """From `0:120,1:7-90,2:-50`: partition, first offset, and the one after the last.

    Raises `ConfigurationError`.
    """
    found: dict[int, OffsetRange] = {}
    for item in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,19}):(\d{0,19})(-(\d{0,19}))?\s*", item, re.ASCII)
        if match is None or int(match[1]) in found:
            raise ConfigurationError(
                f"offsets {item.strip()!r}",
                remedy="as in 0:120,1:7-90 (partition:first-end, the end is not included)",
            )
        first, last = match[2], match[4]
        found[int(match[1])] = (int(first) if first else None, int(last) if last else None)
    return found
