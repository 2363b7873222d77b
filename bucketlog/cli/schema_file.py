"""The schema of a file and its flags: text, type and references."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.schema_registry.codec import SchemaType
from bucketlog.schema_registry.registered_schema import VERSION_MAX, Reference
from bucketlog.schema_registry.subjects import GivenSchema

FILE_BYTES_MAX = 4 * 1024 * 1024
STDIN = Path("-")


class TypeName(StrEnum):
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON = "json"


SchemaFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="File with the schema; -: standard input.")
]
OfType = Annotated[
    TypeName | None,
    typer.Option(
        "--type",
        "-t",
        envvar="BUCKETLOG_SCHEMA_TYPE",
        help="Type of the schema; default: by the suffix .avsc, .proto or .json.",
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        "-r",
        metavar="NAME=SUBJECT:VERSION",
        help="Schema that the text refers to by NAME; repeatable.",
    ),
]
_TYPES: dict[TypeName, SchemaType] = {
    TypeName.AVRO: "AVRO",
    TypeName.PROTOBUF: "PROTOBUF",
    TypeName.JSON: "JSON",
}
_SUFFIXES = {".avsc": TypeName.AVRO, ".proto": TypeName.PROTOBUF, ".json": TypeName.JSON}


def given_schema(
    file: Path, type_name: TypeName | None, references: Sequence[str] | None
) -> GivenSchema:
    """Read the schema. Raises `ConfigurationError` and `OSError`."""
    found = type_name or _SUFFIXES.get(file.suffix.lower())
    if found is None:
        raise ConfigurationError(
            f"{file}: the type of this schema is unknown",
            remedy="add --type avro, protobuf or json",
        )
    parsed = tuple(map(parse_reference, references or ()))
    text = _text(file)
    if found is not TypeName.PROTOBUF:
        text = text.strip()  # otherwise, blanks around JSON would be part of the registered text
    return GivenSchema(_TYPES[found], text, parsed)


def parse_reference(text: str) -> Reference:
    """Parse NAME=SUBJECT:VERSION. Raises `ConfigurationError`."""
    name, _, place = text.partition("=")
    subject, _, digits = place.rpartition(":")
    number = parse_version(digits)
    if not name or not subject or number is None:
        raise ConfigurationError(
            f"--reference {text}", remedy="give it as NAME=SUBJECT:VERSION, such as Line=lines:1"
        )
    return Reference(name, subject, number)


def parse_version(digits: str) -> int | None:
    """Return the version, or None if the text is not a version."""
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(VERSION_MAX))):
        return None
    number = int(digits)
    return number if 0 < number <= VERSION_MAX else None


def _text(file: Path) -> str:
    if file == STDIN:
        data = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
    else:
        with file.open("rb") as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise ConfigurationError(
            f"{file} has more than {FILE_BYTES_MAX:,} bytes", remedy="give the file of one schema"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file} is not UTF-8", remedy="save the file in UTF-8") from None
    if not text.strip():
        raise ConfigurationError(f"{file} is empty", remedy="write the schema into it")
    return text
