"""An Iceberg table that is ingested into: where it continues, and how a batch is committed.

A batch that only adds files is one `append` snapshot: streaming and incremental readers follow it.
A batch that also removes files is one `overwrite` snapshot. The same commit sets
the table property `bucketlog.ingest`, which has the end offsets as JSON, and the snapshot has them
in its summary. The commit requires that the table's current snapshot is the one whose offsets were
read. So of two ingests that write batch n, the catalog accepts one.

Where a table continues: at the newest snapshot with offsets among the ancestors of the current one,
so a rollback takes back the offsets with the rows. If maintenance has removed all these snapshots,
the table property tells the offsets. No statement that deletes rows or snapshots changes the
property.

PyIceberg repeats a commit that lost a race on the newer snapshot, without asking whether its rows
are there already. That would commit a batch twice, so its repetition is off here, and each try
begins with the offsets again (docs/decisions/0035).
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketError, ConfigurationError, CorruptObjectError
from bucketlog.log_reader.tables.change_rule import ChangeRule
from bucketlog.log_reader.tables.progress import (
    Commit,
    CommitContentionError,
    IngestConflictError,
    TargetState,
)

logger = logging.getLogger(__name__)

PROPERTY = "bucketlog.ingest"
COMMIT_TRIES_MAX = 20
"""Maximum number of tries for one batch. A commit of others, such as maintenance, costs a try."""
_BACKOFF = Backoff(50, 2_000, jitter=0.5)


class StoredCommit(Commit):
    """The value of the table property: a commit, and the snapshot that it made."""

    snapshot_id: int
    sequence_number: int


class _Told(BaseModel):
    """The properties of a table about its ingests."""

    model_config = ConfigDict(frozen=True)

    by_ancestor: Commit | None
    by_property: StoredCommit | None


class FileChange(NamedTuple):
    """The files that a batch adds to a table, and the files that it removes."""

    added: Sequence[DataFile]
    removed: Sequence[DataFile] = ()


PlanChange: TypeAlias = Callable[[Table], FileChange]
"""Returns the change of a table by a batch, for the current snapshot of the table."""


class TableBase(NamedTuple):
    """A table as it was loaded, and where an ingest continues it."""

    table: Table
    standing: TargetState


class IcebergTable:
    """`load` gets the table from its catalog, with the current metadata."""

    def __init__(
        self,
        name: str,
        load: Callable[[], Table],
        *,
        random: Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`random` is for the jitter of the pauses between tries; by default, its own."""
        self._name = name
        self._load = load
        self._random = random or Random()
        self._sleep = sleep

    def base(self) -> TableBase:
        """Raises `ConfigurationError` and `CorruptObjectError`."""
        table = self._load()
        return TableBase(table, standing_of(self._name, table.metadata))

    def append(
        self, files: Sequence[DataFile], commit: Commit, standing: TargetState
    ) -> TargetState:
        """Commit `files` as the batch after `standing`. Raises the errors of `change`."""
        return self.change(lambda table: FileChange(files), commit, standing)

    def change(self, plan: PlanChange, commit: Commit, standing: TargetState) -> TargetState:
        """Commit the batch after `standing`. Each try calls `plan`, whose result is committed only
        if the table still has the snapshot that `plan` got. Nothing of the batch is committed if
        this raises `IngestConflictError` (another ingest has committed since) or
        `CommitContentionError` (other writers won each of `COMMIT_TRIES_MAX` tries), or if `plan`
        raises an error."""
        for _ in commit_tries(self._random, self._sleep):
            base = self.base()
            if base.standing.attempt != standing.attempt:
                return self._settled(base.standing, commit)
            files = plan(base.table)
            try:
                _commit(once_only(base.table), files, commit)
            except CommitFailedException as error:
                logger.info("%s: commit of batch %d: %s", self._name, commit.batch, error)
                continue
            except Exception as error:
                # the answer may be lost, and the commit done
                after = self.base().standing
                if after.attempt != standing.attempt:
                    return self._settled(after, commit)
                raise BucketError(
                    f"batch {commit.batch} of {self._name} was not committed: {error}",
                    remedy="see that the catalog and the table's files can be written, and "
                    "run the ingest again",
                ) from error
            return TargetState(commit)
        raise CommitContentionError(self._name, commit.batch, COMMIT_TRIES_MAX)

    def _settled(self, after: TargetState, commit: Commit) -> TargetState:
        if after.attempt != commit.attempt:
            raise IngestConflictError(self._name, commit.batch)
        return after


def commit_tries(random: Random, sleep: Callable[[float], None]) -> Iterator[int]:
    """Yield the numbers of `COMMIT_TRIES_MAX` tries, with a pause before each later try."""
    pauses_s = _BACKOFF.pauses_s(random)
    for tried in range(COMMIT_TRIES_MAX):
        if tried:
            sleep(next(pauses_s))
        yield tried


