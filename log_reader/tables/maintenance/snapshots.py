"""Expiry of old snapshots of an Iceberg table.

Each commit of an ingest adds a snapshot, and writes all snapshots again. So there is a limit for
their number as well as for their age.

Invariants: branches and tags keep their newest snapshots. A number of the newest ancestors of the
current snapshot stays, however old they are. The commit requires that no branch and no tag has
moved since: the catalog removes those of expired snapshots, and a rollback could be to such a one.
Files are not deleted here: they become orphans.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, RemoveSnapshotsUpdate

from bucketlog.log_format.errors import BucketError
from bucketlog.log_reader.tables.iceberg_table import (
    COMMIT_TRIES_MAX,
    ancestors_of,
    commit_tries,
)

TOGETHER_MAX = 1_000
"""Maximum number of snapshots that expire by one commit. The catalog's work for a commit grows with
this number times the number of all snapshots."""
_MILLISECONDS = 1_000


@dataclass(frozen=True, slots=True)
class SnapshotRule:
    """Snapshots from before `before` expire, except the `kept_min` newest ancestors of the current
    snapshot. If the current snapshot has more than `kept_max` ancestors, the older ones expire as
    well."""

    before: datetime
    kept_min: int
    kept_max: int


def expired_snapshots(metadata: TableMetadata, rule: SnapshotRule) -> list[int]:
    """Return the ids of the snapshots that expire, in order. Pure."""
    ancestors = [each.snapshot_id for each in ancestors_of(metadata)]
    kept = set(ancestors[: rule.kept_min])
    kept |= {reference.snapshot_id for reference in metadata.refs.values()}
    too_many = set(ancestors[rule.kept_max :])
    before_ms = rule.before.timestamp() * _MILLISECONDS
    return [
        each.snapshot_id
        for each in metadata.snapshots
        if each.snapshot_id not in kept
        and (each.timestamp_ms < before_ms or each.snapshot_id in too_many)
    ]


def expire(
    load: Callable[[], Table],
    rule: SnapshotRule,
    *,
    random: Random,
    sleep: Callable[[float], None],
) -> int:
    """Remove the snapshots of `expired_snapshots` from the metadata of the table that `load` gets,
    up to `TOGETHER_MAX` in a commit. Return their number. Raises `BucketError` and the errors of
    PyIceberg."""
    count = found = _expire_some(load, rule, random, sleep)
    while found == TOGETHER_MAX:
        found = _expire_some(load, rule, random, sleep)
        count += found
    return count


def _expire_some(
    load: Callable[[], Table], rule: SnapshotRule, random: Random, sleep: Callable[[float], None]
) -> int:
    for _ in commit_tries(random, sleep):
        table = load()
        found = expired_snapshots(table.metadata, rule)[:TOGETHER_MAX]
        if not found:
            return 0
        try:
            _commit(table, found)
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


def _commit(table: Table, snapshots: list[int]) -> None:
    """PyIceberg's own commit looks at all metadata again for each snapshot, and requires nothing
    about branches and tags."""
    unmoved = (
        AssertRefSnapshotId(ref=name, snapshot_id=reference.snapshot_id)
        for name, reference in table.metadata.refs.items()
    )
    table.catalog.commit_table(
        table,
        (AssertTableUUID(uuid=table.metadata.table_uuid), *unmoved),
        (RemoveSnapshotsUpdate(snapshot_ids=snapshots),),
    )


def _has_all(metadata: TableMetadata, snapshots: Sequence[int]) -> bool:
    return {each.snapshot_id for each in metadata.snapshots}.issuperset(snapshots)
