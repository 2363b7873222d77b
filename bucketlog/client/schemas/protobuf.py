"""Protobuf, by generated message classes."""

import base64
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bucketlog.client.formats import type_mismatch
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.codec import SchemaText, SchemaType, ValueReader, ValueWriter
from bucketlog.schema_registry.framing import message_indexes, read_message_indexes
from bucketlog.schema_registry.protobuf_files import file_of, message_names

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")

_BUILT_IN = ("google/protobuf/", "google/type/", "confluent/")
"""Files that every reader has: no registry keeps them."""


class Protobuf(Generic[M]):
    r"""Format of Protobuf data without a header: producers and consumers must know the message.

    Maps are written in the order of their keys. Equal messages are therefore equal bytes.

    Args:
        declared: Message class that `protoc` has generated, such as `order_pb2.Order`.

    Raises:
        ConfigurationError: If `declared` is not a generated message class.

    Examples:
        >>> from google.protobuf.wrappers_pb2 import StringValue
        >>> names = bucketlog.Topic("names", value=bucketlog.Protobuf(StringValue))
        >>> names.value_format.encode(StringValue(value="ann"))
        b'\n\x03ann'
    """

    name = "protobuf"
    schema_type: SchemaType = "PROTOBUF"

    def __init__(self, declared: type[M]) -> None:
        message = needed("google.protobuf.message", "protobuf")
        given: Any = declared
        if not (isinstance(given, type) and issubclass(given, message.Message)):
            raise ConfigurationError(
                f"{declared!r} is not a generated message class", remedy="as in order_pb2.Order"
            )
        self.declared = declared
        self._refused: type[Exception] = message.EncodeError
        self._damaged: type[Exception] = message.DecodeError
        self.record_name: str | None = declared.DESCRIPTOR.full_name

    def encode(self, value: M) -> bytes:
        """Return the Protobuf data of a message.

        Args:
            value: Message of the declared class.

        Returns:
            The bytes to store.

        Raises:
            InvalidDataError: If the message does not have the declared class, or lacks required
                fields.
        """
        if not isinstance(value, self.declared):
            raise type_mismatch(value, self.declared)
        try:
            return value.SerializeToString(deterministic=True)
        except (self._refused, ValueError) as error:
            raise InvalidDataError(
                f"a {self.record_name} cannot be written: {error}", remedy="set what is required"
            ) from error

    def decode(self, data: bytes) -> M:
        """Return the message of Protobuf data.

        Args:
            data: Stored bytes.

        Returns:
            A message of the declared class.

        Raises:
            InvalidDataError: If the bytes are not data of the message.
        """
        made = self.declared()
        try:
            made.ParseFromString(data)
        except (self._damaged, ValueError) as error:
            raise InvalidDataError(
                f"does not decode as {self.record_name}: {error}",
                remedy="read the topic with bytes to see the record",
            ) from error
        return made

    def own_schema(self) -> SchemaText:
        """Return the schema of the message's file.

        Returns:
            The text and the type of the schema.

        Raises:
            ConfigurationError: If `declared` is not a generated message class, when the format is
                made.
        """
        return _schema_of(self.declared.DESCRIPTOR.file)

    def writer(self, schema: SchemaText, header: bytes) -> ValueWriter[M]:
        """Return a function that encodes messages by a schema of a registry.

        Args:
            schema: Schema to write.
            header: Bytes to put before the data of each message.

        Returns:
            A function from a message to bytes.

        Raises:
            InvalidDataError: If the schema does not have the message.
        """
        indexes = _indexes_of(self.declared.DESCRIPTOR)
        file = file_of(schema)
        if file is not None:
            indexes = _found(file, self.declared.DESCRIPTOR.full_name)
        header += message_indexes(indexes)
        encode = self.encode
        return lambda value: header + encode(value)

    def reader(self, schema: SchemaText) -> ValueReader[M]:
        """Return a function that decodes what a schema of a registry has written.

        The function finds the message by its name. If the registry has the schema as text alone, it
        finds the message by its place in the file.

        Args:
            schema: Schema with which the data was written.

        Returns:
            A function from bytes, and the position of the data in them, to a message.

        Raises:
            InvalidDataError: If the schema does not have the message.
        """
        file = file_of(schema)
        if file is None:
            wanted = _indexes_of(self.declared.DESCRIPTOR)
            names: dict[str, list[int]] = {self.declared.DESCRIPTOR.full_name: wanted}
        else:
            names = dict(message_names(file))
        by_indexes = {tuple(indexes): name for name, indexes in names.items()}
        own, shortcut = self.record_name, by_indexes.get((0,)) == self.record_name
        decode = self.decode

        def read(data: bytes, at: int) -> M:
            if shortcut and data[at : at + 1] == b"\0":
                return decode(data[at + 1 :])
            indexes, begin = read_message_indexes(data, at)
            name = by_indexes.get(tuple(indexes), f"message {indexes} of its file")
            if name != own:
                raise InvalidDataError(
                    f"it was written as {name}, not {own}",
                    remedy="read the topic with bytes to see the record",
                )
            return decode(data[begin:])

        return read


def _schema_of(file: Any) -> SchemaText:
    imports = tuple(
        (one.name, _schema_of(one))
        for one in file.dependencies
        if not one.name.startswith(_BUILT_IN)
    )
    text = base64.standard_b64encode(file.serialized_pb).decode()
    return SchemaText(text, "PROTOBUF", imports=imports)


def _indexes_of(message: Any) -> list[int]:
    outer = message.containing_type
    if outer is None:
        return [list(message.file.message_types_by_name).index(message.name)]
    place = [one.full_name for one in outer.nested_types].index(message.full_name)
    return [*_indexes_of(outer), place]


def _found(file: "FileDescriptorProto", name: str) -> list[int]:
    for there, indexes in message_names(file):
        if there == name:
            return indexes
    raise InvalidDataError(
        f"the schema in the registry has no message {name}",
        remedy="register the class's own schema, or write with a class that fits",
    )