def once_only(table: Table) -> Table:
    """Return `table`, whose next commit is tried once, on the snapshot that `table` has now. The
    table then knows only the snapshots of its branches and tags: PyIceberg copies all metadata more
    than ten times in a commit, which takes seconds with some thousand snapshots."""
    metadata = table.metadata
    heads = {each.snapshot_id for each in metadata.refs.values()}
    table.metadata = metadata.model_copy(
        update={
            "properties": {**metadata.properties, TableProperties.COMMIT_NUM_RETRIES: "0"},
            "snapshots": [each for each in metadata.snapshots if each.snapshot_id in heads],
            "snapshot_log": [],
        }
    )
    return table


def _commit(table: Table, files: FileChange, commit: Commit) -> None:
    with table.transaction() as transaction:
        update = transaction.update_snapshot({PROPERTY: commit.model_dump_json()})
        with update.overwrite() if files.removed else update.fast_append() as change:
            for file in files.removed:
                change.delete_data_file(file)
            for file in files.added:
                change.append_data_file(file)
        made = transaction.table_metadata.snapshot_by_id(change.snapshot_id)
        assert made is not None
        stored = StoredCommit(
            **commit.model_dump(),
            snapshot_id=change.snapshot_id,
            sequence_number=made.sequence_number or 0,
        )
        transaction.set_properties({PROPERTY: stored.model_dump_json()})


def standing_of(name: str, metadata: TableMetadata) -> TargetState:
    """Where an ingest continues the table `name`. Raises `ConfigurationError` if the table has
    rows and tells no offsets, and `CorruptObjectError` for offsets that do not parse."""
    ancestors = list(ancestors_of(metadata))
    told = _told(name, metadata, ancestors)
    if told.by_ancestor is not None:
        return TargetState(told.by_ancestor)
    if told.by_property is None:
        if ancestors:
            raise ConfigurationError(
                f"{name} has snapshots, but none of them and no property {PROPERTY} tells the "
                "offsets of an ingest",
                remedy="roll the table back to a snapshot of an ingest, or ingest into a new table",
            )
        return TargetState(None)
    if _was_rolled_back(told.by_property, metadata, ancestors):
        raise ConfigurationError(
            f"{name} was rolled back to before batch {told.by_property.batch}, and no snapshot is "
            "left that tells the offsets of that time",
            remedy=f"roll the table forward to snapshot {told.by_property.snapshot_id}, or ingest "
            "into a new table",
        )
    return TargetState(told.by_property)


def rule_of(name: str, metadata: TableMetadata) -> ChangeRule | None:
    """The rule of a table of changes, None for a table of another kind. Raises
    `CorruptObjectError`."""
    told = _told(name, metadata, list(ancestors_of(metadata)))
    commit = told.by_ancestor or told.by_property
    return None if commit is None else commit.changes


def ingested_columns(metadata: TableMetadata) -> dict[str, int]:
    """The names and field ids of columns at the last batch. Empty if its snapshot has expired."""
    schemas = {each.schema_id: each for each in metadata.schemas}
    for snapshot in ancestors_of(metadata):
        if snapshot.summary is not None and snapshot.summary.get(PROPERTY) is not None:
            schema = schemas.get(-1 if snapshot.schema_id is None else snapshot.schema_id)
            return {} if schema is None else {each.name: each.field_id for each in schema.fields}
    return {}


def _was_rolled_back(
    stored: StoredCommit, metadata: TableMetadata, ancestors: Sequence[Snapshot]
) -> bool:
    """The snapshot of `stored` is not among `ancestors`: expired, or left by a rollback. The table
    is then on a branch that began before, which older snapshots tell."""
    if metadata.snapshot_by_id(stored.snapshot_id) is not None:
        return True
    return any((each.sequence_number or 0) < stored.sequence_number for each in ancestors)


def ancestors_of(metadata: TableMetadata) -> Iterator[Snapshot]:
    """Yield snapshots from the current one back, as far as snapshots have not expired."""
    snapshots = {each.snapshot_id: each for each in metadata.snapshots}
    at = metadata.current_snapshot()
    seen: set[int] = set()
    while at is not None and at.snapshot_id not in seen:
        seen.add(at.snapshot_id)
        yield at
        at = snapshots.get(at.parent_snapshot_id or 0)


def _told(name: str, metadata: TableMetadata, ancestors: Sequence[Snapshot]) -> _Told:
    found = next(
        (
            text
            for each in ancestors
            if each.summary is not None and (text := each.summary.get(PROPERTY)) is not None
        ),
        None,
    )
    kept = metadata.properties.get(PROPERTY)
    try:
        return _Told(
            by_ancestor=None if found is None else Commit.model_validate_json(found),
            by_property=None if kept is None else StoredCommit.model_validate_json(kept),
        )
    except ValueError as error:
        raise CorruptObjectError(
            name, 0, f"property {PROPERTY} is not the commit of an ingest: {error}"
        ) from error
