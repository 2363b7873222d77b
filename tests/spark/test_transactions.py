"""`isolation.level` on a real Spark: a batch read and a stream."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.patience import PATIENCE_S
from tests.rigs.transactional_log import OPEN_PRODUCER, TOPIC, TransactionalLog

pytestmark = pytest.mark.long


@pytest.fixture
def planted(tmp_path: Path) -> TransactionalLog:
    return TransactionalLog(FileBucket(tmp_path / "bucket" / "0"), seed=3)


def rows_of(frame: DataFrame) -> dict[int, list[tuple[int, bytes]]]:
    found: dict[int, list[tuple[int, bytes]]] = {}
    for row in frame.select("partition", "offset", "value").collect():
        found.setdefault(row["partition"], []).append((row["offset"], bytes(row["value"])))
    return {number: sorted(rows) for number, rows in found.items()}


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_a_batch_read(
    spark: SparkSession, planted: TransactionalLog, tmp_path: Path, level: str
) -> None:
    options = {"subscribe": TOPIC, "isolation.level": level}
    frame = spark.read.format("bucketlog").options(**options).load(f"file://{tmp_path}/bucket")
    assert rows_of(frame) == planted.expected(committed_only=level == "read_committed")


def test_a_stream_waits_for_the_end_of_a_transaction(
    spark: SparkSession, planted: TransactionalLog, tmp_path: Path
) -> None:
    found: dict[int, list[tuple[int, bytes]]] = {}

    def take(frame: DataFrame, number: int) -> None:
        for partition, rows in rows_of(frame).items():
            found.setdefault(partition, []).extend(rows)

    def run() -> None:
        options = {"subscribe": TOPIC, "startingOffsets": "earliest"}
        frame = spark.readStream.format("bucketlog").options(**options)
        writing = frame.load(f"file://{tmp_path}/bucket").writeStream.foreachBatch(take)
        writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writing.trigger(availableNow=True).start().awaitTermination(round(PATIENCE_S))

    run()
    assert found == planted.expected(committed_only=True)
    aborted = {(number, offset) for number, offset, _ in planted.pending[OPEN_PRODUCER]}
    planted.end(OPEN_PRODUCER, commit=False)
    planted.log.flush()
    run()
    committed = planted.expected(committed_only=True)
    for number, part in planted.partitions.items():
        behind = [(at, value) for at, value in part.everything.items() if at >= part.stable_end]
        behind = [row for row in behind if (number, row[0]) not in aborted]
        assert behind
        assert found[number] == [*committed[number], *behind]
