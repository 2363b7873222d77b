"""The plan for deletion of tiers' objects below a floor. Pure.

Two kinds of objects are deleted. The first kind left a tier by an entry below the floor, and by no
later entry: a safety age has passed since every reader could know. An object may leave twice: its
row leaves when a manifest lists it, and the object leaves with this manifest. The second kind was
named by no tier, and never will be: these are objects of jobs that were planned below the floor and
are over, so that no swap of theirs counts any more (docs/format/tier.md).

Invariant: no object is deleted that a row of one of the two newest checkpoints names, itself or by
a manifest. An object of the second kind is deleted only if both say that its job is over.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.log_format.model import Ticket, TierObject
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.deletion import GarbageKind


class TierRemoval(NamedTuple):
    """An object that left its tier by an entry of that ticket; of a manifest also what `contents`
    left with it."""

    ticket: Ticket
    there: TierObject
    contents: tuple[TierObject, ...]


@dataclass(frozen=True, slots=True)
class TierHoldings:
    """The objects of all tiers according to a checkpoint. `named`: keys of rows, and of the objects
    that their manifests list."""

    named: frozenset[str]
    left: Sequence[TierRemoval]
    swept_below: Ticket


class TierPlan(NamedTuple):
    """Keys to delete. `left` are objects that left a tier, in this order, a manifest after the
    objects that it lists. `orphans` are objects that no tier ever had. `over`: after their
    deletion, an entry must say that all of them below the floor are deleted."""

    left: list[str]
    orphans: list[str]
    over: bool

    def by_kind(self) -> Iterator[tuple[GarbageKind, list[str]]]:
        yield GarbageKind.TIER_OBJECTS, self.left
        yield GarbageKind.ORPHANS, self.orphans


def plan_tiers(
    floor: Ticket, older: TierHoldings, newer: TierHoldings, listed: Iterable[ObjectInfo]
) -> TierPlan:
    """Plan the deletion. `listed` are all segments and manifests of tiers, listed after both
    checkpoints were read. Raises `InvalidDataError` for a key that is none of theirs."""
    named = older.named | newer.named
    known, kept = set(named), set(named)
    for left in (*older.left, *newer.left):
        gone = tuple(map(keys.tier_object, (*left.contents, left.there)))
        known.update(gone)
        if left.ticket >= floor:
            kept.update(gone)
    ripe = [row for row in older.left if newer.swept_below <= row.ticket < floor]
    going = [
        key
        for row in ripe
        for key in map(keys.tier_object, (*row.contents, row.there))
        if key not in kept
    ]
    ended = min(older.swept_below, newer.swept_below)
    orphans = []
    over = bool(ripe)
    for info in listed:
        if info.key not in known:
            planned = keys.planned_below(keys.parse_tier_object(info.key).name, info.key)
            if planned < ended:
                orphans.append(info.key)
            else:
                over = over or planned < floor
    return TierPlan(going, orphans, over)
