"""A format whose schemas are in a registry, in Confluent's wire format.

Invariants: what is written names, by id, the very schema it was written by; what is read is read
by its writer's schema. After the first value written, and the first read of each id, nothing is
asked of the registry. What is kept is bounded.
"""

from threading import Lock
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.schema_registry.codec import SchemaCodec, SchemaType, ValueReader, ValueWriter
from bucketlog.schema_registry.framing import HEADER_BYTES, header, schema_id_of
from bucketlog.schema_registry.newest_entries import keep_newest

if TYPE_CHECKING:
    from bucketlog.client.schemas.registry import SchemaRegistry

T = TypeVar("T")

READERS_MAX = 1000


class RegistryFormat(Generic[T]):
    """Made by `SchemaRegistry.avro`, `.json`, `.protobuf`; a topic binds it to its name."""

    def __init__(self, registry: "SchemaRegistry", codec: SchemaCodec[T]) -> None:
        self.name = f"registered {codec.name}"
        self.registry = registry
        self.subject: str | None = None
        """What its schema is registered under; None while it is not a topic's."""
        self._codec = codec
        self._write: ValueWriter[T] | None = None
        self._readers: dict[int, ValueReader[T]] = {}
        self._lock = Lock()

    def bound(self, topic: str, part: Literal["key", "value"]) -> Self:
        """The same format for a topic's keys or values. Raises `ConfigurationError`."""
        made = type(self)(self.registry, self._codec)
        made.subject = self._subject(topic, part)
        return made

    @property
    def schema(self) -> str:
        """The class's own schema, as it is registered."""
        return self._codec.own_schema().text

    @property
    def declared(self) -> type[T]:
        return self._codec.declared

    @property
    def schema_type(self) -> SchemaType:
        return self._codec.schema_type

    def encode(self, value: T) -> bytes:
        """Raises `InvalidDataError`; the first time `SchemaRegistryError` as well."""
        if self._write is None:
            self._write = self._prepared()
        return self._write(value)

    def decode(self, data: bytes) -> T:
        """Raises `InvalidDataError`; the first time of an id `SchemaRegistryError` as well."""
        schema_id = schema_id_of(data)
        read = self._readers.get(schema_id)
        if read is None:
            read = self.reader(schema_id)
        return read(data, HEADER_BYTES)

    # What may wait for the registry ----------------------------------------------------------

    def encodes_at_once(self) -> bool:
        return self._write is not None

    def prepare_to_encode(self) -> None:
        """Raises `SchemaRegistryError`, `InvalidDataError`."""
        if self._write is None:
            self._write = self._prepared()

    def decodes_at_once(self, data: bytes) -> bool:
        try:
            return schema_id_of(data) in self._readers
        except InvalidDataError:
            return True

    def reader(self, schema_id: int) -> ValueReader[T]:
        """Of values behind the header of this schema. Raises `InvalidDataError`; the first time of
        an id `SchemaRegistryError` as well."""
        with self._lock:
            found = self._readers.get(schema_id)
            if found is not None:
                return found
            schema = self.registry.schema(schema_id)
            if schema.type != self._codec.schema_type:
                raise InvalidDataError(
                    f"schema {schema_id} is {schema.type}, not {self._codec.schema_type}",
                    remedy="declare the topic with the format it was written in",
                )
            made = self._codec.reader(schema)
            keep_newest(self._readers, schema_id, made, count_max=READERS_MAX)
            return made

    def _prepared(self) -> ValueWriter[T]:
        if self.subject is None:
            raise ConfigurationError(
                "a format with a registry writes as part of a topic",
                remedy="bucketlog.Topic(name, value=...), or format.bound(topic, 'value')",
            )
        with self._lock:
            if self._write is not None:
                return self._write
            schema = self._codec.own_schema()
            if self.registry.use_latest:
                schema_id, schema = self.registry.latest(self.subject)
                if schema.type != self._codec.schema_type:
                    raise InvalidDataError(
                        f"the latest schema of subject {self.subject!r} is {schema.type}, "
                        f"not {self._codec.schema_type}",
                        remedy="use the format of that type",
                    )
            else:
                schema_id = self.registry.register(self.subject, schema)
            return self._codec.writer(schema, header(schema_id))

    def _subject(self, topic: str, part: str) -> str:
        naming, record = self.registry.naming, self._codec.record_name
        if naming == "topic":
            return f"{topic}-{part}"
        if record is None:
            raise ConfigurationError(
                f"naming={naming!r} of a type without a name",
                remedy='use a model, or naming="topic"',
            )
        return record if naming == "record" else f"{topic}-{record}"
