"""Records become rows or dead letters, by the rule for bad records."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_reader.tables.rows import DEAD_LETTERS, RowMaker, RowShape

FIELDS = pa.schema([("id", pa.string()), ("amount", pa.float64())])
AT = datetime(1969, 12, 31, 23, 59, tzinfo=UTC)
VALUES = [b'{"id": "a"}', b"{", None, b'{"id": "b", "amount": "much"}', b"{}"]
RECORDS = pa.record_batch(
    {
        "key": [b"k"] * 5,
        "value": pa.array(VALUES, pa.binary()),
        "topic": ["orders"] * 5,
        "partition": pa.array([3] * 5, pa.int32()),
        "offset": pa.array(range(10, 15), pa.int64()),
        "timestamp": pa.array([AT] * 5, pa.timestamp("us", tz="UTC")),
    }
)


def test_dead_letters_have_place_bytes_and_reason() -> None:
    made = RowMaker(RowShape(FIELDS, bad_records="dead-letter")).rows(RECORDS)
    assert made.rows.column("_log_offset").to_pylist() == [10, 12, 14]
    assert made.rows.column("id").to_pylist() == ["a", None, None]
    assert made.rows.column("_log_tombstone").to_pylist() == [False, True, False]
    assert made.rows.column("day").to_pylist() == [date(1969, 12, 31)] * 3
    assert made.dead.schema == DEAD_LETTERS
    first, second = made.dead.to_pylist()
    assert first["value"] == VALUES[1]
    assert first["reason"].startswith("the value is not JSON")
    assert (second["_log_topic"], second["_log_partition"], second["_log_offset"]) == (
        "orders",
        3,
        13,
    )
    assert second["reason"] == "amount: a number is expected, not a string"
    assert (second["_log_key"], second["_log_timestamp"]) == (b"k", AT)


def test_null_keeps_the_fields_that_fit() -> None:
    made = RowMaker(RowShape(FIELDS, bad_records="null")).rows(RECORDS)
    assert made.rows.column("_log_offset").to_pylist() == [10, 11, 12, 13, 14]
    assert made.rows.column("id").to_pylist() == ["a", None, None, "b", None]
    assert made.dead.num_rows == 0


def test_fail_names_the_record() -> None:
    with pytest.raises(
        InvalidDataError, match=r"'orders' partition 3 offset 11: the value is not JSON.*: '\{'"
    ):
        RowMaker(RowShape(FIELDS)).rows(RECORDS)


FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Of the years 1 to 9999."""


def records_at(times_us: list[int]) -> pa.RecordBatch:
    times = pa.array(times_us, pa.int64()).view(pa.timestamp("us", tz="UTC"))
    return RECORDS.slice(0, len(times_us)).set_column(5, "timestamp", times)


def test_a_timestamp_that_no_calendar_has() -> None:
    records = records_at([FIRST_US, FIRST_US - 1, LAST_US + 1, LAST_US, 2**63 - 1])
    records = records.set_column(1, "value", pa.array([b"{}", b"{}", None, b"{}", b"{"]))
    made = RowMaker(RowShape(FIELDS, bad_records="dead-letter")).rows(records)
    assert made.rows.column("_log_offset").to_pylist() == [10, 13]
    assert made.rows.column("day").to_pylist() == [date.min, date.max]
    assert made.dead.column("_log_offset").to_pylist() == [11, 12, 14]
    assert made.dead.column("_log_timestamp").to_pylist() == [None, None, None]
    first, second, third = made.dead.column("reason").to_pylist()
    assert first == (
        f"the timestamp of the record, {FIRST_US - 1} microseconds after 1970, is outside the "
        "years 1 to 9999"
    )
    assert str(LAST_US + 1) in second
    assert third.startswith("the value is not JSON")
    made = RowMaker(RowShape(FIELDS, bad_records="null")).rows(records)
    assert made.rows.column("day").to_pylist() == [date.min, None, None, date.max, None]
    with pytest.raises(InvalidDataError, match="offset 12: the timestamp of the record"):
        RowMaker(RowShape(FIELDS)).rows(records.slice(2, 1))


def test_the_day_of_a_field() -> None:
    kinds = [("at", pa.timestamp("us", tz="UTC")), ("on", pa.date32())]
    text = b'{"at": "2024-02-29T23:59:59.999999", "on": "2024-03-01"}'
    records = RECORDS.slice(0, 1).set_column(1, "value", pa.array([text], pa.binary()))
    for name, expected in (("at", date(2024, 2, 29)), ("on", date(2024, 3, 1))):
        made = RowMaker(RowShape(pa.schema(kinds), day_from=name)).rows(records)
        assert made.rows.column("day").to_pylist() == [expected]


@pytest.mark.parametrize(
    ("fields", "day_from", "message"),
    [
        ([("_LOG_OFFSET", pa.int64())], None, "'_LOG_OFFSET' twice, or"),
        ([("id", pa.string()), ("Id", pa.string())], None, "'Id' twice, or"),
        ([("id", pa.string())], "id", "no day can be made of 'id'"),
        ([("id", pa.string())], "at", "no day can be made of 'at'"),
        ([("id", pa.duration("s"))], None, "which is not supported"),
    ],
)
def test_a_shape_that_is_refused(
    fields: list[tuple[str, pa.DataType]], day_from: str | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        RowShape(pa.schema(fields), day_from)
