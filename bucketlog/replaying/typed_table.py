"""A typed topic as a table: the columns of its values, beside where each record is.

    _partition, _offset, _timestamp, _key, then the fields of the value

Invariant: the rows are those that iterating over the records gives, in the same order. A value
that does not decode is the error that iteration raises, whichever of its fields are chosen. A
tombstone is a row without a value.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bucketlog.client.decoding import UnreadableRecordError
from bucketlog.client.formats import Format, JsonFormat, RawFormat, TextFormat
from bucketlog.client.schemas.registered import RegistryFormat
from bucketlog.client.topic import Topic
from bucketlog.log_format.arrow_building import number_array, replaced
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.replaying.column import (
    Column,
    NotPlainError,
    filled,
    same,
    scalar,
    text_array,
)
from bucketlog.replaying.framed_values import unframed
from bucketlog.replaying.json_columns import json_parser

if TYPE_CHECKING:
    from bucketlog.log_reader.decoder_choice import DecoderChoice

Layout = Literal["flat", "struct"]
Part = Literal["key", "value"]

PLACE = {
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_headers": "headers",
}
"""The columns that say where a record is, by name; and those of the log that they are."""
DEFAULT_PLACE = ("_partition", "_offset", "_timestamp", "_key")
ROWS_AT_ONCE = 1_000
"""Rows that are decoded one by one before they become columns."""
KEY, VALUE, TOMBSTONE = "_key", "value", "_tombstone"


@dataclass(frozen=True)
class _Decoder:
    """Decoder of a topic's keys or values into a column."""

    column: Column
    decode: Callable[[bytes], Any]
    fast: Callable[[pa.Array], tuple[pa.Array, pa.Array | None]] | None
    """Raises `NotPlainError`. The second array marks rows to decode one by one."""

    def only(self, names: Collection[str]) -> "_Decoder":
        """Select fields of the values. All fields are decoded and checked."""
        column = self.column.only(names)
        if (fast := self.fast) is None:
            return replace(self, column=column)

        def chosen(values: pa.Array) -> tuple[pa.Array, pa.Array | None]:
            found, doubts = fast(values)
            return column.fields_of(found), doubts

        return _Decoder(column, self.decode, chosen)


