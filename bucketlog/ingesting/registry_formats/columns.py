"""Columns of a table from the schemas of a registry. Pure.

Invariant: the columns of several schemas hold every value of each of these schemas. Otherwise,
`ConfigurationError` names the field.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.types as kinds

from bucketlog.log_format.errors import ConfigurationError

LEVELS_MAX = 100
"""Largest number of types inside each other."""
FIELDS_MAX = 10_000
"""Largest number of fields of a table, with the fields of structs."""
INSTANT = pa.timestamp("us", tz="UTC")
WALL_CLOCK = pa.timestamp("us")
_PATH_MAX = 200
_REMEDY = "declare the fields of the table with --schema"
_WIDER: Sequence[tuple[pa.DataType, ...]] = (
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
)
"""Types that an Iceberg table can widen, the narrowest first."""


def no_column(path: str, reason: str) -> ConfigurationError:
    """Return the error for a field that has no column. `path` is empty for the whole value."""
    place = f"{path[:_PATH_MAX]}…" if len(path) > _PATH_MAX else path
    return ConfigurationError(
        f"{place or 'the value'} cannot be a column: {reason}", remedy=_REMEDY
    )


class FieldCount:
    """Counts the fields of a schema while its types are walked over. A short schema can have any
    number of fields, if types are used again inside others."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, path: str, level: int) -> None:
        """Count a type at `path`, inside `level` others. Raises `ConfigurationError`."""
        self._count += 1
        if level > LEVELS_MAX:
            raise no_column(path, f"more than {LEVELS_MAX} types are inside each other")
        if self._count > FIELDS_MAX:
            raise no_column("", f"its schema has more than {FIELDS_MAX:,} fields")


def table_fields(fields: Sequence[pa.Field]) -> pa.Schema:
    """Return the fields of a table. Raises `ConfigurationError` if there are none."""
    if not fields:
        raise no_column("", "its schema has no fields")
    return pa.schema(fields)


def merged(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return the fields of all schemas, in the order in which they appear first. Raises
    `ConfigurationError` for a field whose types have no common wider type."""
    found: dict[str, pa.Field] = {}
    for schema in schemas:
        _merge(found, schema, "")
    return table_fields(list(found.values()))


def _merge(found: dict[str, pa.Field], others: Iterable[pa.Field], path: str) -> None:
    for each in others:
        before = found.get(each.name)
        inner = f"{path}{each.name}"
        kind = each.type if before is None else wider(before.type, each.type, inner)
        found[each.name] = pa.field(each.name, kind)


def wider(one: pa.DataType, other: pa.DataType, path: str) -> pa.DataType:
    """Return the type that holds the values of both. Raises `ConfigurationError`."""
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
    raise no_column(path, f"its schemas have the types {one} and {other}")
