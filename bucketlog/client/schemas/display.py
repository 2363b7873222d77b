"""What was written with a registry, of whatever type, as JSON to look at.

Bytes without a frame stay as they are. Reading alone: nothing is written by it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from pydantic_core import to_json

from bucketlog.client.lines import JsonText
from bucketlog.client.schemas.avro import data_reader, parsed_schema
from bucketlog.client.schemas.codec import SchemaText
from bucketlog.client.schemas.framing import HEADER_BYTES, read_message_indexes, schema_id_of
from bucketlog.client.schemas.newest_entries import keep_newest
from bucketlog.client.schemas.protobuf import file_of, full_name_at
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.extras import needed

_BUILT_IN = "google/"
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
    descriptor_pool = needed("google.protobuf.descriptor_pool", "protobuf")
    factory = needed("google.protobuf.message_factory", "protobuf")
    json_format = needed("google.protobuf.json_format", "protobuf")
    message = needed("google.protobuf.message", "protobuf")
    pool = descriptor_pool.DescriptorPool()
    known: set[str] = set()
    for name, text in schema.references.items():
        _add(pool, SchemaText(text, "PROTOBUF"), name, known)
    file = _add(pool, schema, None, known)

    def read(data: bytes, at: int) -> bytes:
        indexes, begin = read_message_indexes(data, at)
        name = full_name_at(file, indexes)
        made = factory.GetMessageClass(pool.FindMessageTypeByName(name))()
        try:
            made.ParseFromString(data[begin:])
            text: str = json_format.MessageToJson(
                made, indent=None, preserving_proto_field_name=True
            )
        except (message.DecodeError, ValueError, TypeError) as error:
            raise InvalidDataError(f"does not decode as {name}: {error}") from error
        return text.encode()

    return read


def _add(pool: Any, schema: SchemaText, name: str | None, known: set[str]) -> Any:
    """The file, in the pool with those that every reader has. Raises `InvalidDataError`."""
    file = file_of(schema)
    if file is None:
        raise InvalidDataError(
            f"the registry has the Protobuf schema {name or 'of the record'} as text alone",
            remedy="read the topic with its generated class: registry.protobuf(...)",
        )
    if name is not None:
        file.name = name
    for imported in file.dependency:
        if imported.startswith(_BUILT_IN):
            _add_built_in(pool, imported, known)
    try:
        pool.Add(file)
    except TypeError as error:
        raise InvalidDataError(f"its Protobuf schema cannot be built: {error}") from error
    return file


def _add_built_in(pool: Any, name: str, known: set[str]) -> None:
    if name in known:
        return
    known.add(name)
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ModuleNotFoundError as error:
        raise InvalidDataError(
            f"its Protobuf schema imports {name}", remedy="pip install googleapis-common-protos"
        ) from error
    for inner in module.DESCRIPTOR.dependencies:
        _add_built_in(pool, inner.name, known)
    pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
