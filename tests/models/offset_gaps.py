"""Gaps in the offsets of a partition, and the seals that explain them.

Offsets are reserved before they are written. They stay empty forever only if the chain of their
writer was sealed. The gap's offsets were reserved after the record below it was sent, and the seal
came before a record above it was acknowledged. If no chain was sealed between these two moments,
nothing explains the gap.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from operator import itemgetter

from tests.models.history import History, Log, Rows, Sent

SLACK_S = 2.0
"""The time of a seal is that of the bucket, which may count in seconds."""


def gaps_without_seal(history: History, log: Log) -> Iterator[str]:
    """A text for each unexplained gap, except gaps in which an acknowledged record is missing: such
    a record is lost. Nothing if the run did not look for seals."""
    if history.seals is None:
        return
    seals = sorted(history.seals)
    places: dict[int, list[int]] = {}
    acknowledged = {}
    for row in history.acknowledged:
        acknowledged[row.sent] = row.at
        places.setdefault(row.place.partition, []).append(row.place.offset)
    for partition, found in log.items():
        rows = sorted(found, key=itemgetter(0))
        taken = sorted(places.get(partition, ()))
        for number in range(len(rows)):
            first, end = rows[number - 1][0] + 1 if number else 0, rows[number][0]
            if end <= first or bisect_left(taken, first) < bisect_left(taken, end):
                continue
            began = _sent_before(history, rows, number)
            ended = _acknowledged_from(acknowledged, rows, number)
            at = bisect_left(seals, began - SLACK_S)
            if at == len(seals) or seals[at] > ended + SLACK_S:
                yield (
                    f"partition {partition}: offsets {first} to {end - 1} hold nothing, "
                    f"and no chain was sealed from {began:.1f} to {ended:.1f}"
                )


def _sent_before(history: History, rows: Rows, number: int) -> float:
    """When the last record below the gap with a known time was sent."""
    for at in range(number - 1, -1, -1):
        producer, its_number = rows[at][1]
        times = history.invoked.get(producer)
        if times is not None and its_number < len(times):
            return times[its_number]
    return float("-inf")


def _acknowledged_from(acknowledged: Mapping[Sent, float], rows: Rows, number: int) -> float:
    """When the first record above the gap with a known time was acknowledged."""
    for at in range(number, len(rows)):
        if rows[at][1] in acknowledged:
            return acknowledged[rows[at][1]]
    return float("inf")
