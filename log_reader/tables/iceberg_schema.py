"""The columns of an Iceberg table: made, or evolved before a batch is written.

Invariant: a change is one that old files and old readers survive. Columns are added as optional
ones, types become wider (int to long, float to double, a decimal with more digits), required
columns become optional. Columns that the ingest does not know stay as they are, and its rows have
null there. No two names differ only in upper and lower case, for Spark compares names without it.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as kinds
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.table import Table
from sqlalchemy.exc import IntegrityError

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.partitioning import PartitionTerms

EVOLUTION_TRIES_MAX = 5


def prepared_table(
    catalog: Catalog,
    identifier: str,
    columns: pa.Schema,
    *,
    partition_by: str | None,
    has_these: bool = False,
) -> Table:
    """Return the table, which rows of `columns` fit. If there is none, a new table is created, with
    the partitions `partition_by`, in the grammar of `PartitionTerms`; None: no partitions.

    Raises `ConfigurationError` if the table has a column of another type, a required one that is
    not in `columns`, or a name that differs from one in `columns` only in upper and lower case, and
    if a new table cannot have these partitions. With `has_these`, an existing table
    with other partitions is refused as well."""
    _refuse_other_spellings(identifier, list(columns), [])
    _refuse_one_path_twice(identifier, columns)
    partitioning = PartitionTerms.parse(partition_by or "none")
    for _ in range(EVOLUTION_TRIES_MAX):
        try:
            table = _present_table(catalog, identifier, columns, partitioning)
            if has_these:
                partitioning.check_same(identifier, table)
            _evolve(table, identifier, columns)
        except CommitFailedException:
            continue
        return table
    raise ConfigurationError(
        f"the columns of {identifier} were changed by others {EVOLUTION_TRIES_MAX} times",
        remedy="run the ingest again",
    )


def _present_table(
    catalog: Catalog, identifier: str, columns: pa.Schema, partitioning: PartitionTerms
) -> Table:
    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        _create(catalog, identifier, columns, partitioning)
        return catalog.load_table(identifier)


def _create(
    catalog: Catalog, identifier: str, columns: pa.Schema, partitioning: PartitionTerms
) -> None:
    partitioning.check(columns)
    namespace, _, _ = identifier.rpartition(".")
    try:
        catalog.create_namespace_if_not_exists(namespace)
    except IntegrityError:
        pass  # another ingest was faster, which PyIceberg's SQL catalogs do not handle
    try:
        with catalog.create_table_transaction(identifier, columns) as transaction:
            if partitioning.terms:
                with transaction.update_spec() as spec:
                    for term in partitioning.terms:
                        spec.add_field(term.column, term.transform)
    except TableAlreadyExistsError:
        pass  # another ingest was faster


def _evolve(table: Table, name: str, columns: pa.Schema) -> None:
    unknown = [
        field.name
        for field in table.schema().fields
        if field.required and field.name not in columns.names
    ]
    if unknown:
        raise ConfigurationError(
            f"{name} has required columns that the schema lacks: {', '.join(unknown)}",
            remedy="add them to the schema, or make them optional in the table",
        )
    _refuse_other_spellings(name, list(columns), list(table.schema().as_arrow()))
    try:
        with table.update_schema() as update:
            update.union_by_name(columns)
    except (ValidationError, ValueError) as error:
        raise ConfigurationError(
            f"the schema does not fit the columns of {name}: {error}",
            remedy="a column can be added, and its type can become wider; for another type, give "
            "the field another name, or ingest into a new table",
        ) from error


def _refuse_other_spellings(
    name: str, wanted: Sequence[pa.Field], present: Sequence[pa.Field], path: str = ""
) -> None:
    """Also of nested fields; `path` is of the struct, with a dot at its end."""
    spellings: dict[str, set[str]] = {}
    for each in (*present, *wanted):
        spellings.setdefault(each.name.lower(), set()).add(each.name)
    before = {each.name: _members(each.type) for each in present}
    for each in wanted:
        same = sorted(spellings[each.name.lower()])
        if len(same) > 1:
            listed = " and ".join(repr(f"{path}{spelling}") for spelling in same)
            raise ConfigurationError(
                f"{name} would have columns or fields that differ only in upper and lower case: "
                f"{listed}",
                remedy="spell the field in the schema as the table does, or give the field another "
                "name",
            )
        members = _members(each.type)
        _refuse_other_spellings(name, members, before.get(each.name, ()), f"{path}{each.name}.")


def _refuse_one_path_twice(name: str, columns: pa.Schema) -> None:
    """Iceberg's paths have dots and the names `element`, `key` and `value`, and so may names."""
    paths: set[str] = set()
    waiting = [("", each.name, each.type) for each in columns]
    while waiting:
        outer, inner, kind = waiting.pop()
        path = f"{outer}{inner}"
        if path in paths:
            raise ConfigurationError(
                f"{name} would have two columns or fields with the path {path!r}",
                remedy="produce one of the fields under a name without a dot, or leave it out",
            )
        paths.add(path)
        if kinds.is_struct(kind):
            waiting += [(f"{path}.", each.name, each.type) for each in kind]
        elif kinds.is_list(kind) or kinds.is_large_list(kind):
            waiting.append((f"{path}.", "element", kind.value_type))
        elif kinds.is_map(kind):
            waiting.append((f"{path}.", "key", kind.key_type))
            waiting.append((f"{path}.", "value", kind.item_type))


def _members(kind: pa.DataType) -> list[pa.Field]:
    """The fields of a struct, or of the structs in a list or map."""
    if kinds.is_struct(kind):
        return list(kind)
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return _members(kind.value_type)
    return _members(kind.item_type) if kinds.is_map(kind) else []
