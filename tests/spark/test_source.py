"""`format("bucketlog")` on a real Spark: what was written comes back, and damage is named."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.records import DecodedRecord, Header
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import START_MS, some_records
from tests.spark.conftest import Stored

pytestmark = pytest.mark.long

FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"

KAFKA_COLUMNS = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
    "timestamp:timestamp,timestampType:int>"
)
"""Of Spark's own Kafka source (KafkaRecordToRowConverter)."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@pytest.fixture
def orders(stored: Stored) -> Stored:
    """Topics `orders` (3 partitions, all codecs, a void reservation) and `refunds`."""
    log = stored.log
    log.create_topic("orders", 3)
    log.create_topic("refunds", 1)
    log.create_topic("silence", 2)
    for number, codec in enumerate([*Codec, *Codec]):
        for partition in range(3):
            tag = f"{partition}/{number}"
            written = log.append(
                "orders", partition, some_records(20, tag=tag, headers=True), codec=codec
            )
            stored.records.setdefault(("orders", partition), []).extend(written)
        if number == 4:
            log.marker("orders", 1)
        if number == 6:
            other = log.register()
            lost = log.reserve(other)
            for partition in range(3):
                del stored.records["orders", partition][-20:]
            log.void(lost)
            continue
        written = log.append(
            "refunds", 0, some_records(3, tag=str(number)), append_time_ms=START_MS - number
        )
        stored.records.setdefault(("refunds", 0), []).extend(written)
        log.flush()
    return stored


def as_records(rows: Iterable[Row]) -> dict[tuple[str, int], list[DecodedRecord]]:
    found: dict[tuple[str, int], list[DecodedRecord]] = {}
    for row in sorted(rows, key=lambda row: row["offset"]):
        milliseconds = (row["timestamp"] - EPOCH) // timedelta(milliseconds=1)
        headers = tuple(
            Header(header["key"], plain(header["value"])) for header in row["headers"] or ()
        )
        found.setdefault((row["topic"], row["partition"]), []).append(
            DecodedRecord(
                row["offset"], milliseconds, plain(row["key"]), plain(row["value"]), headers
            )
        )
    return found


def plain(data: bytes | bytearray | None) -> bytes | None:
    return None if data is None else bytes(data)


def offsets(frame: DataFrame) -> list[tuple[str, int, int]]:
    rows = frame.select("topic", "partition", "offset").collect()
    return sorted((row["topic"], row["partition"], row["offset"]) for row in rows)


def test_the_columns_are_those_of_sparks_kafka_source(spark: SparkSession, orders: Stored) -> None:
    frame = orders.load(spark, subscribe="orders")
    assert frame.schema.simpleString() == KAFKA_COLUMNS
    frame = orders.load(spark, subscribe="orders", includeHeaders="true")
    assert frame.schema.simpleString() == (
        KAFKA_COLUMNS[:-1] + ",headers:array<struct<key:string,value:binary>>>"
    )


def test_every_record_comes_back_as_it_was_written(spark: SparkSession, orders: Stored) -> None:
    frame = orders.load(spark, subscribe="orders, refunds", includeHeaders="true")
    rows = frame.collect()
    assert as_records(rows) == orders.records
    assert len(rows) == 3 * 9 * 20 + 9 * 3
    kinds = {(row["topic"], row["timestampType"]) for row in rows}
    assert kinds == {("orders", 0), ("refunds", 1)}
    assert all(row["headers"] is None or len(row["headers"]) == 2 for row in rows)


def test_a_checkpoint_does_not_show(spark: SparkSession, orders: Stored) -> None:
    made = write_checkpoint(orders.log.bucket)
    assert made.segments == 8
    rows = orders.load(spark, subscribe="orders, refunds", includeHeaders="true").collect()
    assert as_records(rows) == orders.records


@pytest.mark.parametrize("tasks", [1, 2, 7, 1000])
def test_any_number_of_tasks_reads_each_record_once(
    spark: SparkSession, orders: Stored, tasks: int
) -> None:
    frame = orders.load(spark, subscribe="orders", includeHeaders="true", minPartitions=str(tasks))
    expected = {key: records for key, records in orders.records.items() if key[0] == "orders"}
    rows = frame.collect()
    assert len(rows) == sum(map(len, expected.values()))
    assert as_records(rows) == expected
    batches = 3 * 9 + 1
    assert min(tasks, 2) <= frame.rdd.getNumPartitions() <= min(tasks, batches)


def test_a_partition_is_in_order_within_and_over_tasks(spark: SparkSession, orders: Stored) -> None:
    rows = orders.load(spark, subscribe="orders", minPartitions="5").collect()
    for partition in range(3):
        mine = [row["offset"] for row in rows if row["partition"] == partition]
        assert mine == sorted(mine)


