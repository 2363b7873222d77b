"""Decoding of Protobuf messages with a schema of a registry, without generated classes.

Invariants: messages of google.protobuf are those of the installed Protobuf, because their values
are converted specially. No field hides a method of messages that readers call.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.codec import SchemaText
from bucketlog.schema_registry.framing import read_message_indexes
from bucketlog.schema_registry.protobuf_files import file_of, full_name_at

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

_BUILT_IN = "google/"
_PROTOBUF, _PROTOBUF_NAMES = "google/protobuf/", "google.protobuf."
_HIDING = ("DESCRIPTOR", "HasField", "ParseFromString")
"""Names of fields that hide what readers call."""
_MEANINGFUL = ("struct", "timestamp", "wrappers")
_NAME_MAX = 200
_MAP_FIELDS = [("key", 1), ("value", 2)]


class RegisteredMessages:
    """The messages in the file of a registered schema. Raises `InvalidDataError` if the schema
    cannot be built."""

    def __init__(self, schema: SchemaText) -> None:
        descriptor_pool = needed("google.protobuf.descriptor_pool", "protobuf")
        self._damaged = needed("google.protobuf.message", "protobuf").DecodeError
        self._factory = needed("google.protobuf.message_factory", "protobuf")
        self._pool = descriptor_pool.DescriptorPool()
        known: set[str] = set()
        for name, text in schema.references.items():
            _add(self._pool, SchemaText(text, "PROTOBUF"), name, known)
        self._file = _add(self._pool, schema, None, known)
        self._classes: dict[tuple[int, ...], type[Message]] = {}
        """Classes of messages, by message indexes."""

    def descriptor(self, name: str | None = None) -> "Descriptor":
        """Return the descriptor of the message with the full name `name`. If `name` is None, return
        the descriptor of the first message. Raises `InvalidDataError`."""
        name = name or full_name_at(self._file, [0])
        try:
            found: Descriptor = self._pool.FindMessageTypeByName(name)
        except KeyError as error:
            raise InvalidDataError(f"the schema has no message {name}") from error
        return found

    def read(self, data: bytes, at: int) -> "Message":
        """Return the message in `data`. The message indexes begin at byte `at`. Raises
        `InvalidDataError`."""
        indexes, begin = read_message_indexes(data, at)
        cls = self._classes.get(tuple(indexes))
        if cls is None:
            descriptor = self.descriptor(full_name_at(self._file, indexes))
            cls = self._classes[tuple(indexes)] = self._factory.GetMessageClass(descriptor)
        made = cls()
        try:
            made.ParseFromString(data[begin:])
        except (self._damaged, ValueError, TypeError) as error:
            name = cls.DESCRIPTOR.full_name
            raise InvalidDataError(f"does not decode as {name}: {error}") from error
        return made


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
    if file.name.startswith(_PROTOBUF):
        _add_built_in(pool, file.name, known)
        return file
    _check(file)
    known.add(file.name)
    for imported in file.dependency:
        if imported.startswith(_BUILT_IN):
            _add_built_in(pool, imported, known)
    _build(pool, file.SerializeToString())
    return file


def _check(file: Any) -> None:
    """Raises `InvalidDataError` for messages that break the invariants, and for damaged maps."""
    for name, message in _messages_in(file):
        if name.startswith(_PROTOBUF_NAMES) and not _is_built_in(name, message):
            raise InvalidDataError(f"its Protobuf schema has its own message {name}")
        fields = [(field.name, field.number) for field in message.field]
        if message.options.map_entry and fields != _MAP_FIELDS:
            raise InvalidDataError(f"its Protobuf schema has the damaged map {name}")
        hiding = next((field for field, _ in fields if field in _HIDING), None)
        if hiding is not None:
            raise InvalidDataError(
                f"its message {name} has the field {hiding}, which messages have as a method",
                remedy="give the field another name",
            )


def _is_built_in(name: str, message: Any) -> bool:
    """Return True if the installed Protobuf has the same message, or none that has a meaning."""
    for module in _MEANINGFUL:
        needed(f"google.protobuf.{module}_pb2", "protobuf")
    pool = needed("google.protobuf.descriptor_pool", "protobuf").Default()
    ours = needed("google.protobuf.descriptor_pb2", "protobuf").DescriptorProto()
    try:
        pool.FindMessageTypeByName(name).CopyToProto(ours)
    except KeyError:
        return True
    return bool(_shape(ours) == _shape(message))


def _shape(message: Any) -> list[tuple[Any, ...]]:
    return [(one.name, one.number, one.type, one.label, one.type_name) for one in message.field]


def _messages_in(file: Any) -> Iterator[tuple[str, Any]]:
    """Full names and messages, those inside others too."""
    waiting = [(file.package, message) for message in file.message_type]
    while waiting:
        outer, message = waiting.pop()
        name = f"{outer}.{message.name}" if outer else message.name
        yield name, message
        waiting += [(name, inner) for inner in message.nested_type]


def _build(pool: Any, data: bytes) -> None:
    try:
        pool.AddSerializedFile(data)
    except TypeError as error:
        raise InvalidDataError(f"its Protobuf schema cannot be built: {error}") from error


def _add_built_in(pool: Any, name: str, known: set[str]) -> None:
    if name in known:
        return
    known.add(name)
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except (ImportError, ValueError, RecursionError) as error:
        raise InvalidDataError(
            f"its Protobuf schema imports {name[:_NAME_MAX]}",
            remedy="pip install googleapis-common-protos",
        ) from error
    for inner in module.DESCRIPTOR.dependencies:
        _add_built_in(pool, inner.name, known)
    _build(pool, module.DESCRIPTOR.serialized_pb)
