"""Was any promise broken? Pure: from what was acknowledged and what the log holds to complaints.

The promises, as the commit protocol states them: no acknowledged record is lost, its (partition,
offset) never changes and is never given to another, and an idempotent producer's records appear
once and in order.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class Sent(NamedTuple):
    """A record by its producer's name and its number there; a producer sends 0, 1, 2, … to each
    partition in rising order."""

    producer: str
    number: int


class Place(NamedTuple):
    partition: int
    offset: int


Log = Mapping[int, Sequence[tuple[int, Sent]]]
"""By partition: offset and record, as a reader got them."""


def broken_promises(acknowledged: Iterable[tuple[Sent, Place]], log: Log) -> list[str]:
    """Empty where all hold. Records that were sent and not acknowledged may be there or not, but
    no more than once either."""
    found = list(_order_of_offsets(log))
    places: dict[Sent, list[Place]] = {}
    for partition, rows in log.items():
        for offset, sent in rows:
            places.setdefault(sent, []).append(Place(partition, offset))
    found += [
        f"{sent} appears {len(mine)} times: {mine}" for sent, mine in places.items() if mine[1:]
    ]
    for sent, place in acknowledged:
        mine = places.get(sent, [])
        if not mine:
            found.append(f"{sent} was acknowledged at {place} and is lost")
        elif place not in mine:
            found.append(f"{sent} was acknowledged at {place} and stands at {mine}")
    return found + list(_order_of_producers(log))


def _order_of_offsets(log: Log) -> Iterable[str]:
    for partition, rows in log.items():
        for (one, _), (following, _) in pairwise(rows):
            if following <= one:
                yield f"partition {partition}: offset {following} is read after {one}"


def _order_of_producers(log: Log) -> Iterable[str]:
    for partition, rows in log.items():
        last: dict[str, int] = {}
        for offset, sent in rows:
            if sent.number <= last.get(sent.producer, -1):
                yield (
                    f"partition {partition}, offset {offset}: {sent} stands after "
                    f"number {last[sent.producer]}"
                )
            last[sent.producer] = sent.number