def test_a_schema_chooses_and_orders_columns(spark: SparkSession, orders: Stored) -> None:
    reader = spark.read.format("bucketlog").option("subscribe", "refunds")
    rows = reader.schema("offset bigint, value binary").load(orders.url).collect()
    assert rows[0].asDict() == {"offset": 0, "value": orders.records["refunds", 0][0].value}
    assert len(rows) == 27
    with pytest.raises(PySparkException, match=r"offset int.*choose among"):
        reader.schema("offset int").load(orders.url).collect()


def test_subscribe_pattern_and_assign(spark: SparkSession, orders: Stored) -> None:
    frame = orders.load(spark, subscribePattern="re.*|silence")
    assert {topic for topic, _, _ in offsets(frame)} == {"refunds"}
    frame = orders.load(spark, assign='{"orders":[2,0],"refunds":[0]}')
    assert {row[:2] for row in offsets(frame)} == {("orders", 0), ("orders", 2), ("refunds", 0)}


def test_offsets_cut_batches_where_they_must(spark: SparkSession, orders: Stored) -> None:
    frame = orders.load(
        spark,
        assign='{"orders":[0,1]}',
        startingOffsets='{"orders":{"0":7,"1":-2}}',
        endingOffsets='{"orders":{"0":41,"1":21}}',
    )
    assert offsets(frame) == [("orders", 0, at) for at in range(7, 41)] + [
        ("orders", 1, at) for at in range(21)
    ]


def test_a_topic_without_records_is_an_empty_table(spark: SparkSession, orders: Stored) -> None:
    assert orders.load(spark, subscribe="silence").collect() == []


def test_counts_and_limits(spark: SparkSession, orders: Stored) -> None:
    frame = orders.load(spark, subscribe="orders")
    assert frame.count() == 540
    assert len(frame.limit(3).collect()) == 3
    grouped = {
        row["partition"]: row["count"] for row in frame.groupBy("partition").count().collect()
    }
    assert grouped == {0: 180, 1: 180, 2: 180}


def test_options_of_kafkas_clients_have_no_effect(spark: SparkSession, orders: Stored) -> None:
    given = {"kafka.bootstrap.servers": "x:1", "kafka.fetch.max.bytes": "1"}
    assert orders.load(spark, subscribe="orders", **given).count() == 540


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nothing"}, "no topic 'nothing' in the bucket.*orders"),
        ({"subscribe": "orders", "subscribed": "x"}, "unknown option 'subscribed'"),
        ({"subscribePattern": "orders|[a"}, "subscribePattern"),
        ({"subscribe": "orders", "assign": "{}"}, "exactly one of"),
        (
            {"subscribe": "refunds", "endingOffsets": '{"refunds":{"0":99}}'},
            "offsets 0 to 99 of refunds-0 cannot be read: the bucket holds 0 to 27",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(
    spark: SparkSession, orders: Stored, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=f"(?s){message}"):
        orders.load(spark, **options).collect()


def test_a_damaged_batch_is_named(spark: SparkSession, stored: Stored) -> None:
    stored.log.create_topic("orders", 2)
    for partition in (0, 1, 1):
        stored.log.append("orders", partition, some_records(10))
    segment = stored.log.flush()
    row = segment.index.partitions[1].batches[1]
    path = stored.object_path(segment.key)
    damaged = bytearray(segment.data)
    damaged[row.position + row.length - 1] ^= 1
    path.unlink()
    path.write_bytes(damaged)
    with pytest.raises(PySparkException) as caught:
        stored.load(spark, subscribe="orders").collect()
    for words in (segment.key, "CRC", "topic 'orders' partition 1 offsets 10 to 19"):
        assert words in str(caught.value)
    whole = stored.load(
        spark, subscribe="orders", endingOffsets='{"orders":{"0":10,"1":10}}'
    ).count()
    assert whole == 20


def test_a_log_that_lost_an_object_is_named(spark: SparkSession, stored: Stored) -> None:
    stored.log.create_topic("orders")
    stored.log.flush()
    other = stored.log.register()
    for writer in (other, other, None):
        stored.log.append("orders", 0, some_records(10))
        stored.log.flush(writer)
    lost = next(stored.object_path(f"log/{other}/").glob("*0"))
    lost.unlink()
    with pytest.raises(PySparkException, match=f"{lost.name}.*missing"):
        stored.load(spark, subscribe="orders").collect()


def test_a_frame_that_is_filtered_twice_loses_nothing(spark: SparkSession, orders: Stored) -> None:
    """Where Spark pushes filters down, it mixes up those of one frame: we take none."""
    before = spark.conf.get(FILTER_PUSHDOWN)
    spark.conf.set(FILTER_PUSHDOWN, "true")
    try:
        frame = orders.load(spark, subscribe="orders")
        parts = [frame.filter(frame["partition"] == number) for number in range(3)]
        total = len(offsets(frame))
        assert offsets(parts[0].union(parts[1]).union(parts[2])) == offsets(frame)
        assert frame.count() == total
    finally:
        spark.conf.set(FILTER_PUSHDOWN, str(before))
