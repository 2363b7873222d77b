"""The segments that a checkpoint may cover. Pure.

The writer of a checkpoint lists the tails twice, like a reader without a broker; the second listing
begins after the first has ended. Take the low ticket of a segment that the first listing found
committed. When that segment was reserved, everything below the low ticket was visible or void.
Visible means that the object was in its chain by then, so the second listing has it. Void means
that there never will be an object. Hence the committed segments of the second listing below such a
ticket are *all* that there will ever be below it. An active epoch says the same of everything
before it: its activation sealed all chains.

Tickets ascend along a chain, so the covered part of a chain is its beginning.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.log_format.checkpoint import CoveredWriter
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.tails import Tail


class Prefix(NamedTuple):
    """The covered part of the log: `segments` by ticket; `writers` are those of the ticket's epoch,
    and of the segments."""

    segments: list[SegmentIndex]
    writers: list[CoveredWriter]


def low_ticket(first: Iterable[SegmentIndex], *, active_epoch: int) -> Ticket:
    """The highest that the committed segments of the first listing vouch for; all before the
    active epoch is settled. A broker that knows of none says 0."""
    lows = (Ticket(index.ticket.epoch, index.low_ticket) for index in first)
    return max((Ticket(active_epoch, 0), *lows))


def cut_prefix(
    low: Ticket, second: Mapping[WriterId, Tail], footers: Mapping[SegmentId, SegmentIndex]
) -> Prefix:
    """Return the segments below `low`. Raises `CorruptObjectError` if a required seal is missing,
    or if the tickets of a chain do not ascend."""
    segments: list[SegmentIndex] = []
    writers = []
    for writer, (epoch, chain) in second.items():
        indexes = [footers[SegmentId(writer, seq)] for seq in range(chain.start, chain.end)]
        below = [index for index in indexes if index.ticket < low]
        tickets = [index.ticket for index in indexes]
        if tickets != sorted(set(tickets)) or any(ticket.epoch != epoch for ticket in tickets):
            raise CorruptObjectError(
                keys.chain(writer), 0, "its tickets do not ascend within its writer's epoch"
            )
        if epoch < low.epoch and indexes and not chain.sealed:
            raise CorruptObjectError(
                keys.segment(SegmentId(writer, chain.end)),
                0,
                f"the seal is missing that epoch {low.epoch} began with",
            )
        end = chain.start + len(below)
        closed = chain.sealed and end == chain.end
        segments += below
        if end or closed:
            writers.append(CoveredWriter(writer, epoch, end, closed))
    return Prefix(sorted(segments, key=lambda index: index.ticket), writers)
