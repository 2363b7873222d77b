"""The Spark code of the console runs, reads the offsets, and tests key and value."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from bucketlog.console.copied_code import SearchedRange, copied_code
from bucketlog.log_format.records import DecodedRecord
from tests.rigs.written_log import START_MS, some_records
from tests.spark.conftest import Stored

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("key_part", "value_part", "expected"),
    [
        (b"", b"", [*range(4, 31)]),
        (b"key-3", b"", [8, 13, 18, 23, 28]),
        (b"", b"\xff'\\", [30]),
        (b"\x00", b"\xff", [30]),
    ],
)
def test_the_code_finds_the_records(
    spark: SparkSession, stored: Stored, key_part: bytes, value_part: bytes, expected: list[int]
) -> None:
    log = stored.log
    log.create_topic("--to", 2)
    log.append("--to", 1, some_records(30))
    log.append("--to", 1, [DecodedRecord(0, START_MS, b"a\x00", b"\xff'\\\n", ())])
    log.flush()
    found = SearchedRange(stored.url, "--to", 1, 4, 31, None, key_part, value_part)
    names: dict[str, Any] = {}
    exec(compile(copied_code(found).spark, "spark", "exec"), names)
    assert sorted(row["offset"] for row in names["records"].collect()) == expected