class TypedTable:
    """Maker of typed columns from the stored columns of `topic`. `columns` None means the usual
    columns. `choice` decides about compiling a decoder of JSON; None means the process's choice.

    Raises `ConfigurationError` if a type has no columns, or a column does not exist.
    """

    def __init__(
        self,
        topic: Topic[Any, Any],
        layout: Layout,
        columns: Sequence[str] | None,
        choice: "DecoderChoice | None" = None,
    ) -> None:
        from bucketlog.log_reader.decoder_choice import PROCESS

        if layout not in ("flat", "struct"):
            raise ConfigurationError(f"layout {layout!r}", remedy='choose "flat" or "struct"')
        self._topic = topic
        self._key = _decoder(topic.key_format, _column(topic, "key"), choice or PROCESS)
        self._value = _decoder(topic.value_format, _column(topic, "value"), choice or PROCESS)
        self._is_flat = layout == "flat" and bool(self._value.column.fields)
        stored = _stored_types()
        known = {name: stored[source] for name, source in PLACE.items()}
        known[KEY], known[TOMBSTONE] = self._key.column.kind, pa.bool_()
        fields = {VALUE: self._value.column.kind}
        if self._is_flat:
            fields = {field.name: field.column.kind for field in self._value.column.fields}
        if shared := sorted(known.keys() & fields.keys()):
            raise ConfigurationError(
                f"the field {shared[0]} of topic {topic.name!r} has the name of another column",
                remedy='use layout="struct"',
            )
        known |= fields
        check_columns(columns or (), known)
        self.names = tuple(columns) if columns else (*DEFAULT_PLACE, *fields)
        self.schema = pa.schema([pa.field(name, known[name]) for name in self.names])
        chosen = set(self.names) & fields.keys()
        self._has_value = bool(chosen)
        if chosen and len(chosen) < len(fields):
            self._value = self._value.only(chosen)

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """Columns of the log that are needed."""
        wanted = {PLACE[name] for name in self.names if name in PLACE} | {"partition", "offset"}
        if KEY in self.names:
            wanted.add("key")
        if self._has_value or TOMBSTONE in self.names:
            wanted.add("value")
        return tuple(sorted(wanted))

    def typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Raises `UnreadableRecordError`."""
        made: dict[str, pa.Array] = {
            name: batch.column(source) for name, source in PLACE.items() if name in self.names
        }
        if KEY in self.names:
            made[KEY] = self._decoded(self._key, "key", batch)
        if TOMBSTONE in self.names:
            made[TOMBSTONE] = batch.column("value").is_null()
        if self._has_value:
            found = self._decoded(self._value, "value", batch)
            made |= _fields_of(found) if self._is_flat else {VALUE: found}
        return pa.RecordBatch.from_arrays([made[name] for name in self.names], schema=self.schema)

    def _decoded(self, decoder: _Decoder, part: Part, batch: pa.RecordBatch) -> pa.Array:
        stored = batch.column(part)
        if decoder.fast is None:
            return self._one_by_one(decoder, part, batch, stored, range(len(stored)))
        rows = None
        if stored.null_count:
            rows = pc.indices_nonzero(stored.is_valid())
        try:
            found, doubts = decoder.fast(stored if rows is None else stored.take(rows))
        except NotPlainError:
            return self._one_by_one(decoder, part, batch, stored, range(len(stored)))
        if rows is not None:
            found, doubts = _spread(found, rows, len(stored)), _spread(doubts, rows, len(stored))
        if doubts is None or not doubts.true_count:
            return found
        again = pc.indices_nonzero(doubts).to_pylist()
        return replaced(found, again, self._one_by_one(decoder, part, batch, stored, again))

    def _one_by_one(
        self,
        decoder: _Decoder,
        part: Part,
        batch: pa.RecordBatch,
        stored: pa.Array,
        rows: Sequence[int],
    ) -> pa.Array:
        """A few rows at a time: a collection of garbage looks at all values that are kept."""
        made = [
            self._some(decoder, part, batch, stored, rows[at : at + ROWS_AT_ONCE])
            for at in range(0, len(rows), ROWS_AT_ONCE)
        ]
        return pa.concat_arrays(made) if made else filled(decoder.column, [])

    def _some(
        self,
        decoder: _Decoder,
        part: Part,
        batch: pa.RecordBatch,
        stored: pa.Array,
        rows: Sequence[int],
    ) -> pa.Array:
        values = []
        chosen = stored.take(number_array(np.array(rows, np.int64)))
        for row, data in zip(rows, chosen.to_pylist(), strict=True):
            try:
                values.append(None if data is None else decoder.decode(data))
            except InvalidDataError as error:
                raise self._unreadable(batch, row, part, error) from error
        try:
            return filled(decoder.column, values)
        except (ValueError, TypeError, OverflowError):
            for row, value in zip(rows, values, strict=True):
                try:
                    filled(decoder.column, [value])
                except (ValueError, TypeError, OverflowError) as error:
                    reason = InvalidDataError(
                        f"does not fit its column of type {decoder.column.kind}: {error}",
                        remedy="declare a type that fits, or iterate over the records",
                    )
                    raise self._unreadable(batch, row, part, reason) from error
            raise

    def _unreadable(
        self, batch: pa.RecordBatch, row: int, part: Part, reason: InvalidDataError
    ) -> UnreadableRecordError:
        partition, offset = (batch.column(name)[row].as_py() for name in ("partition", "offset"))
        return UnreadableRecordError(f"{self._topic.name}[{partition}]@{offset}", part, reason)


def check_columns(names: Sequence[str], known: Collection[str]) -> None:
    """Raises `ConfigurationError`."""
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"no column {name!r}", remedy=f"choose among {', '.join(known)}"
            )


def is_typed(topic: Topic[Any, Any]) -> bool:
    """A type was declared for keys or values."""
    return not (
        isinstance(topic.key_format, RawFormat) and isinstance(topic.value_format, RawFormat)
    )


def _decoder(chosen: Format[Any], column: Column, choice: "DecoderChoice") -> _Decoder:
    if isinstance(chosen, RawFormat):
        return _Decoder(column, same, lambda values: (values, None))
    if isinstance(chosen, TextFormat):
        return _Decoder(column, chosen.decode, lambda values: (text_array(values), None))
    if column.plain is None or not column.fields:
        return _Decoder(column, chosen.decode, None)
    if isinstance(chosen, JsonFormat):
        return _Decoder(column, chosen.decode, json_parser(column, choice))
    if isinstance(chosen, RegistryFormat) and chosen.schema_type == "JSON":
        return _Decoder(column, chosen.decode, _framed_parser(chosen, json_parser(column, choice)))
    return _Decoder(column, chosen.decode, None)


def _framed_parser(
    chosen: RegistryFormat[Any], parse: Callable[[pa.Array], tuple[pa.Array, pa.Array]]
) -> Callable[[pa.Array], tuple[pa.Array, pa.Array]]:
    """Make `parse` for framed values. It raises `NotPlainError`, also for an unreadable schema."""

    def unframe_and_parse(values: pa.Array) -> tuple[pa.Array, pa.Array]:
        try:
            bare = unframed(values, chosen.reader)
        except InvalidDataError as error:
            raise NotPlainError from error
        return parse(bare)

    return unframe_and_parse


def _column(topic: Topic[Any, Any], part: Part) -> Column:
    chosen: Format[Any] = topic.key_format if part == "key" else topic.value_format
    if isinstance(chosen, RawFormat):
        return scalar(pa.binary(), None)
    if isinstance(chosen, TextFormat):
        return scalar(pa.string(), None)
    declared = getattr(chosen, "declared", None)
    if declared is None:
        raise ConfigurationError(
            f"the format {chosen.name!r} of the {part}s of topic {topic.name!r} has no columns",
            remedy="give the format an attribute `declared` with the type of its values, "
            "iterate over the records, or replay the topic by its name",
        )
    if hasattr(declared, "DESCRIPTOR"):
        from bucketlog.replaying.protobuf_types import column_of_message

        return column_of_message(declared.DESCRIPTOR)
    from bucketlog.replaying.python_types import column_of

    return column_of(declared)


def _stored_types() -> dict[str, pa.DataType]:
    from bucketlog.log_reader.columns import arrow_schema

    return {field.name: field.type for field in arrow_schema(list(PLACE.values()))}


def _fields_of(found: pa.StructArray) -> dict[str, pa.Array]:
    return dict(zip((field.name for field in found.type), found.flatten(), strict=True))


def _spread(found: pa.Array | None, rows: pa.Array, count: int) -> pa.Array | None:
    """`found` in `rows` of `count`, else null."""
    if found is None:
        return None
    wanted = np.zeros(count, np.int64)
    is_null = np.ones(count, np.bool_)
    at = np.frombuffer(rows.buffers()[1], np.uint64, len(rows)).astype(np.int64)
    wanted[at], is_null[at] = np.arange(len(rows)), False
    return found.take(number_array(wanted, is_null=is_null))
