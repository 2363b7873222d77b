"""The dead letters of a table: a second Iceberg table, which follows the commits of the first.

The commit of a batch decides about its dead letters, too: it names their files, and the attempt
whose dead letters the second table had before. Only then are the files appended, by the same run or
by the next one, before it commits a batch. The second table tells the attempt of its last commit in
the same commit. So a kill between the two commits neither loses a dead letter nor adds it twice.

Invariants: files of an attempt are appended only directly after the attempt that its commit names.
No batch is committed while the second table is at a later batch than the first: the first was then
rolled back, and its dead letters would be added twice.
"""

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.iceberg_files import files_at
from bucketlog.log_reader.tables.iceberg_table import IcebergTable
from bucketlog.log_reader.tables.progress import (
    Commit,
    DeadLetterFiles,
    IngestConflictError,
    TargetState,
)

SUFFIX = "_dead_letters"


def pending_files(
    table: str, files: list[str], records: int, standing: TargetState
) -> DeadLetterFiles | None:
    """For the commit of a batch. `standing` is that of the table of dead letters."""
    if not files:
        return None
    return DeadLetterFiles(table=table, after=standing.attempt, files=tuple(files), records=records)


def check_not_ahead(letters: str, letters_standing: TargetState, standing: TargetState) -> None:
    """`letters_standing` is that of the table `letters`, read before `standing` of the first table.
    Raises `ConfigurationError` if the first table is behind its dead letters, as after a rollback.
    """
    last = standing.next_batch - 1
    ahead = letters_standing.next_batch - 1
    if ahead > last:
        raise ConfigurationError(
            f"the table is at batch {last}, as after a rollback, and {letters} has dead letters of "
            f"batch {ahead}: they would be added again",
            remedy=f"roll {letters} back to its newest snapshot of batch {last} or before; without "
            "such a snapshot, drop it or name another table with --dead-letters",
        )


def publish_dead_letters(letters: IcebergTable, commit: Commit | None) -> int:
    """Append the dead letters of `commit`, the last one of the first table, if they are not there.
    Returns how many were appended. Raises the errors of `IcebergTable.append`, unless another run
    has appended them."""
    pending = None if commit is None else commit.dead_letters
    if commit is None or pending is None:
        return 0
    base = letters.base()
    if base.standing.attempt != pending.after:
        return 0  # they are there
    own = Commit(batch=commit.batch, attempt=commit.attempt, topics=commit.topics)
    try:
        letters.append(files_at(base.table, pending.files), own, base.standing)
    except IngestConflictError:
        if letters.base().standing.attempt == pending.after:
            raise
        return 0  # by another run
    return pending.records
