"""Protobuf messages by hostile schemas of a registry."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf import timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_reader.tables.json_text import BadValueError
from bucketlog.log_reader.tables.registry_formats.protobuf_columns import (
    VALUE_FIELDS_MAX,
    MessageValues,
)
from bucketlog.schema_registry.codec import SchemaText
from bucketlog.schema_registry.protobuf_messages import RegisteredMessages

INT, TEXT, MESSAGE = (
    FieldDescriptorProto.TYPE_INT32,
    FieldDescriptorProto.TYPE_STRING,
    FieldDescriptorProto.TYPE_MESSAGE,
)
TIMESTAMP = "google/protobuf/timestamp.proto"


def message(name: str, **fields: Any) -> DescriptorProto:
    """A message. The fields are types, or full names of messages."""
    made = DescriptorProto(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        one = made.field.add(name=field, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        one.type = MESSAGE if isinstance(kind, str) else kind
        if isinstance(kind, str):
            one.type_name = kind
    return made


def file(
    *messages: DescriptorProto, name: str = "m.proto", package: str = "p", imports: str = ""
) -> FileDescriptorProto:
    made = FileDescriptorProto(name=name, package=package, message_type=messages)
    made.dependency.extend(imports.split())
    return made


def text(made: FileDescriptorProto) -> str:
    return base64.b64encode(made.SerializeToString()).decode()


def messages_of(made: FileDescriptorProto, **references: str) -> RegisteredMessages:
    names = {name.replace("_", "/") + ".proto": one for name, one in references.items()}
    return RegisteredMessages(SchemaText(text(made), "PROTOBUF", names))


def damaged_map() -> DescriptorProto:
    made = message("M")
    made.nested_type.append(message("E", a=INT, b=INT))
    made.nested_type[0].options.map_entry = True
    made.field.add(name="m", number=1, type=MESSAGE, type_name=".p.M.E", label=3)
    return made


OWN_TIMESTAMP = message("Timestamp", x=INT)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (file(message("M", HasField=INT)), "has the field HasField"),
        (file(message("M", DESCRIPTOR=INT)), "has the field DESCRIPTOR"),
        (file(OWN_TIMESTAMP, package="google.protobuf"), "own message google.protobuf.Timestamp"),
        (
            file(DescriptorProto(name="protobuf", nested_type=[OWN_TIMESTAMP]), package="google"),
            "own message google.protobuf.Timestamp",
        ),
        (file(damaged_map()), "the damaged map p.M.E"),
        (file(message("M", x=INT), imports="google/" + "a/" * 5_000), "imports google/a/a/"),
        (
            file(message("Timestamp"), package="p", name=TIMESTAMP),
            "the schema has no message p.Timestamp",
        ),
    ],
)
def test_hostile_schemas_are_refused(made: FileDescriptorProto, reason: str) -> None:
    with pytest.raises(InvalidDataError, match=reason):
        messages_of(made).descriptor()


def test_two_messages_of_one_name_are_refused() -> None:
    other = file(message("M", x=INT), name="o.proto")
    with pytest.raises(InvalidDataError, match="cannot be built"):
        messages_of(file(message("M", x=INT)), o=text(other))


def test_the_own_files_of_protobuf_may_be_in_a_registry() -> None:
    own = FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    made = file(message("M", at=".google.protobuf.Timestamp"), imports=TIMESTAMP)
    assert messages_of(made, google_protobuf_timestamp=text(own)).descriptor().full_name == "p.M"
    own = FileDescriptorProto.FromString(wrappers_pb2.DESCRIPTOR.serialized_pb)
    assert messages_of(own).descriptor().full_name == "google.protobuf.DoubleValue"
    own.name = "default"
    assert messages_of(own).descriptor().full_name == "google.protobuf.DoubleValue"


@pytest.mark.parametrize("nanos", [-1_000, 1_000_000_000])
def test_a_timestamp_beyond_its_second_does_not_fit(nanos: int) -> None:
    made = file(message("M", at=".google.protobuf.Timestamp"), imports=TIMESTAMP)
    at = timestamp_pb2.Timestamp(nanos=nanos).SerializeToString()
    found = messages_of(made).read(b"\0\x0a" + bytes([len(at)]) + at, 0)
    with pytest.raises(BadValueError, match="no part of a second"):
        MessageValues().of(found)


def test_a_number_with_two_names_has_the_first_one() -> None:
    made = file(message("M"))
    made.message_type[0].field.add(
        name="e", number=1, type=FieldDescriptorProto.TYPE_ENUM, type_name=".p.E", label=1
    )
    kinds = made.enum_type.add(name="E")
    kinds.options.allow_alias = True
    for name in ("FIRST", "ALIAS"):
        kinds.value.add(name=name, number=0)
    found = messages_of(made).read(b"\0\x08\0", 0)
    assert MessageValues().of(found) == {"e": "FIRST"}


def test_a_short_value_of_too_many_fields_does_not_fit() -> None:
    wide = message("W", **{f"f{number}": INT for number in range(1_000)})
    made = file(message("M", w=".p.W"), wide)
    made.message_type[0].field[0].label = FieldDescriptorProto.LABEL_REPEATED
    messages, values = messages_of(made), MessageValues()
    count = VALUE_FIELDS_MAX // 1_000
    with pytest.raises(BadValueError, match="more than 1,000,000 fields"):
        values.of(messages.read(b"\0" + b"\x0a\0" * count, 0))
    assert len(values.of(messages.read(b"\0" + b"\x0a\0" * 10, 0))["w"]) == 10
