"""Expiry of old snapshots of an Iceberg table.

Invariants: branches and tags keep their newest snapshots. A number of the newest ancestors of the
current snapshot stays, however old they are. The commit requires that no branch and no tag has
moved since: the catalog removes those of expired snapshots, and a rollback could be to such a one.
Files are not deleted here: they become orphans.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertRefSnapshotId, UpdatesAndRequirements
from pyiceberg.table.update.snapshot import ExpireSnapshots

from bucketlog.log_format.errors import BucketError
from bucketlog.log_reader.tables.iceberg_table import (
    COMMIT_TRIES_MAX,
    ancestors_of,
    commit_tries,
    once_only,
)

_MILLISECONDS = 1_000


def expired_snapshots(metadata: TableMetadata, before: datetime, *, kept_min: int) -> list[int]:
    """Return the ids of the snapshots from before `before` that can expire, in order. `kept_min`
    is the number of the newest ancestors that stay. Pure."""
    kept = {each.snapshot_id for each in list(ancestors_of(metadata))[:kept_min]}
    kept |= {reference.snapshot_id for reference in metadata.refs.values()}
    before_ms = before.timestamp() * _MILLISECONDS
    return [
        each.snapshot_id
        for each in metadata.snapshots
        if each.timestamp_ms < before_ms and each.snapshot_id not in kept
    ]


def expire(
    load: Callable[[], Table],
    before: datetime,
    *,
    kept_min: int,
    random: Random,
    sleep: Callable[[float], None],
) -> int:
    """Remove the snapshots of `expired_snapshots` from the metadata of the table that `load` gets.
    Return their number. Raises `BucketError` and the errors of PyIceberg."""
    for _ in commit_tries(random, sleep):
        table = load()
        found = expired_snapshots(table.metadata, before, kept_min=kept_min)
        if not found:
            return 0
        try:
            _expire(once_only(table), found)
        except CommitFailedException:
            continue
        except ValueError:
            if _has_all(load().metadata, found):
                raise
            continue  # some of them have expired meanwhile
        return len(found)
    raise BucketError(
        f"others changed {'.'.join(table.name())} during each of {COMMIT_TRIES_MAX} tries to "
        "expire snapshots",
        remedy="run the command again when other writers are idle",
    )


def _expire(table: Table, snapshots: Sequence[int]) -> None:
    with table.transaction() as change:
        _Expiry(change).by_ids(list(snapshots)).commit()


def _has_all(metadata: TableMetadata, snapshots: Sequence[int]) -> bool:
    return {each.snapshot_id for each in metadata.snapshots}.issuperset(snapshots)


class _Expiry(ExpireSnapshots):
    """PyIceberg's own commit requires nothing about branches and tags."""

    def _commit(self) -> UpdatesAndRequirements:
        unmoved = (
            AssertRefSnapshotId(ref=name, snapshot_id=reference.snapshot_id)
            for name, reference in self._transaction.table_metadata.refs.items()
        )
        updates, requirements = super()._commit()
        return updates, (*requirements, *unmoved)
