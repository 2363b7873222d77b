"""What brokers would delete, from the bucket alone: by the plans that they follow themselves.

Nothing is deleted here. Invariant: *now* is what a broker's next round deletes, as things are;
*later* is what it deletes once the newest checkpoint has been the older of two, under a floor that
is old enough, if nothing else happens: no object that the log names now is in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import ObjectNotFoundError
from bucketlog.log_format.model import Ticket, TierObject, TierRow, WriterId
from bucketlog.log_reader.tier_holdings import dropped_manifests, holdings_of, named_manifests
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, SyncBucket
from bucketlog.tiered_storage.deletion import GarbageKind, plan_chain, plan_floors
from bucketlog.tiered_storage.floors import FLOOR_SPAN, Floor, decode_floor
from bucketlog.tiered_storage.identity import NoLogError
from bucketlog.tiered_storage.log_cut_reading import read_checkpoints, read_log
from bucketlog.tiered_storage.manifest import MANIFEST_SPAN, decode_manifest
from bucketlog.tiered_storage.tails import registered_epochs
from bucketlog.tiered_storage.tier_deletion import TierHoldings, plan_tiers

EVER_MS = 2**63 - 1


class GarbageObject(NamedTuple):
    key: str
    kind: GarbageKind
    due: Literal["now", "later"]
    size_bytes: int


class GarbageReport(NamedTuple):
    """`floor` is the one below which brokers delete now, if there is one."""

    floor: Ticket | None
    garbage: list[GarbageObject]


class _BucketListing(NamedTuple):
    """All that is ever deleted, listed after the checkpoints were read."""

    checkpoints: list[ObjectInfo]
    floors: list[ObjectInfo]
    registrations: list[ObjectInfo]
    chains: Mapping[WriterId, Sequence[ObjectInfo]]
    tiers: list[ObjectInfo]

    def sizes(self) -> dict[str, int]:
        chained = (info for chain in self.chains.values() for info in chain)
        single = (*self.checkpoints, *self.floors, *self.registrations, *self.tiers)
        return {info.key: info.size_bytes for info in (*single, *chained)}


def find_garbage(
    bucket: SyncBucket, *, safety_age_ms: int, place: str = "this bucket"
) -> GarbageReport:
    """`safety_age_ms` is the brokers'; 0: they delete nothing below floors. Raises `NoLogError`,
    which names `place`, `CorruptObjectError`, `InvalidDataError` and the bucket's errors."""
    if bucket.head(keys.CLUSTER) is None and not any(bucket.list(keys.LOG)):
        raise NoLogError(place)
    snapshot = read_log(bucket)
    base = restored(snapshot.checkpoint, keep_producers=False, keep_groups=False)
    checkpoints = read_checkpoints(bucket, 2)
    there = _listed(bucket)
    if not checkpoints:
        return GarbageReport(None, [])
    manifests: dict[TierObject, Sequence[TierRow]] = {}
    holdings = [_holdings(bucket, _state_of(each), manifests) for each in checkpoints]
    floor = _ripe_floor(bucket, checkpoints, there, safety_age_ms)
    now = list(_superseded(checkpoints, there, floor))
    if floor is not None:
        (written_ms,) = (
            info.modified_ms
            for info in there.checkpoints
            if info.key == keys.checkpoint(checkpoints[0].ticket)
        )
        now += _in_chains(there, floor, written_ms - safety_age_ms)
        now += _in_tiers(floor.ticket, holdings[1], holdings[0], there.tiers)
    later: list[tuple[GarbageKind, str]] = []
    if safety_age_ms:
        live = _holdings(bucket, fold(snapshot.segments, onto=base), manifests)
        later += _in_chains(there, Floor.of(checkpoints[0], checkpoints[0]), EVER_MS)
        later += _below_the_highest(there.floors)
        later += _in_tiers_later(checkpoints[0].ticket, holdings[0], live, there.tiers)
    sizes = there.sizes()
    due = {
        key: GarbageObject(key, kind, "later", sizes[key]) for kind, key in later if key in sizes
    }
    due |= {key: GarbageObject(key, kind, "now", sizes[key]) for kind, key in now if key in sizes}
    return GarbageReport(floor.ticket if floor else None, sorted(due.values()))


