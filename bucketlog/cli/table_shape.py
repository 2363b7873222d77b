"""Options of `bucketlog table` for the rows: fields, format of the values, and times."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import typer

from bucketlog.cli.registry_flags import (
    URL_VARIABLE,
    RegistryAuth,
    RegistryCaFile,
    RegistryUrl,
    registry_login,
)
from bucketlog.cli.shared_flags import signature_with
from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.schemas.registry_access import RegistryAccess
    from bucketlog.log_reader.tables.conversions import TimeRules
    from bucketlog.log_reader.tables.rows import BadRecords, RowShape

P = ParamSpec("P")
R = TypeVar("R")
DEFAULT_EPOCH_RANGE = "1971-01-01,2100-01-01"

_FLAGS: Mapping[str, Any] = {
    "schema": Annotated[
        str | None,
        typer.Option(
            metavar="FIELDS",
            help="Fields of the values, such as 'id string, amount double'. JSON values need this "
            "option. Default with a registry: the fields of all versions of the subjects.",
        ),
    ],
    "value_format": Annotated[
        Literal["json", "registry"],
        typer.Option(
            help="Format of the values: json, or registry for Avro, Protobuf and JSON Schema in "
            "Confluent's wire format."
        ),
    ],
    "registry_url": RegistryUrl,
    "registry_auth": RegistryAuth,
    "registry_ca_file": RegistryCaFile,
    "subject": Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Subject with the schemas of the values; repeatable. Default: TOPIC-value of each "
            "topic.",
        ),
    ],
    "message": Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Full name of the Protobuf message; default: the first message of each schema.",
        ),
    ],
    "day_from": Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Timestamp or date that the day of a row comes from; default: the record's time.",
        ),
    ],
    "epoch_unit": Annotated[
        list[str] | None,
        typer.Option(
            "--epoch-unit",
            metavar="[FIELD=]UNIT",
            help="Unit of timestamps that are numbers: seconds, milliseconds or microseconds; "
            "repeatable. Without it, numbers are bad values.",
        ),
    ],
    "epoch_range": Annotated[
        str,
        typer.Option(
            metavar="DAY,DAY",
            help="Earliest and first too late day of timestamps that are numbers.",
        ),
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeFlags:
    """Values of the options in `_FLAGS`. Each field has the name of an option."""

    schema: str | None = None
    value_format: Literal["json", "registry"] = "json"
    registry_url: str | None = None
    registry_auth: str | None = None
    registry_ca_file: Path | None = None
    subject: list[str] | None = None
    message: str | None = None
    day_from: str | None = None
    epoch_unit: list[str] | None = None
    epoch_range: str = DEFAULT_EPOCH_RANGE

    def shapes(self, topics: Sequence[str], bad_records: "BadRecords") -> "Callable[[], RowShape]":
        """Return a function that returns the shape of the rows of one run.

        If the columns come from a registry, each call of the function asks the registry. Raises
        `ConfigurationError`. The function raises `ConfigurationError` and `SchemaRegistryError`.
        """
        if self.value_format == "registry":
            return self._registered(topics, bad_records)
        for flag, given in (("--subject", self.subject), ("--message", self.message)):
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
        from bucketlog.log_reader.tables.rows import RowShape
        from bucketlog.log_reader.tables.schema_text import parse_schema

        shape = RowShape(parse_schema(self.schema), self.day_from, self._times(), bad_records)
        return lambda: shape

    def _registered(
        self, topics: Sequence[str], bad_records: "BadRecords"
    ) -> "Callable[[], RowShape]":
        from bucketlog.ingesting.registry_formats.values import RegistryColumns, RegistryValues
        from bucketlog.log_reader.tables.rows import RowShape
        from bucketlog.log_reader.tables.schema_text import parse_schema

        access, times = self._access(), self._times()
        if self.schema is not None and self.subject:
            raise ConfigurationError(
                "--subject and --schema are given", remedy="give one of them: both name the columns"
            )
        if self.schema is not None:
            values = RegistryValues(access, None, self.message)
            fields = parse_schema(self.schema)
            declared = RowShape(fields, self.day_from, times, bad_records, values)
            return lambda: declared
        subjects = self.subject or [f"{topic}-value" for topic in topics]
        if not subjects:
            raise ConfigurationError(
                "the columns of the table are not known",
                remedy="name the subjects of the values with --subject, or the fields with "
                "--schema",
            )

        def newest() -> RowShape:
            columns = RegistryColumns.of(access, subjects, self.message)
            values = RegistryValues(access, columns, self.message)
            return RowShape(columns.fields, self.day_from, times, bad_records, values)

        return newest

    def _access(self) -> "RegistryAccess":
        if not self.registry_url:
            raise ConfigurationError(
                "no URL of a schema registry",
                remedy=f"give --registry-url URL, or set {URL_VARIABLE}",
            )
        from bucketlog.client.schemas.registry_access import RegistryAccess

        access = RegistryAccess(
            self.registry_url, registry_login(self.registry_auth), self.registry_ca_file
        )
        access.registry()  # checks the settings
        return access

    def _times(self) -> "TimeRules":
        return time_rules(self.epoch_unit or [], self.epoch_range)


def with_shape(command: Callable[Concatenate[ShapeFlags, P], R]) -> Callable[P, R]:
    """Add the options of `_FLAGS` to a command, and pass them as its first parameter."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        ours = {name: kwargs.pop(name) for name in _FLAGS if name in kwargs}
        return command(ShapeFlags(**cast(dict[str, Any], ours)), *args, **kwargs)

    first = next(iter(inspect.signature(command).parameters))
    signature_with(run, command, _FLAGS, ShapeFlags(), replaced=first)
    return run


def time_rules(units: list[str], days: str) -> "TimeRules":
    """The rules of `--epoch-unit` and `--epoch-range`. Raises `ConfigurationError`."""
    from bucketlog.log_reader.tables.conversions import TimeRules

    by_field: dict[str, Any] = {}  # TimeRules checks the units
    for item in units:
        field, _, unit = item.rpartition("=")
        if field in by_field:
            raise ConfigurationError(
                f"--epoch-unit is given twice for {field or 'all fields'}", remedy="give it once"
            )
        by_field[field] = unit
    try:
        earliest, latest = map(date.fromisoformat, days.split(","))
    except ValueError as error:
        raise ConfigurationError(
            f"--epoch-range {days[:60]} is not two days",
            remedy="use two days, as in 1971-01-01,2100-01-01",
        ) from error
    return TimeRules(by_field.pop("", None), by_field, earliest, latest)
