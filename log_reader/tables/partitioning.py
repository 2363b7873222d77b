"""The partitions of a table: terms such as `day(at)`, and the partition values of rows. Pure.

    partitioning = "none" | term {"," term}
    term         = column | transform "(" [number ","] column ")"
    transform    = "identity" | "year" | "month" | "day" | "hour" | "bucket" | "truncate"

`bucket` and `truncate` need the number. A column is a column of the table, and not a field of a
struct. Invariant: partition values are those of Iceberg's specification. PyIceberg's own values of
columns need a compiled package, which bucketlog does not install.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.io.pyarrow import _get_field_from_arrow_table, _pyarrow_to_schema_without_ids
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
    parse_transform,
)
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    PrimitiveType,
)

from bucketlog.log_format.errors import ConfigurationError

NUMBER_MAX = 1_000_000
"""Limit of the numbers of `bucket` and `truncate`."""
TERMS_MAX = 20
_NUMBERED = ("bucket", "truncate")
_PLAIN = ("identity", "year", "month", "day", "hour")
_TERM = re.compile(
    r"\s*(?:([a-z]+)\s*\(\s*(?:(\d{1,7})\s*,\s*)?([^\s,()]+)\s*\)|([^\s,()]+))\s*", re.ASCII
)
_NAMED = re.compile(r"(bucket|truncate)\[(\d+)\]")
_HOUR_US = 3_600_000_000
_FOLDER_MAX = 200
_FOLDER_LEAST = 48
_FOLDERS_MAX = 640
"""Characters of the names of all folders of a partition."""
_REMEDY = (
    "give columns and transforms, such as day, country, hour(at), bucket(16, id) or "
    "truncate(4, name); or none"
)


@dataclass(frozen=True, slots=True)
class PartitionTerm:
    """`transform` has Iceberg's name, such as `day` or `bucket[16]`."""

    transform: str
    column: str

    def __str__(self) -> str:
        if self.transform == "identity":
            return f"identity({self.column})" if self.column == "none" else self.column
        numbered = _NAMED.fullmatch(self.transform)
        if numbered:
            return f"{numbered[1]}({numbered[2]}, {self.column})"
        return f"{self.transform}({self.column})"

    @property
    def field_name(self) -> str:
        """The name of the partition field, as PyIceberg gives it."""
        if self.transform == "identity":
            return self.column
        ending = self.transform.replace("truncate", "trunc").rstrip("]").replace("[", "_")
        return f"{self.column}_{ending}"


@dataclass(frozen=True, slots=True)
class PartitionTerms:
    """No terms: the table has no partitions."""

    terms: tuple[PartitionTerm, ...]

    @classmethod
    def parse(cls, text: str) -> "PartitionTerms":
        """Raises `ConfigurationError`."""
        if text.strip() == "none":
            return cls(())
        terms: list[PartitionTerm] = []
        at = 0
        while True:
            found = _TERM.match(text, at)
            if found is None or (found.end() < len(text) and text[found.end()] != ","):
                raise ConfigurationError(
                    f"the partitioning {text[:100]!r} is not clear at character {at + 1}",
                    remedy=_REMEDY,
                )
            terms.append(_term(*found.groups()))
            if found.end() == len(text):
                break
            at = found.end() + 1
        made = cls(tuple(terms))
        _refuse_a_column_twice(made)
        return made

    @classmethod
    def of(cls, table: Table) -> "PartitionTerms":
        """Return the partitioning of the rows that are written to `table` now."""
        schema = table.schema()
        return cls(
            tuple(
                PartitionTerm(str(each.transform), schema.find_column_name(each.source_id) or "?")
                for each in table.spec().fields
                if not isinstance(each.transform, VoidTransform)
            )
        )

    def __str__(self) -> str:
        return ", ".join(map(str, self.terms)) or "none"

    def check(self, columns: pa.Schema) -> None:
        """Raises `ConfigurationError` if a table with `columns` cannot have these partitions."""
        kinds = {
            each.name: each.field_type for each in _pyarrow_to_schema_without_ids(columns).fields
        }
        for term in self.terms:
            kind = kinds.get(term.column)
            if kind is None:
                raise ConfigurationError(
                    f"the partitioning has {str(term)!r}, but the table has no column "
                    f"{term.column!r}",
                    remedy="name a field of the schema, or a column such as _log_timestamp or day",
                )
            if not _can_be_written(parse_transform(term.transform), kind):
                raise ConfigurationError(
                    f"the partitioning has {str(term)!r}, but {term.column!r} is a {kind}",
                    remedy="use year, month and day for times and dates, hour for times, and "
                    "truncate for whole numbers, decimals and texts; leave floats out",
                )
            if not _can_be_stored(parse_transform(term.transform), kind):
                raise ConfigurationError(
                    f"the partitioning has {str(term)!r}, but the lowest value of {kind}, rounded "
                    "down, has too many digits",
                    remedy=f"partition by bucket(16, {term.column}), or by another column",
                )
            if term.transform != "identity" and term.field_name in kinds:
                raise ConfigurationError(
                    f"the partitioning has {str(term)!r}, whose name {term.field_name!r} is also a "
                    "column",
                    remedy="leave this column out, or partition by another column",
                )

    def check_same(self, name: str, table: Table) -> None:
        """Raises `ConfigurationError` if the table `name` has other partitions."""
        present = PartitionTerms.of(table)
        if present != self:
            raise ConfigurationError(
                f"{name} is partitioned by {present}, and not by {self}",
                remedy=f"give --partition-by '{present}', or leave the option out; a table keeps "
                "the partitions that it was created with",
            )


