"""Expiry of old snapshots of an Iceberg table.

Invariants: branches and tags keep their newest snapshots. A number of the newest ancestors of the
current snapshot stays, however old they are. Files are not deleted here: they become orphans.
"""

from datetime import datetime

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from bucketlog.log_reader.tables.iceberg_table import ancestors_of

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


def expire(table: Table, snapshots: list[int]) -> None:
    """Remove snapshots from the metadata of the table. Raises the errors of PyIceberg."""
    table.maintenance.expire_snapshots().by_ids(snapshots).commit()
