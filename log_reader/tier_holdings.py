"""What a fold says of all tiers, as plans of their deletion need it. Pure: who asks reads the
manifests that it names here."""

from collections.abc import Iterator, Mapping, Sequence

from bucketlog.log_format.model import TierObject, TierRow
from bucketlog.metadata.fold import LogState
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.tier_deletion import TierHoldings, TierRemoval


def named_manifests(state: LogState) -> Iterator[TierObject]:
    """Return the manifests that exist."""
    for partition, entry in state.partitions.items():
        for row in entry.tier.rows:
            if row.manifest:
                yield TierObject.of(partition, row)


def dropped_manifests(state: LogState) -> Iterator[TierObject]:
    """Return manifests that were dropped with all objects that they list. They may be deleted."""
    for _, there, contents in state.dropped:
        if contents:
            yield there


def holdings_of(state: LogState, listed: Mapping[TierObject, Sequence[TierRow]]) -> TierHoldings:
    """`listed` are the rows of all manifests that are named, and of those dropped that are still
    there."""
    named = set()
    for partition, entry in state.partitions.items():
        for row in entry.tier.rows:
            there = TierObject.of(partition, row)
            named.add(keys.tier_object(there))
            if row.manifest:
                named.update(map(keys.tier_object, _contents(there, listed[there])))
    left = [
        TierRemoval(ticket, there, _contents(there, listed.get(there, ())) if contents else ())
        for ticket, there, contents in state.dropped
    ]
    return TierHoldings(frozenset(named), left, state.swept_below)


def _contents(there: TierObject, rows: Sequence[TierRow]) -> tuple[TierObject, ...]:
    return tuple(TierObject.of(there.partition, row) for row in rows)
