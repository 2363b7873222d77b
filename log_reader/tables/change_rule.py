"""The rule by which a table keeps the current state of keys, and its checks.

Invariant: each commit of a table of changes has its rule, and a table always keeps its rule. With
two rules in one table, later changes would not find some rows.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from pydantic import BaseModel, ConfigDict

from bucketlog.log_format.errors import ConfigurationError

ChangeMode: TypeAlias = Literal["upsert", "debezium"]
KEY_FIELDS_MAX = 32
RECORD_KEY = "_log_key"
"""The column with the bytes of the record's key."""

_PLACE = (RECORD_KEY, "_log_topic", "_log_partition", "_log_offset", "_log_timestamp")


class ChangeRule(BaseModel):
    """`mode` is the meaning of values: rows, or events of Debezium. `key` has the fields of the
    row that are its key. An empty `key` means the key of the record."""

    model_config = ConfigDict(frozen=True)

    mode: ChangeMode
    key: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are the key."""
        return self.key or (RECORD_KEY,)

    def check(self, fields: pa.Schema) -> None:
        """Raises `ConfigurationError` if the key is not made of `fields`."""
        if len(set(self.key)) != len(self.key) or len(self.key) > KEY_FIELDS_MAX:
            raise ConfigurationError(
                f"the key has {len(self.key)} fields, or a field twice",
                remedy=f"name each field once with --key, at most {KEY_FIELDS_MAX} fields",
            )
        types = {each.name: each.type for each in fields}
        for name in self.key:
            if name not in types:
                raise ConfigurationError(
                    f"the key {name!r} is not a field of the schema",
                    remedy="add the field to --schema, or name another field with --key",
                )
            if kinds.is_floating(types[name]) or kinds.is_nested(types[name]):
                raise ConfigurationError(
                    f"the field {name!r} of the type {types[name]} cannot be a key",
                    remedy="name fields of other types: floats and doubles may be NaN, and lists, "
                    "maps and structs have no order",
                )

    def check_present(
        self, table: str, columns: Mapping[str, int], ingested: Mapping[str, int]
    ) -> None:
        """`columns` are the names and field ids of `table`, and `ingested` those at its last batch.
        Raises `ConfigurationError` if others dropped or renamed a column that finds rows, also if
        another column has the name now. The other column has other values in the rows of today, so
        changes would not find them, and their keys would have two rows."""
        for name in (*self.columns, *_PLACE):
            if name not in columns or columns[name] != ingested.get(name, columns[name]):
                raise ConfigurationError(
                    f"{table} has no longer the column {name!r} of its last batch, which finds the "
                    "rows of a key",
                    remedy="give the column its old name again, or ingest into a new table",
                )

    def keyless(self, rows: pa.RecordBatch, tombstones: pa.Array) -> dict[int, str]:
        """Return why rows have no key, by their index. `rows` have the columns of the table."""
        found: dict[int, str] = {}

        def judge(is_keyless: pa.Array, reason: str) -> None:
            for at in pc.indices_nonzero(is_keyless).to_pylist():
                found.setdefault(at, reason)

        has_no_record_key = pc.is_null(rows.column(RECORD_KEY))
        if not self.key:
            judge(has_no_record_key, "the record has no key")
            return found
        by_record = pc.and_(tombstones, pc.is_null(rows.column(self.key[0])))
        judge(pc.and_(by_record, has_no_record_key), "the record has neither a value nor a key")
        for name in self.key:
            is_null = pc.is_null(rows.column(name))
            judge(pc.and_(is_null, pc.invert(tombstones)), f"{name}: the key is null")
        return found


def check_same_rule(table: str, stored: ChangeRule | None, given: ChangeRule | None) -> None:
    """`stored` is the rule of the last commit of `table`. Raises `ConfigurationError` if a batch by
    the rule `given` must not follow."""
    if _comparable(stored) == _comparable(given):
        return
    raise ConfigurationError(
        f"{table} was written with {_flags(stored)}, and this run has {_flags(given)}",
        remedy=f"run the ingest with {_flags(stored)}, or ingest into a new table",
    )


def _comparable(rule: ChangeRule | None) -> tuple[str, frozenset[str]] | None:
    return None if rule is None else (rule.mode, frozenset(rule.key))


def _flags(rule: ChangeRule | None) -> str:
    if rule is None:
        return "--changes append"
    return " ".join([f"--changes {rule.mode}", *(f"--key {name}" for name in rule.key)])
