"""Options of `bucketlog table` for the rows: fields, format of the values, and times."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import typer

from bucketlog.cli.registry_flags import (
    RegistryAuth,
    RegistryCaFile,
    RegistryUrl,
    registry_login,
)
from bucketlog.cli.shared_flags import signature_with

if TYPE_CHECKING:
    from bucketlog.log_reader.tables.change_rule import ChangeRule
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

    def shapes(
        self,
        topics: Sequence[str],
        bad_records: "BadRecords",
        changes: "ChangeRule | None" = None,
    ) -> "Callable[[], RowShape]":
        """As `ShapeOptions.shapes`."""
        from bucketlog.log_reader.tables.registry_formats.shape_options import ShapeOptions
        from bucketlog.schema_registry.registry_access import RegistryAccess

        url, login = self.registry_url, self.registry_auth
        return ShapeOptions(
            schema=self.schema,
            value_format=self.value_format,
            registry=RegistryAccess(url, registry_login(login), self.registry_ca_file)
            if url
            else None,
            subjects=self.subject or (),
            message=self.message,
            day_from=self.day_from,
            epoch_units=self.epoch_unit or (),
            epoch_range=self.epoch_range,
        ).shapes(topics, bad_records, changes)


def with_shape(command: Callable[Concatenate[ShapeFlags, P], R]) -> Callable[P, R]:
    """Add the options of `_FLAGS` to a command, and pass them as its first parameter."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        ours = {name: kwargs.pop(name) for name in _FLAGS if name in kwargs}
        return command(ShapeFlags(**cast(dict[str, Any], ours)), *args, **kwargs)

    first = next(iter(inspect.signature(command).parameters))
    signature_with(run, command, _FLAGS, ShapeFlags(), replaced=first)
    return run
