"""Files of Protobuf schemas, as a registry has them: descriptors in base64."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.codec import SchemaText

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto


def file_of(schema: SchemaText) -> "FileDescriptorProto | None":
    """Parse a descriptor in base64. Returns None if the schema is source text."""
    descriptor_pb2 = needed("google.protobuf.descriptor_pb2", "protobuf")
    message = needed("google.protobuf.message", "protobuf")
    try:
        made: FileDescriptorProto | None = descriptor_pb2.FileDescriptorProto.FromString(
            base64.b64decode(schema.text, validate=True)
        )
    except (binascii.Error, message.DecodeError, ValueError):
        return None
    return made


def full_name_at(file: "FileDescriptorProto", indexes: Sequence[int]) -> str:
    """Return the full name of the message at `indexes`. Raises `InvalidDataError`."""
    for name, there in message_names(file):
        if there == list(indexes):
            return name
    raise InvalidDataError(f"its schema has no message {list(indexes)}")


def message_names(file: "FileDescriptorProto") -> Iterator[tuple[str, list[int]]]:
    """Yield the full name of each message, with its indexes."""

    def within(messages: Any, prefix: str, indexes: list[int]) -> Iterator[tuple[str, list[int]]]:
        for index, message in enumerate(messages):
            name = f"{prefix}.{message.name}" if prefix else message.name
            yield name, [*indexes, index]
            yield from within(message.nested_type, name, [*indexes, index])

    return within(file.message_type, file.package, [])
