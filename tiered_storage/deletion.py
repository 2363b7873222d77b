"""The plan for deletion of the log's objects below a floor. Pure.

Invariants: no object that the floor calls readable is deleted, and none at or above the floor. A
chain of the floor's own epoch keeps its seal and its registration, since its sequencer may not know
yet that the chain is sealed. The named objects may be deleted in any order, in part and again: no
reader that begins at or above the floor asks for them (`tiered_storage.floors`).

A chain of an earlier epoch is closed for ever, sealed or not: no reader asks for it, and nobody
publishes what is put there late (`stateless_broker.epochs.claim_watch`).
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from bucketlog.log_format.model import Ticket, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.chains import read_chain
from bucketlog.tiered_storage.floors import Floor, is_among
from bucketlog.tiered_storage.segment import is_seal


class GarbageKind(StrEnum):
    """Kinds of deleted objects, as logs and figures name them."""

    CHECKPOINTS = "checkpoints"
    FLOORS = "floors"
    SEALS = "seals"
    VOID_SEGMENTS = "void segments"
    SEGMENTS = "segments"
    REGISTRATIONS = "registrations"
    TIER_OBJECTS = "tier objects"
    ORPHANS = "orphans"

    @property
    def reason(self) -> str:
        """Why such an object is deleted, in a word."""
        return _REASONS[self]


_REASONS = {
    GarbageKind.CHECKPOINTS: "superseded",
    GarbageKind.FLOORS: "superseded",
    GarbageKind.SEALS: "closed",
    GarbageKind.VOID_SEGMENTS: "void",
    GarbageKind.SEGMENTS: "unreadable",
    GarbageKind.REGISTRATIONS: "over",
    GarbageKind.TIER_OBJECTS: "dropped",
    GarbageKind.ORPHANS: "unnamed",
}


class ChainPlan(NamedTuple):
    """The plan for a chain: `seals`, `void` and `dead` segments to delete. `over`: nothing else is
    left of the chain, so its registration is deleted after all of them."""

    seals: list[str]
    void: list[str]
    dead: list[str]
    over: bool

    @property
    def keys(self) -> list[str]:
        return self.seals + self.void + self.dead

    def by_kind(self) -> Iterator[tuple[GarbageKind, list[str]]]:
        yield GarbageKind.SEALS, self.seals
        yield GarbageKind.VOID_SEGMENTS, self.void
        yield GarbageKind.SEGMENTS, self.dead


def plan_chain(
    writer: WriterId,
    epoch: int,
    listed: Sequence[ObjectInfo],
    *,
    floor: Floor,
    sealed_before_ms: int,
) -> ChainPlan:
    """Return the plan for the chain of a writer registered in `epoch`. `listed` has all objects of
    the chain. In the floor's own epoch, objects after a seal are deleted if the seal is from before
    `sealed_before_ms`."""
    kept = floor.readable_of(writer)
    by_seq = {keys.parse_segment(info.key).seq: info for info in listed}
    if epoch > floor.ticket.epoch:
        return ChainPlan([], [], [], over=False)
    if epoch < floor.ticket.epoch:
        gone = {seq: info for seq, info in by_seq.items() if not is_among(kept, seq)}
        seals = [info.key for info in gone.values() if is_seal(info.size_bytes)]
        dead = [info.key for info in gone.values() if not is_seal(info.size_bytes)]
        return ChainPlan(seals, [], dead, over=len(gone) == len(by_seq) and not kept)
    end = floor.positions.get(writer, 0)
    dead = [info.key for seq, info in by_seq.items() if seq < end and not is_among(kept, seq)]
    chain = read_chain(writer, [info for seq, info in by_seq.items() if seq >= end], end)
    old = chain.sealed and by_seq[chain.end].modified_ms <= sealed_before_ms
    return ChainPlan([], [info.key for info in chain.void] if old else [], dead, over=False)


class FloorPlan(NamedTuple):
    """The plan for floors. `write`: a floor of this ticket may be laid now. `use`: the floor below
    which objects may be deleted. `drop` are the floors below it, which nobody needs any more."""

    write: Ticket | None
    use: Ticket | None
    drop: list[str]


def plan_floors(
    older: Ticket,
    listed: Sequence[ObjectInfo],
    *,
    now_ms: int,
    safety_age_ms: int,
    interval_ms: int,
) -> FloorPlan:
    """Plan floors. `older` is the ticket of the second newest sound checkpoint. `listed` are all
    floors, and `now_ms` is a time of the same store as theirs. A floor is laid every
    `interval_ms`."""
    laid = sorted((keys.parse_floor(info.key), info.modified_ms) for info in listed)
    write: Ticket | None = None
    if not laid or (older > laid[-1][0] and now_ms - laid[-1][1] >= interval_ms):
        write = older
    ripe = [ticket for ticket, laid_ms in laid if now_ms - laid_ms >= safety_age_ms]
    use = max((ticket for ticket in ripe if ticket <= older), default=None)
    drop = [keys.floor(ticket) for ticket, _ in laid if use is not None and ticket < use]
    return FloorPlan(write, use, drop)
