"""Records become rows of a table, or dead letters. Spark-free.

Invariants: each record becomes one row or one dead letter. A record without a value (a tombstone)
is a row without fields, marked by `_log_tombstone`. In a batch of changes, an event that deletes a
row is such a row, with the fields of the key. The decision about a dead letter depends only
on the record's value and timestamp, the fields and the rules. So every attempt of a task decides in
the same way. A timestamp outside the years 1 to 9999 makes a dead letter, too, and is null wherever
the record is kept. Producers that write microseconds as milliseconds make such timestamps.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bucketlog.log_format.arrow_building import number_array, replaced
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.json_values.compiled_values import ParsedValues
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.log_reader.tables.change_rule import ChangeRule
from bucketlog.log_reader.tables.compiled_columns import PROCESS, CompiledColumns
from bucketlog.log_reader.tables.conversions import Convert, TimeRules, nullable
from bucketlog.log_reader.tables.json_text import BadValueError, shortened
from bucketlog.log_reader.tables.value_format import JSON_VALUES, RowDeletion, ValueFormat

BadRecords: TypeAlias = Literal["fail", "dead-letter", "null"]
SOURCE_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
"""Columns of the log that rows are made of."""
TOMBSTONE = "_log_tombstone"
DAY = "day"
BATCH = "_ingest_batch"
"""A column that only Iceberg tables have."""
_MOMENT = pa.timestamp("us", tz="UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""The last microsecond of the years 1 to 9999, which the calendars of all engines have."""
LINEAGE = pa.schema(
    [
        ("_log_topic", pa.string()),
        ("_log_partition", pa.int32()),
        ("_log_offset", pa.int64()),
        ("_log_timestamp", _MOMENT),
        ("_log_key", pa.binary()),
    ]
)
"""Columns that every row has; without `_log_`, they are the names of the log's columns."""
DEAD_LETTERS = pa.schema(
    [*LINEAGE, pa.field("value", pa.binary()), pa.field("reason", pa.string())]
)
"""The columns of dead letters, without `BATCH`."""
_NO_DEAD_LETTERS = pa.RecordBatch.from_arrays(
    [pa.nulls(0, each.type) for each in DEAD_LETTERS], schema=DEAD_LETTERS
)
_REMEDY = (
    "give a schema and rules that all values fit, or --bad-records dead-letter; nothing of this "
    "batch was committed"
)


@dataclass(frozen=True, slots=True)
class RowShape:
    """`day_from`: the field whose day partitions the rows; None is the record's timestamp.
    `bad_records` is the rule for values that do not fit: such a value ends the run, becomes a dead
    letter, or becomes a row. In this row, fields that do not fit are null. `values`: the format of
    the values. `changes`: the rule of a table with the current state of keys."""

    fields: pa.Schema
    day_from: str | None = None
    times: TimeRules = field(default_factory=TimeRules)
    bad_records: BadRecords = "fail"
    values: ValueFormat = JSON_VALUES
    changes: ChangeRule | None = None

    def __post_init__(self) -> None:
        """Raises `ConfigurationError`."""
        taken = {name.lower() for name in (*LINEAGE.names, TOMBSTONE, DAY, BATCH)}
        for each in self.fields:
            if each.name.lower() in taken:
                raise ConfigurationError(
                    f"the schema has {each.name!r} twice, or ingest has a column of that name",
                    remedy="leave it out, or produce it under another name",
                )
            taken.add(each.name.lower())
            self.values.converter(each.type, each.name, self.times)
        if self.changes is not None:
            self.changes.check(self.fields)
            if self.bad_records == "null":
                raise ConfigurationError(
                    "--bad-records null would replace the current row of a key by a row of nulls",
                    remedy="use --bad-records dead-letter or fail, or --changes append",
                )
        if self.day_from is None:
            return
        kinds = {each.name: each.type for each in self.fields}
        kind = kinds.get(self.day_from)
        if kind is None or not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise ConfigurationError(
                f"no day can be made of {self.day_from!r}",
                remedy="name a field of the schema that is a timestamp or a date",
            )

    @property
    def columns(self) -> pa.Schema:
        """Columns of each row, without `BATCH`."""
        last = [pa.field(TOMBSTONE, pa.bool_()), pa.field(DAY, pa.date32())]
        return pa.schema([*self.fields, *LINEAGE, *last])


