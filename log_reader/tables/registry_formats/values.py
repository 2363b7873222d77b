"""Decoding of values in the wire format of a schema registry, for the rows of a table.

Invariants: each value is decoded with the schema that it was written with. If the columns come from
the registry, a value with a newer schema ends the run, because its fields may have no columns yet.
The next run adds the columns. If the registry does not answer, the run also ends.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    InvalidDataError,
    SchemaRegistryError,
)
from bucketlog.log_reader.tables.conversions import Convert, TimeRules, converter
from bucketlog.log_reader.tables.json_text import BadValueError, parse_object
from bucketlog.log_reader.tables.native_values import native_simple
from bucketlog.log_reader.tables.registry_formats.avro_columns import avro_fields
from bucketlog.log_reader.tables.registry_formats.columns import merged
from bucketlog.log_reader.tables.registry_formats.json_schema_columns import json_schema_fields
from bucketlog.log_reader.tables.registry_formats.protobuf_columns import (
    MessageValues,
    message_fields,
)
from bucketlog.log_reader.tables.value_format import ReadValue
from bucketlog.schema_registry.avro_parsing import data_reader, parsed_schema
from bucketlog.schema_registry.codec import SchemaText
from bucketlog.schema_registry.framing import HEADER_BYTES, schema_id_of
from bucketlog.schema_registry.newest_entries import keep_newest
from bucketlog.schema_registry.protobuf_messages import RegisteredMessages
from bucketlog.schema_registry.registry_access import RegistryAccess

READERS_MAX = 1_000
VERSIONS_MAX = 1_000
"""Largest number of versions of the subjects of a table."""
_Fields: TypeAlias = Mapping[str, Any]


class NewerSchemaError(BucketlogError):
    """A value was written with a schema that was registered after the run began."""

    code = "NEWER_SCHEMA"
    retriable = True


def versions_of(access: RegistryAccess, subjects: Sequence[str]) -> Mapping[int, str]:
    """Return the schema ids of all versions of subjects, in order, each with a name for errors.

    Raises `SchemaRegistryError`, and `ConfigurationError` if there are too many versions."""
    registry = access.subjects()
    found: dict[int, str] = {}
    count = 0
    for subject in subjects:
        versions = registry.versions(subject)
        count += len(versions)
        if count > VERSIONS_MAX:
            raise ConfigurationError(
                f"the subjects of the table have more than {VERSIONS_MAX:,} versions",
                remedy="declare the fields of the table with --schema",
            )
        for version in versions:
            schema_id = registry.schema(subject, version).schema_id
            if schema_id is None:
                raise SchemaRegistryError(
                    f"the registry gives no id for version {version} of subject {subject!r}"
                )
            found.setdefault(schema_id, f"version {version} of subject {subject!r}")
    return found


@dataclass(frozen=True)
class RegistryColumns:
    """Columns of a table from all versions of subjects. `ids` are the versions' schema ids."""

    fields: pa.Schema
    ids: frozenset[int]
    subjects: tuple[str, ...]

    @classmethod
    def of(
        cls, access: RegistryAccess, subjects: Sequence[str], message: str | None
    ) -> "RegistryColumns":
        """Return the columns of the versions that the registry has now. `message` is the full name
        of a Protobuf message. If `message` is None, each schema's first message is used.

        Raises `SchemaRegistryError`, and `ConfigurationError` for schemas without columns."""
        versions = versions_of(access, subjects)
        if not versions:
            raise ConfigurationError(
                f"the schema registry has no subject {' or '.join(map(repr, subjects))}",
                remedy="give the subjects of the topics with --subject, or the fields with "
                "--schema",
            )
        registry = access.schemas()

        def fields() -> Iterator[pa.Schema]:
            for schema_id, name in versions.items():
                try:
                    yield _fields(registry.schema(schema_id), message)
                except InvalidDataError as error:
                    raise ConfigurationError(
                        f"{name} has no columns: {error.message}", remedy=error.remedy
                    ) from error

        return cls(merged(fields()), frozenset(versions), tuple(subjects))


