"""How long clients waited: pauses between events, and the faults to which they belong.

A pause belongs to a fault if it overlaps the time from the fault's beginning to the next fault's.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.models.recorded_history import FaultSpan, Recorded

NO_FAULT = "no fault"


@dataclass(frozen=True, slots=True)
class Pauses:
    """The longest pauses of one span, in seconds: until the next record was acknowledged (in any
    partition, and in the partition that waited longest), visible, or consumed by the group."""

    any_ack_s: float
    ack_s: float
    visible_s: float
    group_s: float


def longest(times: Sequence[float], began: float, ended: float) -> float:
    """The longest pause that overlaps the span. `times` are in ascending order."""
    before = max((at for at in times if at <= began), default=began)
    inside = [at for at in times if began < at <= ended]
    bounds = [before, *inside, ended]
    return max(later - earlier for earlier, later in pairwise(bounds))


def first_seen(polls: Iterable[tuple[float, int]]) -> list[float]:
    """The times at which any of the pollers saw beyond what all of them had seen."""
    highest, found = 0, []
    for at, offset in sorted(polls):
        if offset > highest:
            highest = offset
            found.append(at)
    return found


@dataclass(frozen=True, slots=True)
class Events:
    """Of a recorded history, when something was acknowledged or seen, by partition, and when the
    group consumed."""

    acknowledged: Mapping[int, Sequence[float]]
    visible: Mapping[int, Sequence[float]]
    consumed: Sequence[float]

    def between(self, began: float, ended: float) -> Pauses:
        every = sorted(at for times in self.acknowledged.values() for at in times)
        return Pauses(
            any_ack_s=longest(every, began, ended),
            ack_s=max(longest(times, began, ended) for times in self.acknowledged.values()),
            visible_s=max(longest(times, began, ended) for times in self.visible.values()),
            group_s=longest(self.consumed, began, ended),
        )


def events_of(recorded: Recorded, *, observers: str, member: str, probes: str) -> Events:
    """`observers` is the prefix of the names of readers that each fetch from one broker. `member`
    is the reader in the group. The acknowledgements of `probes` are left out, because probes do not
    follow the leaders as clients do."""
    acknowledged: dict[int, list[float]] = {}
    for row in recorded.history.acknowledged:
        if row.sent.producer.startswith(probes):
            continue
        acknowledged.setdefault(row.place.partition, []).append(row.at)
    visible: dict[int, list[tuple[float, int]]] = {number: [] for number in acknowledged}
    consumed = []
    for (reader, partition), polls in recorded.polls.items():
        if reader.startswith(observers):
            visible.setdefault(partition, []).extend(polls)
        elif reader == member:
            consumed += [at for at, _ in polls]
    return Events(
        {partition: sorted(times) for partition, times in acknowledged.items()},
        {partition: first_seen(polls) for partition, polls in visible.items()},
        sorted(consumed),
    )


def pauses_by_fault(
    events: Events, faults: Sequence[FaultSpan], ended: float
) -> dict[str, list[Pauses]]:
    """Faults that began together have one name. `NO_FAULT` is the time before the first fault: it
    shows the pauses that the machine alone causes."""
    slots: dict[float, list[FaultSpan]] = {}
    for fault in sorted(faults, key=lambda fault: fault.began):
        last = next(reversed(slots), None)
        if last is not None and fault.began < slots[last][0].ended:
            slots[last].append(fault)
        else:
            slots[fault.began] = [fault]
    found: dict[str, list[Pauses]] = {}
    acknowledged = [at for times in events.acknowledged.values() for at in times]
    if acknowledged and slots and min(acknowledged) < min(slots):
        found[NO_FAULT] = [events.between(min(acknowledged), min(slots))]
    for began, until in pairwise([*slots, ended]):
        name = " + ".join(fault.name for fault in slots[began])
        found.setdefault(name, []).append(events.between(began, until))
    return found


def figures(pauses: Sequence[Pauses]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in ("any_ack_s", "ack_s", "visible_s", "group_s"):
        values = [getattr(each, name) for each in pauses]
        found[f"{name}_p50"] = round(statistics.median(values), 2)
        found[f"{name}_max"] = round(max(values), 2)
    return found


def table(found: Mapping[str, Sequence[Pauses]]) -> str:
    """Markdown: for each fault how often it came, and its longest pauses."""
    lines = [
        "| fault | times | no acknowledgement at all | in one partition | not visible | group |",
        "|---|---|---|---|---|---|",
    ]
    for name in sorted(found):
        row: dict[str, Any] = figures(found[name])
        cells = [
            f"{row[f'{what}_max']:.1f}" for what in ("any_ack_s", "ack_s", "visible_s", "group_s")
        ]
        lines.append(" | ".join([f"| {name}", str(len(found[name])), *cells]) + " |")
    return "\n".join(lines)
