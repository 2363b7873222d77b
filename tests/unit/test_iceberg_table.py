"""Commits to an Iceberg table under other writers: each batch once, deleted rows stay deleted."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.snapshots import Operation

from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_reader.tables.iceberg_files import TableFiles, packed_file, unpacked_file
from bucketlog.log_reader.tables.iceberg_schema import prepared_table
from bucketlog.log_reader.tables.iceberg_table import COMMIT_TRIES_MAX, PROPERTY, IcebergTable
from bucketlog.log_reader.tables.progress import (
    Commit,
    CommitContentionError,
    IngestConflictError,
    TargetState,
    TopicEnds,
)

ROWS = 3
BATCHES = 12
WRITERS = 3
SCHEMA = pa.schema([("offset", pa.int64()), ("writer", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    made = SqlCatalog(
        "lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    made.create_namespace("db")
    made.create_table("db.orders", SCHEMA)
    return made


class Ingest:
    """What an ingest commits: batch n has the offsets from 3 n - 3 on."""

    def __init__(self, catalog: SqlCatalog, name: str) -> None:
        self._catalog = catalog
        self.name = name
        self.conflicts = 0
        self.attempts = 0
        self.table = IcebergTable("lake.db.orders", self.load)

    def load(self) -> Table:
        return self._catalog.load_table("db.orders")

    def files(self, batch: int) -> list[DataFile]:
        offsets = range((batch - 1) * ROWS, batch * ROWS)
        rows = pa.record_batch({"offset": list(offsets), "writer": [self.name] * ROWS})
        writer = TableFiles.of(self.load()).writer()
        writer.add(rows)
        return [unpacked_file(packed_file(file)) for file in writer.finish()]

    def batch(self, standing: TargetState | None = None) -> int:
        """Commit the batch after `standing`, by default after the table's last batch."""
        standing = standing or self.table.base().standing
        batch = standing.next_batch
        self.attempts += 1
        commit = Commit(
            batch=batch,
            attempt=f"{self.name}-{self.attempts}",
            topics={"orders": TopicEnds(topic_id="id", ends={0: batch * ROWS})},
        )
        after = self.table.append(self.files(batch), commit, standing)
        assert after.topics["orders"].ends == {0: batch * ROWS}
        return batch

    def run(self) -> list[int]:
        """Until all batches are committed, by whomever; the batches of this one."""
        mine: list[int] = []
        while (standing := self.table.base().standing).next_batch <= BATCHES:
            try:
                mine.append(self.batch(standing))
            except (IngestConflictError, CommitContentionError):
                self.conflicts += 1
        return mine


def offsets(catalog: SqlCatalog) -> list[int]:
    found: Sequence[int] = catalog.load_table("db.orders").scan().to_arrow()["offset"].to_pylist()
    return sorted(found)


def test_another_ingest_makes_the_namespace_and_the_table_first(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = catalog.namespace_exists

    def exists(namespace: Any) -> bool:
        monkeypatch.setattr(catalog, "namespace_exists", looked)
        found = looked(namespace)
        catalog.create_namespace(namespace)
        catalog.create_table("new.orders", SCHEMA)
        return found

    monkeypatch.setattr(catalog, "namespace_exists", exists)
    table = prepared_table(catalog, "new.orders", SCHEMA, partition_by=None)
    assert table.schema().column_names == SCHEMA.names


def test_of_many_ingests_each_batch_is_committed_once(catalog: SqlCatalog) -> None:
    """Others write to the table meanwhile: snapshots that are not of an ingest."""
    ingests = [Ingest(catalog, f"writer-{number}") for number in range(WRITERS)]
    ingests[0].batch()
    done = Event()

    def others() -> int:
        appended = 0
        while not done.is_set():
            rows = pa.table({"offset": [-1], "writer": ["others"]}, SCHEMA)
            try:
                catalog.load_table("db.orders").append(rows)
            except CommitFailedException:
                continue
            appended += 1
        return appended

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        other = pool.submit(others)
        try:
            shares = list(pool.map(Ingest.run, ingests))
        finally:
            done.set()
        expected = Counter(range(BATCHES * ROWS)) + Counter({-1: other.result()})
    assert sorted(batch for share in shares for batch in share) == list(range(2, BATCHES + 1))
    assert Counter(offsets(catalog)) == expected


def test_tries_that_others_win_are_no_conflict(catalog: SqlCatalog) -> None:
    """Nothing is committed then, and the same ingest can commit the batch later."""
    ingest = Ingest(catalog, "one")
    ingest.batch()
    standing = ingest.table.base().standing
    others = pa.table({"offset": [-1], "writer": ["others"]}, SCHEMA)
    pauses_s: list[float] = []

    def behind() -> Table:
        table = ingest.load()
        ingest.load().append(others)
        return table

    contended = IcebergTable("lake.db.orders", behind, random=Random(0), sleep=pauses_s.append)
    commit = Commit(batch=2, attempt="late", topics={})
    with pytest.raises(CommitContentionError, match=f"each of {COMMIT_TRIES_MAX} tries"):
        contended.append(ingest.files(2), commit, standing)
    assert len(pauses_s) == COMMIT_TRIES_MAX - 1
    assert 0 < pauses_s[0] <= 0.05
    assert pauses_s[-1] >= 1
    assert ingest.table.base().standing == standing
    assert ingest.batch() == 2


def test_a_commit_that_another_one_follows_at_once_is_no_conflict(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other ingest commits batch 2 before the catalog's answer about batch 1 arrives."""
    first, second = Ingest(catalog, "first"), Ingest(catalog, "second")
    accept = catalog.commit_table
    others: list[int] = []

    def followed(*of: Any) -> CommitTableResponse:
        answer = accept(*of)
        monkeypatch.setattr(catalog, "commit_table", accept)
        others.append(second.batch())
        return answer

    monkeypatch.setattr(catalog, "commit_table", followed)
    commit = Commit(batch=1, attempt="first", topics={})
    standing = first.table.append(first.files(1), commit, first.table.base().standing)
    assert standing.commit == commit
    assert others == [2]
    late = Commit(batch=2, attempt="late", topics={})
    with pytest.raises(IngestConflictError, match="batch 2"):
        first.table.append(first.files(2), late, standing)
    assert offsets(catalog) == list(range(6))


def test_deletes_and_expiry_leave_the_offsets(catalog: SqlCatalog) -> None:
    ingest = Ingest(catalog, "one")
    ingest.batch()
    ingest.batch()
    table = ingest.load()
    table.delete("offset >= 2")
    table.delete("offset >= 0")
    for snapshot in table.metadata.snapshots[:-1]:
        table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    assert len(ingest.load().metadata.snapshots) == 1
    assert ingest.batch() == 3
    assert offsets(catalog) == [6, 7, 8]
    last = ingest.load().current_snapshot()
    assert last is not None
    assert last.summary is not None
    assert last.summary.operation is Operation.APPEND


def test_a_rollback_takes_the_offsets_back(catalog: SqlCatalog) -> None:
    ingest = Ingest(catalog, "one")
    ingest.batch()
    first = ingest.load().metadata.current_snapshot_id
    ingest.batch()
    assert first is not None
    ingest.load().manage_snapshots().rollback_to_snapshot(first).commit()
    assert ingest.batch() == 2
    assert offsets(catalog) == list(range(6))


def test_offsets_that_do_not_parse(catalog: SqlCatalog) -> None:
    with catalog.load_table("db.orders").transaction() as transaction:
        transaction.set_properties({PROPERTY: "{}"})
    with pytest.raises(CorruptObjectError, match="is not the commit of an ingest"):
        Ingest(catalog, "one").batch()
