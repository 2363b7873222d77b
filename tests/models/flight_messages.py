"""A Protobuf message for flights. This module builds the descriptor."""

from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)

_FIELD = descriptor_pb2.FieldDescriptorProto
_FIELDS: tuple[tuple[str, int, str | None], ...] = (
    ("id", _FIELD.TYPE_INT64, None),
    ("carrier", _FIELD.TYPE_STRING, None),
    ("flight", _FIELD.TYPE_UINT32, None),
    ("tailnum", _FIELD.TYPE_MESSAGE, ".google.protobuf.StringValue"),
    ("dep_delay", _FIELD.TYPE_MESSAGE, ".google.protobuf.Int32Value"),
    ("distance", _FIELD.TYPE_SINT32, None),
    ("time_hour", _FIELD.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
)
COLUMNS = tuple(name for name, _, _ in _FIELDS)


def _message() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="flight.proto",
        package="air",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"],
    )
    message = file.message_type.add(name="Flight")
    for number, (name, kind, of) in enumerate(_FIELDS, 1):
        message.field.add(
            name=name, number=number, type=kind, label=_FIELD.LABEL_OPTIONAL, type_name=of
        )
    pool = descriptor_pool.DescriptorPool()
    for module in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("air.Flight"))


FlightMessage: Any = _message()


def flight_message(flight: Any) -> Any:
    """Return the message for an object that has the fields of `COLUMNS`."""
    made = FlightMessage(
        id=flight.id, carrier=flight.carrier, flight=flight.flight, distance=flight.distance
    )
    if flight.tailnum is not None:
        made.tailnum.value = flight.tailnum
    if flight.dep_delay is not None:
        made.dep_delay.value = flight.dep_delay
    made.time_hour.FromDatetime(flight.time_hour)
    return made
