"""`readStream.format("bucketlog")` on a real Spark: restarts, limits, losses."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.rigs.patience import PATIENCE_S
from tests.rigs.written_log import some_records
from tests.spark.conftest import Stored

pytestmark = pytest.mark.long


@pytest.fixture
def orders(stored: Stored) -> Stored:
    stored.log.create_topic("orders", 2)
    write(stored, 20)
    return stored


def write(stored: Stored, count: int) -> None:
    for partition in (0, 1):
        stored.log.append("orders", partition, some_records(count))
    stored.log.flush()


class Sink:
    """What reached the sink, batch by batch; a batch that is run again replaces itself."""

    def __init__(self, spark: SparkSession, stored: Stored, checkpoint: Path) -> None:
        self._spark = spark
        self._stored = stored
        self._checkpoint = str(checkpoint)
        self.batches: dict[int, list[tuple[int, int]]] = {}

    def _take(self, frame: DataFrame, number: int) -> None:
        rows = frame.select("partition", "offset").collect()
        self.batches[number] = [(row["partition"], row["offset"]) for row in rows]

    def run(self, **options: Any) -> None:
        """All that is there now."""
        options = {"subscribe": "orders", "startingOffsets": "earliest", **options}
        frame = self._spark.readStream.format("bucketlog").options(**options).load(self._stored.url)
        query = (
            frame.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(round(PATIENCE_S))

    def seen(self) -> Counter[tuple[int, int]]:
        return Counter(row for rows in self.batches.values() for row in rows)


def test_restarts_go_on_where_the_checkpoint_is(
    spark: SparkSession, orders: Stored, tmp_path: Path
) -> None:
    sink = Sink(spark, orders, tmp_path / "checkpoint")
    for count in (20, 30, 50):
        sink.run()
        assert sink.seen() == Counter((part, at) for part in (0, 1) for at in range(count))
        sink.run()  # nothing new
        write(orders, {20: 10, 30: 20, 50: 1}[count])
    assert all(
        [at for part, at in rows if part == 0] == sorted(at for part, at in rows if part == 0)
        for rows in sink.batches.values()
    )


def test_a_query_of_sparks_kafka_source_continues_here(
    spark: SparkSession, orders: Stored, tmp_path: Path
) -> None:
    Sink(spark, orders, tmp_path / "checkpoint").run()
    written = tmp_path / "checkpoint/offsets/0"
    ours = written.read_text().splitlines()
    written.write_text("\n".join([*ours[:-1], '{"orders":{"0":20,"1":15}}']))
    (tmp_path / "checkpoint/offsets/.0.crc").unlink()
    write(orders, 3)
    sink = Sink(spark, orders, tmp_path / "checkpoint")
    sink.run()
    expected = [(0, at) for at in range(20, 23)] + [(1, at) for at in range(15, 23)]
    assert sink.seen() == Counter(expected)
    sink.run()
    assert sink.seen() == Counter(expected)


def test_a_limit_cuts_what_waits_into_batches(
    spark: SparkSession, orders: Stored, tmp_path: Path
) -> None:
    batches: dict[int, int] = {}

    def take(frame: DataFrame, number: int) -> None:
        batches[number] = frame.count()

    frame = (
        spark.readStream.format("bucketlog")
        .options(subscribe="orders", startingOffsets="earliest", maxOffsetsPerTrigger="10")
        .load(orders.url)
    )
    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.processAllAvailable()
    query.stop()
    assert list(batches.values()) == [10, 10, 10, 10]


def test_a_checkpoint_of_another_log_ends_the_query(
    spark: SparkSession, orders: Stored, tmp_path: Path
) -> None:
    Sink(spark, orders, tmp_path / "checkpoint").run()
    orders.log.delete_topic("orders")
    orders.log.create_topic("orders", 2)
    write(orders, 1)
    with pytest.raises(PySparkException, match="deleted and created again"):
        Sink(spark, orders, tmp_path / "checkpoint").run()
    Sink(spark, orders, tmp_path / "checkpoint").run(failOnDataLoss="false")


def test_an_option_that_ends_a_batch_read_is_refused(spark: SparkSession, orders: Stored) -> None:
    frame = (
        spark.readStream.format("bucketlog")
        .options(subscribe="orders", endingOffsets="latest")
        .load(orders.url)
    )
    with pytest.raises(PySparkException, match="a streaming read has no end"):
        frame.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination(
            round(PATIENCE_S)
        )