def _term(
    transform: str | None, number: str | None, inner: str | None, column: str | None
) -> PartitionTerm:
    if transform is None or inner is None:
        assert column is not None  # the expression has one of both
        return PartitionTerm("identity", column)
    if transform not in (*_PLAIN, *_NUMBERED):
        raise ConfigurationError(f"there is no transform {transform!r}", remedy=_REMEDY)
    if (transform in _NUMBERED) != (number is not None):
        needs = "needs a number" if number is None else "has no number"
        raise ConfigurationError(f"the transform {transform} {needs}", remedy=_REMEDY)
    if number is None:
        return PartitionTerm(transform, inner)
    if not 1 <= int(number) <= NUMBER_MAX:
        raise ConfigurationError(
            f"the number of {transform} is {number}",
            remedy=f"give a number from 1 to {NUMBER_MAX:,}",
        )
    return PartitionTerm(f"{transform}[{int(number)}]", inner)


def _refuse_a_column_twice(made: PartitionTerms) -> None:
    columns = [term.column for term in made.terms]
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"the partitioning {made} has the column {twice!r} twice",
            remedy="give each column one transform: PyIceberg cannot write two of them",
        )
    if len(columns) > TERMS_MAX:
        raise ConfigurationError(
            f"the partitioning has {len(columns)} columns", remedy=f"give at most {TERMS_MAX}"
        )


def _can_be_written(transform: Transform[Any, Any], kind: IcebergType) -> bool:
    """Return whether `partition_values` supports this type. NaN has no place in a partition."""
    if isinstance(transform, IdentityTransform):
        return isinstance(kind, PrimitiveType) and not isinstance(kind, FloatType | DoubleType)
    return transform.can_transform(kind)


def _can_be_stored(transform: Transform[Any, Any], kind: IcebergType) -> bool:
    """Whether the lowest decimal, rounded down, has a place in manifests. Decimals with more digits
    than their type have none, and any producer can send the lowest decimal."""
    if not (isinstance(transform, TruncateTransform) and isinstance(kind, DecimalType)):
        return True
    return bool((10**kind.precision - 1) % transform.width == 0)


def partition_values(
    transform: Transform[Any, Any], kind: IcebergType, values: pa.Array
) -> pa.Array:
    """Return the partition value of each of `values`, an array or a chunked array of Iceberg's type
    `kind`. Years, months, days and hours are counted from 1970, in UTC. Raises
    `NotImplementedError` for a transform of another engine."""
    match transform:
        case IdentityTransform():
            return values
        case VoidTransform():
            return pa.nulls(len(values), values.type)
        case YearTransform():
            return pc.subtract(pc.year(_in_utc(values)), 1970).cast(pa.int32())
        case MonthTransform():
            utc = _in_utc(values)
            years = pc.multiply(pc.subtract(pc.year(utc), 1970), 12)
            return pc.add(years, pc.subtract(pc.month(utc), 1)).cast(pa.int32())
        case DayTransform():
            days = _in_utc(values)
            if pa.types.is_timestamp(days.type):
                days = pc.floor_temporal(days, unit="day").cast(pa.date32())
            return days.cast(pa.int32())
        case HourTransform():
            hours = pc.floor_temporal(_in_utc(values), unit="hour").cast(pa.int64())
            return pc.divide(hours, _HOUR_US).cast(pa.int32())
        case BucketTransform():
            return _by_value(transform.transform(kind), values, pa.int32())
        case TruncateTransform():
            return _truncated(transform.transform(kind), kind, values)
    raise NotImplementedError(f"partitions by {transform} cannot be written")