def _listed(bucket: SyncBucket) -> _BucketListing:
    chains: dict[WriterId, list[ObjectInfo]] = {}
    for info in bucket.list(keys.LOG):
        chains.setdefault(keys.parse_segment(info.key).writer, []).append(info)
    return _BucketListing(
        list(bucket.list(keys.CHECKPOINTS)),
        list(bucket.list(keys.FLOORS)),
        list(bucket.list(keys.WRITERS)),
        chains,
        [*bucket.list(keys.SEGMENTS), *bucket.list(keys.MANIFESTS)],
    )


def _state_of(checkpoint: Checkpoint) -> LogState:
    return restored(checkpoint, keep_producers=False, keep_groups=False)


def _holdings(
    bucket: SyncBucket, state: LogState, known: dict[TierObject, Sequence[TierRow]]
) -> TierHoldings:
    """`known` are manifests that were read already; those read now join them."""
    for there in named_manifests(state):
        if there not in known:
            known[there] = _rows_of(bucket, there)
    for there in dropped_manifests(state):
        if there not in known:
            try:
                known[there] = _rows_of(bucket, there)
            except ObjectNotFoundError:
                continue  # it went after all that it listed
    return holdings_of(state, known)


def _rows_of(bucket: SyncBucket, there: TierObject) -> Sequence[TierRow]:
    return decode_manifest(there, bucket.get(keys.tier_object(there), MANIFEST_SPAN).data)


def _ripe_floor(
    bucket: SyncBucket, checkpoints: Sequence[Checkpoint], there: _BucketListing, safety_age_ms: int
) -> Floor | None:
    written = {info.key: info.modified_ms for info in there.checkpoints}
    now_ms = written.get(keys.checkpoint(checkpoints[0].ticket))
    if len(checkpoints) < 2 or now_ms is None or not safety_age_ms:
        return None
    plan = plan_floors(
        checkpoints[1].ticket,
        there.floors,
        now_ms=now_ms,
        safety_age_ms=safety_age_ms,
        interval_ms=1,
    )
    if plan.use is None:
        return None
    key = keys.floor(plan.use)
    return decode_floor(key, bucket.get(key, FLOOR_SPAN).data)


def _superseded(
    checkpoints: Sequence[Checkpoint], there: _BucketListing, floor: Floor | None
) -> Iterator[tuple[GarbageKind, str]]:
    if len(checkpoints) == 2:
        for info in there.checkpoints:
            if keys.parse_checkpoint(info.key) < checkpoints[1].ticket:
                yield GarbageKind.CHECKPOINTS, info.key
    if floor is not None:
        for info in there.floors:
            if keys.parse_floor(info.key) < floor.ticket:
                yield GarbageKind.FLOORS, info.key


def _below_the_highest(floors: Iterable[ObjectInfo]) -> Iterator[tuple[GarbageKind, str]]:
    for key in sorted((info.key for info in floors), key=keys.parse_floor)[:-1]:
        yield GarbageKind.FLOORS, key


def _in_chains(
    there: _BucketListing, floor: Floor, sealed_before_ms: int
) -> Iterator[tuple[GarbageKind, str]]:
    for writer, epoch in registered_epochs(there.registrations).items():
        chain = there.chains.get(writer, ())
        plan = plan_chain(writer, epoch, chain, floor=floor, sealed_before_ms=sealed_before_ms)
        for kind, going in plan.by_kind():
            yield from ((kind, key) for key in going)
        if plan.over:
            yield GarbageKind.REGISTRATIONS, keys.writer_registration(epoch, writer)


def _in_tiers(
    floor: Ticket, older: TierHoldings, newer: TierHoldings, listed: Iterable[ObjectInfo]
) -> Iterator[tuple[GarbageKind, str]]:
    for kind, going in plan_tiers(floor, older, newer, listed).by_kind():
        yield from ((kind, key) for key in going)


def _in_tiers_later(
    floor: Ticket, covered: TierHoldings, live: TierHoldings, listed: Sequence[ObjectInfo]
) -> Iterator[tuple[GarbageKind, str]]:
    """What is nobody's goes once an entry says that jobs planned below the floor are over."""
    covered_over, live_over = (replace(each, swept_below=floor) for each in (covered, live))
    yield from _in_tiers(floor, covered, live, listed)
    yield from (
        (GarbageKind.ORPHANS, key)
        for key in plan_tiers(floor, covered_over, live_over, listed).orphans
    )