class MadeRows(NamedTuple):
    """`rows` have the columns of the shape, `dead` those of `DEAD_LETTERS`."""

    rows: pa.RecordBatch
    dead: pa.RecordBatch


class RowMaker:
    """Makes rows of one shape, with compiled code if `choice` says so. Compiled code converts only
    JSON values. Rows that the compiled code marks as doubtful are converted one by one."""

    def __init__(self, shape: RowShape, choice: DecoderChoice = PROCESS) -> None:
        self._shape = shape
        self._choice = choice
        self._read = shape.values.reader()
        is_json = shape.values == JSON_VALUES
        self._compiled = CompiledColumns.of(shape.fields, shape.times) if is_json else None
        self._members: list[tuple[str, Convert]] = [
            (each.name, nullable(shape.values.converter(each.type, each.name, shape.times)))
            for each in shape.fields
        ]

    def rows(self, records: pa.RecordBatch) -> MadeRows:
        """`records` have `SOURCE_COLUMNS`. Raises `InvalidDataError` for the first value that does
        not fit, if the shape says so."""
        records, untimely = _with_calendar_times(records)
        values = records.column("value")
        sure = self._compiled.columns(values, self._choice) if self._compiled else None
        doubtful = _doubtful(sure, untimely, len(values))
        columns: list[list[Any]] = [[] for _ in self._members]
        reasons: dict[int, str] = {}
        deletions: list[int] = []
        doubted = values if sure is None else values.take(number_array(doubtful))
        for at, value in zip(doubtful.tolist(), doubted.to_pylist(), strict=True):
            row, reason, is_deletion = self._converted(value)
            reason = reason or untimely.get(at)
            if reason is not None:
                if self._shape.bad_records == "fail":
                    raise self._failure(records, at, reason)
                reasons[at] = reason
            if is_deletion:
                deletions.append(at)
            for column, one in zip(columns, row, strict=True):
                column.append(one)
        typed = self._typed(columns, sure, doubtful)
        tombstones = _tombstones(values, deletions)
        rows = self._with_day([*typed, *_lineage(records), tombstones])
        self._refuse_keyless(records, rows, tombstones, reasons)
        if not reasons or self._shape.bad_records == "null":
            return MadeRows(rows, _dead_letters(records, {}))
        fitting = [at not in reasons for at in range(records.num_rows)]
        return MadeRows(rows.filter(pa.array(fitting)), _dead_letters(records, reasons))

    def _refuse_keyless(
        self,
        records: pa.RecordBatch,
        rows: pa.RecordBatch,
        tombstones: pa.Array,
        reasons: dict[int, str],
    ) -> None:
        """Add reasons for rows that have no key in a table of changes."""
        if self._shape.changes is None:
            return
        for at, reason in self._shape.changes.keyless(rows, tombstones).items():
            if self._shape.bad_records == "fail":
                raise self._failure(records, at, reason)
            reasons.setdefault(at, reason)

    def _typed(
        self, converted: list[list[Any]], sure: ParsedValues | None, doubtful: NDArray[np.int64]
    ) -> list[pa.Array]:
        """Return the columns of the compiled code. The rows `doubtful` have the values that were
        converted one by one."""
        if sure is not None and not len(doubtful):
            return sure.columns
        made = [
            pa.array(column, each.type)
            for column, each in zip(converted, self._shape.fields, strict=True)
        ]
        if sure is None:
            return made
        both = zip(sure.columns, made, strict=True)
        return [replaced(fast, doubtful, better) for fast, better in both]

    def _converted(self, value: bytes | None) -> tuple[Sequence[Any], str | None, bool]:
        """Return the fields, the reason of a dead letter, and whether the value deletes a row."""
        blank = [None] * len(self._members)
        if value is None:
            return blank, None, False
        try:
            found = self._read(value)
        except BadValueError as error:
            return blank, error.message, False
        is_deletion = isinstance(found, RowDeletion)
        try:
            row = [convert(found.get(name)) for name, convert in self._members]
        except BadValueError as error:
            if self._shape.bad_records != "null":
                return blank, error.message, False
            row = [_or_null(convert, found.get(name)) for name, convert in self._members]
            return row, error.message, False
        return row, None, is_deletion

    def _failure(self, records: pa.RecordBatch, at: int, reason: str) -> InvalidDataError:
        topic, partition, offset = (
            records.column(name)[at].as_py() for name in ("topic", "partition", "offset")
        )
        value: bytes | None = records.column("value")[at].as_py()
        text = (value or b"").decode(errors="replace")
        return InvalidDataError(
            f"topic {topic!r} partition {partition} offset {offset}: {reason}: {shortened(text)!r}",
            remedy=_REMEDY,
        )

    def _with_day(self, columns: list[pa.Array]) -> pa.RecordBatch:
        schema = self._shape.columns
        source = columns[schema.get_field_index(self._shape.day_from or "_log_timestamp")]
        if pa.types.is_timestamp(source.type):
            local = source.cast(pa.timestamp("us"))  # the day in UTC
            source = pc.floor_temporal(local, unit="day").cast(pa.date32())
        return pa.RecordBatch.from_arrays([*columns, source], schema=schema)


