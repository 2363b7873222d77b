"""The options of an ingest for its rows, as the commands of both ingests have them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.change_rule import ChangeRule
from bucketlog.log_reader.tables.changes.debezium import DebeziumValues, row_fields
from bucketlog.log_reader.tables.conversions import TimeRules
from bucketlog.log_reader.tables.registry_formats.values import RegistryColumns, RegistryValues
from bucketlog.log_reader.tables.rows import BadRecords, RowShape
from bucketlog.log_reader.tables.schema_text import parse_schema
from bucketlog.log_reader.tables.value_format import JSON_VALUES, ValueFormat
from bucketlog.schema_registry.registry_access import RegistryAccess
from bucketlog.schema_registry.registry_connection import URL_VARIABLE

ValueFormatName: TypeAlias = Literal["json", "registry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOptions:
    """Each field is named after an option. `registry` is None if no URL is known."""

    schema: str | None
    value_format: ValueFormatName
    registry: RegistryAccess | None
    subjects: Sequence[str]
    message: str | None
    day_from: str | None
    epoch_units: Sequence[str]
    epoch_range: str

    def shapes(
        self,
        topics: Sequence[str],
        bad_records: BadRecords,
        changes: ChangeRule | None = None,
    ) -> Callable[[], RowShape]:
        """Return a function that returns the shape of the rows of one run.

        `changes` is the rule of a table with the current state of keys. If the columns come from a
        registry, each call of the function asks the registry. Raises `ConfigurationError`. The
        function raises `ConfigurationError` and `SchemaRegistryError`.
        """
        if self.value_format == "registry":
            return self._registered(topics, bad_records, changes)
        fields, values = parse_schema(self.json_schema()), _values(JSON_VALUES, changes)
        shape = RowShape(fields, self.day_from, self.times(), bad_records, values, changes)
        return lambda: shape

    def json_schema(self) -> str:
        """Return the text of the fields of JSON values. Raises `ConfigurationError` if the text is
        missing, and for options of other formats."""
        for flag, given in (("--subject", self.subjects), ("--message", self.message)):
            if given:
                raise ConfigurationError(
                    f"{flag} applies only to values of a schema registry",
                    remedy="add --value-format registry",
                )
        if self.schema is None:
            raise ConfigurationError(
                "JSON values need --schema",
                remedy="give the fields, such as --schema 'id string, amount double'",
            )
        return self.schema

    def times(self) -> TimeRules:
        """Return the rules for timestamps that are numbers. Raises `ConfigurationError`."""
        units: dict[str, Any] = {}  # TimeRules checks the units
        for item in self.epoch_units:
            field, _, unit = item.rpartition("=")
            if field in units:
                raise ConfigurationError(
                    f"--epoch-unit is given twice for {field or 'all fields'}",
                    remedy="give it once",
                )
            units[field] = unit
        try:
            earliest, latest = map(date.fromisoformat, self.epoch_range.split(","))
        except ValueError as error:
            raise ConfigurationError(
                f"--epoch-range {self.epoch_range[:60]} is not two days",
                remedy="use two days, as in 1971-01-01,2100-01-01",
            ) from error
        return TimeRules(units.pop("", None), units, earliest, latest)

    def _registered(
        self, topics: Sequence[str], bad_records: BadRecords, changes: ChangeRule | None
    ) -> Callable[[], RowShape]:
        access, times = self._access(), self.times()
        if self.schema is not None and self.subjects:
            raise ConfigurationError(
                "--subject and --schema are given", remedy="give one of them: both name the columns"
            )
        if self.schema is not None:
            values = _values(RegistryValues(access, None, self.message), changes)
            fields = parse_schema(self.schema)
            declared = RowShape(fields, self.day_from, times, bad_records, values, changes)
            return lambda: declared
        subjects = self.subjects or [f"{topic}-value" for topic in topics]
        if not subjects:
            raise ConfigurationError(
                "the columns of the table are not known",
                remedy="name the subjects of the values with --subject, or the fields with "
                "--schema",
            )

        def newest() -> RowShape:
            columns = RegistryColumns.of(access, subjects, self.message)
            values = _values(RegistryValues(access, columns, self.message), changes)
            fields = _row_fields(columns.fields, changes)
            return RowShape(fields, self.day_from, times, bad_records, values, changes)

        return newest

    def _access(self) -> RegistryAccess:
        if self.registry is None:
            raise ConfigurationError(
                "no URL of a schema registry",
                remedy=f"give --registry-url URL, or set {URL_VARIABLE}",
            )
        self.registry.schemas()  # checks the settings
        return self.registry


def _values(values: ValueFormat, changes: ChangeRule | None) -> ValueFormat:
    """Return the format of rows in values of the format `values`."""
    if changes is None or changes.mode != "debezium":
        return values
    return DebeziumValues(changes.key, values)


def _row_fields(fields: pa.Schema, changes: ChangeRule | None) -> pa.Schema:
    """Return the fields of rows in values with `fields`. Raises `ConfigurationError`."""
    if changes is None or changes.mode != "debezium":
        return fields
    return row_fields(fields)
