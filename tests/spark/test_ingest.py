"""Ingest into both kinds of target: each record once, whoever else is at it."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_reader.tables.ingest_loop import IngestedPartition
from bucketlog.log_reader.tables.progress import IngestConflictError
from tests.rigs.written_log import START_MS, some_records
from tests.spark.conftest import Stored
from tests.spark.ingests import Kind, Lake

pytestmark = pytest.mark.long


@pytest.fixture(params=["parquet", "iceberg"])  # tests of what comes before a target take one
def lake(
    request: pytest.FixtureRequest, spark: SparkSession, stored: Stored, tmp_path: Path
) -> Lake:
    kind: Kind = request.param
    if kind == "iceberg":
        request.getfixturevalue("spark_jars")
    stored.log.create_topic("orders", 2)
    return Lake.of(spark, stored, kind, tmp_path)


def test_runs_go_on_where_the_last_one_ended(lake: Lake) -> None:
    lake.produce("orders", 0, 30)
    lake.produce("orders", 1, 5)
    first = lake.ingest(max_batch_offsets=20)
    assert (first.batches, first.records, first.went_on_from) == (2, 35, "nothing")
    assert lake.rows() == lake.produced
    again = lake.ingest()
    assert (again.batches, again.records, again.last_batch) == (0, 0, 2)
    lake.stored.log.add_partitions("orders", 3)
    lake.stored.log.create_topic("refunds")
    for topic, partition in (("orders", 1), ("orders", 2), ("refunds", 0)):
        lake.produce(topic, partition, 4)
    third = lake.ingest(topics="refunds,orders")
    assert (third.batches, third.records, third.went_on_from) == (1, 12, "commit")
    assert third.partitions == (
        IngestedPartition("refunds", 0, 4),
        IngestedPartition("orders", 0, 30),
        IngestedPartition("orders", 1, 9),
        IngestedPartition("orders", 2, 4),
    )
    assert lake.rows() == lake.produced
    assert lake.ingest().batches == 0  # refunds are known still
    assert lake.ingest(topics="refunds").batches == 0


def test_a_row_tells_where_it_came_from(lake: Lake) -> None:
    lake.put("orders", 1, b'{"id": "a", "amount": 1, "more": [1]}', b"{}", None)
    lake.ingest()
    first, second, third = lake.table().orderBy("_log_offset").collect()
    found = first.asDict()
    found.pop("_ingest_batch", None)
    assert found == {
        "id": "a",
        "amount": 1.0,
        "_log_topic": "orders",
        "_log_partition": 1,
        "_log_offset": 0,
        "_log_timestamp": datetime.fromtimestamp(START_MS / 1000, UTC).replace(tzinfo=None),
        "_log_key": bytearray(b"key"),
        "_log_tombstone": False,
        "day": date(2023, 11, 14),
    }
    assert (second["id"], second["_log_tombstone"], second["day"]) == (
        None,
        False,
        date(2023, 11, 15),
    )
    assert (third["id"], third["_log_tombstone"], bytes(third["_log_key"])) == (None, True, b"key")


def test_batches_before_a_bad_value_stay(lake: Lake) -> None:
    lake.produce("orders", 0, 10)
    lake.put("orders", 0, b"bad")
    with pytest.raises(InvalidDataError, match=r"partition 0 offset 10.*'bad'.*nothing of this"):
        lake.ingest(max_batch_offsets=5)
    assert lake.rows() == lake.produced
    with pytest.raises(InvalidDataError, match="partition 0 offset 10"):
        lake.ingest()
    assert lake.rows() == lake.produced


def test_of_two_that_want_a_batch_one_has_it(lake: Lake) -> None:
    lake.produce("orders", 0, 3)
    assert lake.race() == ["3", "INGEST_CONFLICT"]
    assert lake.rows() == lake.produced
    lake.produce("orders", 1, 10)
    assert lake.race() == ["10", "INGEST_CONFLICT"]
    assert lake.rows() == lake.produced


def test_one_who_comes_late_commits_nothing(lake: Lake) -> None:
    """It went on from a commit that has several after it by now."""
    lake.produce("orders", 0, 5)
    lake.ingest()
    late = lake.target()
    write = late.write

    def after_others(*arguments: object) -> object:
        lake.produce("orders", 1, 20)
        assert lake.ingest(max_batch_offsets=10).batches == 3
        return write(*arguments)  # type: ignore[arg-type] # as it was called

    late.write = after_others  # type: ignore[method-assign,assignment] # a long pause
    lake.produce("orders", 0, 10)
    with pytest.raises(IngestConflictError, match="batch 2"):
        lake.ingest(late)
    assert lake.rows() == lake.produced
    assert lake.ingest().batches == 0


def test_stretches_without_records_make_no_commit(lake: Lake) -> None:
    log = lake.stored.log
    lake.produce("orders", 0, 5)
    lake.ingest()
    for _ in range(6):
        log.marker("orders", 1)
    log.append("orders", 1, some_records(10))
    log.void(log.reserve(log.register()))
    log.marker("orders", 0)
    log.flush()
    empty = lake.ingest(max_batch_offsets=4)
    assert (empty.batches, empty.last_batch) == (0, 1)
    lake.produce("orders", 1, 5)
    after = lake.ingest(max_batch_offsets=4)
    assert (after.records, after.partitions[0].end) == (5, 6)
    assert lake.rows() == lake.produced
    assert lake.ingest().batches == 0


@pytest.mark.parametrize("lake", ["parquet"], indirect=True)
def test_a_day_may_come_from_a_field(lake: Lake) -> None:
    lake.put("orders", 0, b'{"at":"2024-02-29T23:59:59.999999"}', b'{"at":"1969-12-31T23:00:00Z"}')
    lake.ingest(schema="at timestamp", day_from="at")
    days = [row["day"] for row in lake.table().orderBy("_log_offset").collect()]
    assert days == [date(2024, 2, 29), date(1969, 12, 31)]


@pytest.mark.parametrize(
    ("schema", "day_from", "message"),
    [
        ("id strin", None, "does not parse"),
        ("_LOG_OFFSET long", None, "'_LOG_OFFSET' twice, or"),
        ("id string, Id string", None, "'Id' twice, or"),
        ("day string", None, "'day' twice, or"),
        ("id string not null", None, "NOT NULL"),
        ("id string", "id", "no day can be made of 'id'"),
        ("id string", "at", "no day can be made of 'at'"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    spark: SparkSession,
    stored: Stored,
    tmp_path: Path,
    schema: str,
    day_from: str | None,
    message: str,
) -> None:
    lake = Lake.of(spark, stored, "parquet", tmp_path)
    with pytest.raises(ConfigurationError, match=message):
        lake.ingest(schema=schema, day_from=day_from)


def test_another_schema_than_the_targets_is_refused(lake: Lake) -> None:
    lake.produce("orders", 0, 5)
    lake.ingest()
    with pytest.raises(ConfigurationError, match="columns"):
        lake.ingest(schema="id string, amount int")


@pytest.mark.parametrize("lake", ["parquet"], indirect=True)
def test_a_topic_that_is_created_again(lake: Lake) -> None:
    lake.produce("orders", 0, 5)
    lake.ingest()
    log = lake.stored.log
    log.delete_topic("orders")
    log.create_topic("orders", 1)
    lake.put("orders", 0, b'{"id":"new"}')
    with pytest.raises(ConfigurationError, match="created again"):
        lake.ingest()
    report = lake.ingest(fail_on_data_loss=False)
    assert (report.records, report.recreated) == (1, ("orders",))
    assert lake.ingest().batches == 0
