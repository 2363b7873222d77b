"""How long clients waited: pauses between events, and the faults to which they belong.

In a run of many faults, a pause belongs to the fault during which it begins, even if it ends during
the next. Its last event may be just before the fault.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.models.recorded_history import FaultSpan, Recorded

NO_FAULT = "no fault"
JUST_BEFORE_S = 1.0
"""Clients do something several times a second. A longer silence began before the fault."""


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


def longest_begun(times: Sequence[float], began: float, until: float, ended: float) -> float:
    """The longest pause that begins in the span from just before `began` to just before `until`.
    The last pause ends at `ended`. `times` are in ascending order."""
    first, end = began - JUST_BEFORE_S, until - JUST_BEFORE_S
    pauses = [
        later - earlier
        for earlier, later in pairwise([*(times or [began]), ended])
        if first <= earlier < end
    ]
    return max(pauses, default=0.0)


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
        """The pauses that overlap the span."""
        return self._pauses(lambda times: longest(times, began, ended))

    def begun(self, began: float, until: float, ended: float) -> Pauses:
        """The pauses that begin in the span. The history ends at `ended`."""
        return self._pauses(lambda times: longest_begun(times, began, until, ended))

    def _pauses(self, longest_of: Callable[[Sequence[float]], float]) -> Pauses:
        every = sorted(at for times in self.acknowledged.values() for at in times)
        return Pauses(
            any_ack_s=longest_of(every),
            ack_s=max(map(longest_of, self.acknowledged.values())),
            visible_s=max(map(longest_of, self.visible.values())),
            group_s=longest_of(self.consumed),
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
        found[NO_FAULT] = [events.begun(min(acknowledged), min(slots), ended)]
    for began, until in pairwise([*slots, ended]):
        name = " + ".join(fault.name for fault in slots[began])
        found.setdefault(name, []).append(events.begun(began, until, ended))
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
