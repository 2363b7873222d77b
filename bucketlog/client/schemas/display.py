"""What was written with a registry, of whatever type, as JSON to look at.

Bytes without a frame stay as they are. Reading alone: nothing is written by it.
"""

from collections.abc import Callable
from typing import Protocol

from pydantic_core import to_json

from bucketlog.client.lines import JsonText
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.avro_parsing import data_reader, parsed_schema
from bucketlog.schema_registry.codec import SchemaText
from bucketlog.schema_registry.framing import HEADER_BYTES, schema_id_of
from bucketlog.schema_registry.newest_entries import keep_newest
from bucketlog.schema_registry.protobuf_messages import RegisteredMessages

READERS_MAX = 1000


class SchemaSource(Protocol):
    """Has the schemas: a `SchemaRegistry`, or what was asked of one before."""

    def schema(self, schema_id: int) -> SchemaText:
        """Raises `BucketlogError`."""


class DisplayFormat:
    """A format for consumers that show records."""

    name = "shown"

    def __init__(self, registry: SchemaSource) -> None:
        self._registry = registry
        self._readers: dict[int, Callable[[bytes, int], bytes]] = {}

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        """Raises `InvalidDataError`; the first time of an id `SchemaRegistryError` as well."""
        if data[:1] != b"\0" or len(data) < HEADER_BYTES:
            return data
        schema_id = schema_id_of(data)
        read = self._readers.get(schema_id)
        if read is None:
            read = _reader(self._registry.schema(schema_id))
            keep_newest(self._readers, schema_id, read, count_max=READERS_MAX)
        return JsonText(read(data, HEADER_BYTES))


def _reader(schema: SchemaText) -> Callable[[bytes, int], bytes]:
    match schema.type:
        case "AVRO":
            return _avro(schema)
        case "PROTOBUF":
            return _protobuf(schema)
    return lambda data, at: data[at:]


def _avro(schema: SchemaText) -> Callable[[bytes, int], bytes]:
    read = data_reader(parsed_schema(schema), with_names=False)

    def shown(data: bytes, at: int) -> bytes:
        try:
            return to_json(read(data, at), bytes_mode="base64", inf_nan_mode="strings")
        except ValueError as error:
            raise InvalidDataError(f"its Avro data are not to be shown: {error}") from error

    return shown


def _protobuf(schema: SchemaText) -> Callable[[bytes, int], bytes]:
    messages = RegisteredMessages(schema)
    json_format = needed("google.protobuf.json_format", "protobuf")

    def read(data: bytes, at: int) -> bytes:
        made = messages.read(data, at)
        try:
            text: str = json_format.MessageToJson(
                made, indent=None, preserving_proto_field_name=True
            )
        except (ValueError, TypeError) as error:
            name = made.DESCRIPTOR.full_name
            raise InvalidDataError(f"does not decode as {name}: {error}") from error
        return text.encode()

    return read