def _in_utc(values: pa.Array) -> pa.Array:
    is_time = pa.types.is_timestamp(values.type)
    return values.cast(pa.timestamp("us")) if is_time else values


def _truncated(made: Callable[[Any], Any], kind: IcebergType, values: pa.Array) -> pa.Array:
    """The lowest numbers, rounded down, are out of range. Integers then wrap, as in Iceberg's Java
    library, so that Spark finds these rows."""
    if pa.types.is_integer(values.type):
        half = 1 << (31 if isinstance(kind, IntegerType) else 63)
        whole = made
        return _by_value(lambda each: (whole(each) + half) % (2 * half) - half, values, values.type)
    return _by_value(made, values, values.type)


def _by_value(made: Callable[[Any], Any], values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Apply `made` once to each distinct value. Times and dates are passed as numbers."""
    if pa.types.is_timestamp(values.type):
        values = _in_utc(values).cast(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    whole = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    encoded = whole.dictionary_encode()
    distinct = pa.array([made(each) for each in encoded.dictionary.to_pylist()], kind)
    return distinct.take(encoded.indices)


class _ShortPathKey(PartitionKey):
    """A partition whose folders have short names. Producers decide how long a value is, and file
    systems take names up to 255 bytes, S3 keys up to 1,024. A name that was cut has a hash."""

    def to_path(self) -> str:
        names = super().to_path().split("/")
        limit = max(_FOLDER_LEAST, min(_FOLDER_MAX, _FOLDERS_MAX // len(names)))
        return "/".join(name if len(name) <= limit else _cut(name, limit) for name in names)


def _cut(name: str, limit: int) -> str:
    """Cut a name of ASCII characters, without a part of an escape such as `%C3` at its end."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    begin = re.sub(r"%[0-9A-Fa-f]?$", "", name[: limit - len(digest) - 1])
    return f"{begin}-{digest}"


def split_rows(metadata: TableMetadata, rows: pa.Table) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yield the rows of each partition, in their order. The table has partitions, and `rows` have
    its columns."""
    spec, schema = metadata.spec(), metadata.schema()
    columns: list[pa.Array] = []
    codes = np.zeros(rows.num_rows, np.int64)
    for field in spec.fields:
        name = schema.find_column_name(field.source_id)
        assert name is not None  # a partition field has a column
        kind = schema.find_field(field.source_id).field_type
        found = _get_field_from_arrow_table(rows, name)
        columns.append(partition_values(field.transform, kind, found))
        codes = _joined_codes(codes, columns[-1])
    is_one = not codes.any()
    order = np.zeros(1, np.int64) if is_one else np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1)).tolist()
    by_partition = rows if is_one else rows.take(pa.array(order))
    for begin, end in zip(begins, [*begins[1:], rows.num_rows], strict=True):
        first = int(order[begin])
        values = [
            PartitionFieldValue(field=field, value=column[first].as_py())
            for field, column in zip(spec.fields, columns, strict=True)
        ]
        yield _ShortPathKey(values, spec, schema), by_partition.slice(begin, end - begin)


def _joined_codes(codes: NDArray[np.int64], column: pa.Array) -> NDArray[np.int64]:
    """Return a number for each combination of a code and a value. Equal combinations have the same
    number. The numbers begin at 0 and have no gaps. A null is a value, and so is NaN."""
    whole = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode(null_encoding="encode")
    count: int = len(encoded.dictionary)
    if count == 1:
        return codes
    indices: NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if not codes.any():
        return indices
    joined: NDArray[np.int64] = np.unique(codes * count + indices, return_inverse=True)[1]
    return joined
