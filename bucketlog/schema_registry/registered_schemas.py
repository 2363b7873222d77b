"""The schemas of a registry, by their ids.

Invariants: answers are cached, failures are not, and the cache is bounded.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.codec import SchemaText, SchemaType
from bucketlog.schema_registry.newest_entries import keep_newest
from bucketlog.schema_registry.protobuf_files import file_of
from bucketlog.schema_registry.registered_schema import (
    Reference,
    RegisteredSchema,
    referenced,
    schema_in,
)
from bucketlog.schema_registry.registry_connection import RegistryConnection, clear_caches

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

SCHEMAS_MAX = 1000
"""Largest number of cached schemas."""
_TYPES: Mapping[str, SchemaType] = {"AVRO": "AVRO", "JSON": "JSON", "PROTOBUF": "PROTOBUF"}


class RegisteredSchemas:
    """The schemas of one registry. Several threads may use the same object."""

    def __init__(self, connection: RegistryConnection) -> None:
        self._connection = connection
        self._schemas: dict[int, SchemaText] = {}

    def schema(self, schema_id: int) -> SchemaText:
        """Return the schema of an id. Raises `InvalidDataError` if the registry has no schema of
        this id, and `SchemaRegistryError` if the registry does not answer."""
        found = self._schemas.get(schema_id)
        if found is None:
            found = self._connection.ask(
                f"asking for schema {schema_id}",
                lambda client: self.fetch(client, schema_id),
                missing="register it first",
            )
            keep_newest(self._schemas, schema_id, found, count_max=SCHEMAS_MAX)
        return found

    def fetch(self, client: "SchemaRegistryClient", schema_id: int) -> SchemaText:
        """Like `schema`, but ask the registry by `client`, and keep nothing. Raises the errors of
        `client`."""
        found = client.get_schema(schema_id)
        text, kind = found.schema_str, found.schema_type or "AVRO"
        schema_type = _TYPES.get(kind)
        if schema_type is None or text is None:
            raise InvalidDataError(f"schema {schema_id} is {kind}: no format here reads it")
        if kind == "PROTOBUF":
            text = self._as_descriptor(
                client, text, functools.partial(client.get_schema, schema_id, fmt="serialized")
            )
        return SchemaText(text, schema_type, self._references(client, schema_in(found.to_dict())))

    def _as_descriptor(
        self, client: "SchemaRegistryClient", text: str, ask: "Callable[[], Schema]"
    ) -> str:
        """Return the descriptor of a Protobuf schema, or `text` if the registry has none."""
        if file_of(SchemaText(text, "PROTOBUF")) is not None:
            return text
        registry = needed("confluent_kafka.schema_registry", "registry")
        clear_caches(client)
        try:
            return ask().schema_str or text
        except registry.SchemaRegistryError:
            return text

    def _references(
        self, client: "SchemaRegistryClient", schema: RegisteredSchema
    ) -> dict[str, str]:
        """Return texts by name; those of Protobuf as descriptors, if the registry has them."""

        def ask(one: Reference) -> RegisteredSchema:
            get = functools.partial(_version, client, one.subject, one.version)
            found = schema_in(get().to_dict())
            if found.type != "PROTOBUF":
                return found
            text = self._as_descriptor(client, found.text, functools.partial(get, "serialized"))
            return dataclasses.replace(found, text=text)

        found = referenced(schema, ask, characters_max=self._connection.answer_bytes_max)
        return {one.name: inner.text for one, inner in found}


def _version(
    client: "SchemaRegistryClient", subject: str, version: int, fmt: str | None = None
) -> "Schema":
    return client.get_version(subject, version, True, fmt).schema