@dataclass(frozen=True)
class RegistryValues:
    """Format of values of a schema registry. `columns` is None if the user declared the fields of
    the table. `message` is as in `RegistryColumns.of`. Values of other messages do not fit."""

    access: RegistryAccess
    columns: RegistryColumns | None = None
    message: str | None = None

    def reader(self) -> ReadValue:
        return _Reader(self).read

    def converter(self, kind: pa.DataType, path: str, times: TimeRules) -> Convert:
        return converter(kind, path, times, native_simple)


class _Reader:
    """Decodes the values of a task. The values may have different schemas."""

    def __init__(self, values: RegistryValues) -> None:
        self._values = values
        self._registry = values.access.schemas()
        self._read: dict[int, Callable[[bytes, int], _Fields]] = {}
        self._refused: dict[int, str] = {}
        """Why the values of a schema cannot be read. Schemas of records were registered before."""
        self._newest: frozenset[int] | None = None
        """The schema ids of the subjects' versions, from a request during the task."""

    def read(self, value: bytes) -> _Fields:
        """Return the fields of a value. Raises `BadValueError`, `SchemaRegistryError` and
        `NewerSchemaError`."""
        try:
            schema_id = schema_id_of(value)
            return (self._read.get(schema_id) or self._made(schema_id))(value, HEADER_BYTES)
        except BadValueError:
            raise
        except InvalidDataError as error:
            raise BadValueError(error.message) from error

    def _made(self, schema_id: int) -> Callable[[bytes, int], _Fields]:
        """Neither a request nor the parsing of a schema is repeated for the next record."""
        refused = self._refused.get(schema_id)
        if refused is not None:
            raise BadValueError(refused)
        self._check(schema_id)
        try:
            read = _reader(self._registry.schema(schema_id), self._values.message)
        except InvalidDataError as error:
            keep_newest(self._refused, schema_id, error.message, count_max=READERS_MAX)
            raise
        keep_newest(self._read, schema_id, read, count_max=READERS_MAX)
        return read

    def _check(self, schema_id: int) -> None:
        columns = self._values.columns
        if columns is None or schema_id in columns.ids:
            return
        if self._newest is None:
            self._newest = frozenset(versions_of(self._values.access, columns.subjects))
        subjects = " or ".join(map(repr, columns.subjects))
        if schema_id in self._newest:
            raise NewerSchemaError(
                f"schema {schema_id} of subject {subjects} was registered after the run began",
                remedy="run the ingest again: the next run adds the columns",
            )
        raise BadValueError(f"schema {schema_id} is not a version of subject {subjects}")


def _fields(schema: SchemaText, message: str | None) -> pa.Schema:
    match schema.type:
        case "AVRO":
            return avro_fields(parsed_schema(schema))
        case "PROTOBUF":
            return message_fields(RegisteredMessages(schema).descriptor(message))
        case "JSON":
            return json_schema_fields(schema.text, schema.references)


def _reader(schema: SchemaText, message: str | None) -> Callable[[bytes, int], _Fields]:
    match schema.type:
        case "AVRO":
            return _avro_reader(schema)
        case "PROTOBUF":
            return _protobuf_reader(schema, message)
        case "JSON":
            return lambda data, at: parse_object(data[at:])


def _avro_reader(schema: SchemaText) -> Callable[[bytes, int], _Fields]:
    read = data_reader(parsed_schema(schema), with_names=False)

    def fields(data: bytes, at: int) -> _Fields:
        found = read(data, at)
        if not isinstance(found, dict):
            raise BadValueError("the value is not an Avro record")
        return found

    return fields


def _protobuf_reader(schema: SchemaText, message: str | None) -> Callable[[bytes, int], _Fields]:
    messages = RegisteredMessages(schema)
    wanted = messages.descriptor(message).full_name
    values = MessageValues()

    def fields(data: bytes, at: int) -> _Fields:
        found = messages.read(data, at)
        name = found.DESCRIPTOR.full_name
        if name != wanted:
            raise BadValueError(f"the value is a message {name}, not {wanted}")
        try:
            return values.of(found)
        except UnicodeDecodeError as error:  # messages of proto2 may have any bytes as texts
            raise BadValueError(f"a key of a map is not UTF-8: {error}") from error

    return fields
