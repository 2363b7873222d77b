"""Columns of a table from the schemas of a registry. Pure.

Invariant: the columns of several schemas can store every value of each schema. If this is
impossible for a field, `ConfigurationError` names the field.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.types as kinds

from bucketlog.log_format.errors import ConfigurationError

LEVELS_MAX = 100
"""Largest number of levels of nested types."""
FIELDS_MAX = 10_000
"""Largest number of fields of a table, including the fields of structs."""
PATH_MAX = 2_000
"""Largest number of characters of a field's path. A path is kept for each field."""
INSTANT = pa.timestamp("us", tz="UTC")
WALL_CLOCK = pa.timestamp("us")
_SHOWN_MAX = 200
_REMEDY = "declare the fields of the table with --schema"
MILLISECONDS, MICROSECONDS = pa.time32("ms"), pa.time64("us")
"""Times of day. Their columns are numbers: Spark cannot read columns of Iceberg's type `time`. The
unit follows from the width of the number. So the numbers of milliseconds cannot become wider."""
_TIME_NUMBERS = {MILLISECONDS: pa.int32(), MICROSECONDS: pa.int64()}
_WIDER: Sequence[tuple[pa.DataType, ...]] = (
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
    (pa.int32(), MILLISECONDS),
    (pa.int64(), MICROSECONDS),
)
"""Type promotions of Iceberg, from the narrower type to the wider type."""


def no_column(path: str, reason: str) -> ConfigurationError:
    """Return the error for a field that cannot be a column. An empty `path` is the whole value."""
    place = f"{path[:_SHOWN_MAX]}…" if len(path) > _SHOWN_MAX else path
    return ConfigurationError(
        f"field {place} cannot be a column: {reason}" if place else f"no columns: {reason}",
        remedy=_REMEDY,
    )


class FieldCount:
    """Counts the types of a schema, and refuses too many. A short schema can have very many fields,
    because other types can use a named type several times."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, path: str, level: int) -> None:
        """Count a type at `path`, inside `level` other types. Raises `ConfigurationError`."""
        self._count += 1
        if level > LEVELS_MAX:
            raise no_column(path, f"the schema has more than {LEVELS_MAX} levels of nested types")
        if self._count > FIELDS_MAX:
            raise no_column("", f"the schema has more than {FIELDS_MAX:,} fields")


def inner_path(path: str, name: object) -> str:
    """Return the path of the field `name` at `path`. Raises `ConfigurationError` for a name that no
    column can have."""
    if not isinstance(name, str) or not name:
        raise no_column(path, f"the schema has a field of the name {str(name)[:_SHOWN_MAX]!r}")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise no_column(path, f"a field's name is not Unicode: {name[:_SHOWN_MAX]!r}") from error
    found = f"{path}.{name}" if path else name
    if len(found) > PATH_MAX:
        raise no_column(found, f"the path has more than {PATH_MAX:,} characters")
    return found


def structure(fields: Sequence[pa.Field], path: str) -> pa.DataType:
    """Return the type of a column with these fields. Raises `ConfigurationError` if there are none,
    or if two have the same name."""
    if not fields:
        raise no_column(path, "the schema has no fields")
    (name, count), *_ = Counter(each.name for each in fields).most_common(1)
    if count > 1:
        raise no_column(path, f"the schema has the field {name!r} twice")
    return pa.struct(fields)


def table_fields(fields: Sequence[pa.Field]) -> pa.Schema:
    """Return the schema of a table. Raises `ConfigurationError` if `fields` is empty."""
    if not fields:
        raise no_column("", "the schema has no fields")
    return pa.schema(fields)


def merged(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return a schema with the fields of all schemas, in the order of their first appearance.

    Raises `ConfigurationError` if the types of a field have no common wider type."""
    found: dict[str, pa.Field] = {}
    for schema in schemas:
        _merge(found, schema, "")
        if sum(_count(each.type) for each in found.values()) > FIELDS_MAX:
            raise no_column("", f"its schemas have more than {FIELDS_MAX:,} fields")
    fields = [pa.field(each.name, _with_numbers(each.type)) for each in found.values()]
    return table_fields(fields)


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    """Return the type with numbers instead of times of day."""
    if kinds.is_struct(kind):
        return pa.struct([pa.field(each.name, _with_numbers(each.type)) for each in kind])
    if kinds.is_list(kind):
        return pa.list_(_with_numbers(kind.value_type))
    if kinds.is_map(kind):
        return pa.map_(pa.string(), _with_numbers(kind.item_type))
    return _TIME_NUMBERS.get(kind, kind)


def _count(kind: pa.DataType) -> int:
    """Return the number of fields of a column, with the fields of structs."""
    return 1 + sum(_count(kind.field(at).type) for at in range(kind.num_fields))


def _merge(found: dict[str, pa.Field], others: Iterable[pa.Field], path: str) -> None:
    for each in others:
        before = found.get(each.name)
        inner = f"{path}{each.name}"
        kind = each.type if before is None else wider(before.type, each.type, inner)
        found[each.name] = pa.field(each.name, kind)


def wider(one: pa.DataType, other: pa.DataType, path: str) -> pa.DataType:
    """Return a type that can store the values of both types. Raises `ConfigurationError`."""
    if one == other:
        return one
    if kinds.is_struct(one) and kinds.is_struct(other):
        found = {each.name: each for each in one}
        _merge(found, other, f"{path}.")
        return pa.struct(list(found.values()))
    if kinds.is_list(one) and kinds.is_list(other):
        return pa.list_(wider(one.value_type, other.value_type, f"{path}[]"))
    if kinds.is_map(one) and kinds.is_map(other):
        return pa.map_(pa.string(), wider(one.item_type, other.item_type, f"{path}{{}}"))
    if kinds.is_decimal(one) and kinds.is_decimal(other) and one.scale == other.scale:
        return max(one, other, key=lambda kind: int(kind.precision))
    for ascending in _WIDER:
        if one in ascending and other in ascending:
            return ascending[-1]
    raise no_column(path, f"the types {one} and {other} have no common wider type")


def union_type(branches: Iterable[pa.DataType | None], path: str) -> pa.DataType | None:
    """Return the type of a union, or None if all values are null. A branch is None if its values
    are null. Raises `ConfigurationError` for a union of several types without a wider type."""
    types = [kind for kind in branches if kind is not None]
    if len(types) > 1 and any(map(kinds.is_nested, types)):
        raise no_column(path, "the type is a union of several types")
    return reduce(lambda one, other: wider(one, other, path), types) if types else None


def not_null(kind: pa.DataType | None, path: str) -> pa.DataType:
    """Return the type of items. Raises `ConfigurationError` if all items are null."""
    if kind is None:
        raise no_column(path, "all values are null")
    return kind
