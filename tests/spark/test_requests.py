"""What a query asked of the bucket can be seen: by SQL over Spark's own table of workers' logs."""

import pytest
from pyspark.sql import Row, SparkSession

from bucketlog.log_reader import requests
from bucketlog.log_reader.requests import report_planning
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.written_log import some_records
from tests.spark.conftest import Stored

pytestmark = pytest.mark.long

SEGMENTS = 12
OURS = """
    SELECT split(msg, ' ')[0] AS what, context FROM python_worker_logs()
    WHERE logger = 'bucketlog.spark' AND contains(msg, '{url}')
"""


def test_requests_are_told_in_numbers(spark: SparkSession, stored: Stored) -> None:
    stored.log.create_topic("orders")
    for _ in range(SEGMENTS):
        stored.log.append("orders", 0, some_records(10))
        stored.log.flush()
    spark.conf.set("spark.sql.pyspark.worker.logging.enabled", "true")
    try:
        frame = stored.load(spark, subscribe="orders", minPartitions="3")
        assert len(frame.collect()) == SEGMENTS * 10
        lines = spark.sql(OURS.format(url=stored.url)).collect()
    finally:
        spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")
    (planned,) = [line["context"] for line in lines if line["what"] == "planned"]
    assert (planned["gets"], planned["tasks"]) == (str(SEGMENTS), "3")
    read = [line for line in lines if line["what"] == "read"]
    assert total(read, "gets") == SEGMENTS
    assert total(read, "records") == SEGMENTS * 10
    assert total(read, "bytes") == int(planned["task_bytes"])


def total(lines: list[Row], name: str) -> int:
    return sum(int(line["context"][name]) for line in lines)


def test_planning_is_told_on_standard_error_where_nothing_logs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(requests.logger, "hasHandlers", lambda: False)
    with report_planning(MemoryBucket(), "s3://logs") as planning:
        list(planning.bucket.list(""))
    assert capsys.readouterr().err.startswith(
        "bucketlog: planned s3://logs: gets 0, lists 1, bytes 0, tasks 0, task_bytes 0"
    )
