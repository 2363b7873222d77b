"""Which segments a checkpoint may cover. Pure.

Whoever writes one lists the tails twice, like a reader without a broker; the second listing begins
after the first has ended. The low ticket of a segment that the first found committed says that all
below it was visible or void when that segment was reserved: visible means that its object was in
its chain by then, so that the second listing has it; void, that none ever will be. Hence the
committed segments of the second listing below such a ticket are *all* that there will ever be
below it. An active epoch says the same of everything before it: its activation sealed all chains.

Tickets ascend along a chain, so that what is covered of one is its beginning.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bucketlog.log_format.checkpoint import CoveredWriter
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.tails import Tail


class Prefix(NamedTuple):
    """`segments` by ticket; `writers` those of the ticket's epoch, and of the segments."""

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
    """What is below `low`. Raises `CorruptObjectError` where a chain has no seal that must
    have one, or its tickets do not ascend."""
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