def _doubtful(
    sure: ParsedValues | None, untimely: Collection[int], count: int
) -> NDArray[np.int64]:
    """Return the indexes of the rows that are to be converted one by one, in order."""
    if sure is None:
        return np.arange(count, dtype=np.int64)
    sure.doubts[list(untimely)] = True
    return np.flatnonzero(sure.doubts)


def _tombstones(values: pa.Array, deletions: Sequence[int]) -> pa.Array:
    """Return the column `TOMBSTONE`. Values at `deletions` delete a row."""
    is_null = values.is_null()
    if not deletions:
        return is_null
    marks = np.asarray(is_null)
    marks = marks.copy()
    marks[deletions] = True
    return pa.array(marks)


def _or_null(convert: Convert, found: Any) -> Any:
    try:
        return convert(found)
    except BadValueError:
        return None


def _with_calendar_times(records: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, str]]:
    """The records, with null for timestamps outside the years 1 to 9999, and reasons by row."""
    times = records.column("timestamp").cast(_MOMENT)
    numbers = times.view(pa.int64())
    fits = pc.and_(
        pc.greater_equal(numbers, pa.scalar(_FIRST_US)),
        pc.less_equal(numbers, pa.scalar(_LAST_US)),
    )
    reasons = {
        at: f"the timestamp of the record, {numbers[at].as_py()} microseconds after 1970, is "
        "outside the years 1 to 9999"
        for at in pc.indices_nonzero(pc.invert(fits)).to_pylist()
    }
    if not reasons:
        return records, reasons
    kept = pc.if_else(fits, times, pa.scalar(None, _MOMENT))
    at = records.schema.get_field_index("timestamp")
    return records.set_column(at, "timestamp", kept), reasons


def _lineage(records: pa.RecordBatch) -> list[pa.Array]:
    return [records.column(each.name.removeprefix("_log_")).cast(each.type) for each in LINEAGE]


def _dead_letters(records: pa.RecordBatch, reasons: dict[int, str]) -> pa.RecordBatch:
    if not reasons:
        return _NO_DEAD_LETTERS
    chosen = records.take(pa.array(list(reasons), pa.int64()))
    return pa.RecordBatch.from_arrays(
        [*_lineage(chosen), chosen.column("value"), pa.array(list(reasons.values()), pa.string())],
        schema=DEAD_LETTERS,
    )


def numbered(rows: pa.RecordBatch, batch: int) -> pa.RecordBatch:
    """`rows` with the number of their batch as the column `BATCH`."""
    return rows.append_column(BATCH, number_array(np.full(rows.num_rows, batch, np.int64)))
