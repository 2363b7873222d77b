"""Protobuf messages for tests: classes as protoc makes them, of descriptors that stand here.

`shop/order.proto` imports `shop/money.proto`; `Order.Line` is nested, `Refund` the file's second.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_INT64 = descriptor_pb2.FieldDescriptorProto.TYPE_INT64
_MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
_ONE = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
_MANY = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED


def _message(owner: Any, name: str, *fields: tuple[str, int, int, str]) -> Any:
    made = owner.add(name=name)
    for number, (field, kind, label, of) in enumerate(fields, 1):
        made.field.add(name=field, number=number, type=kind, label=label, type_name=of or None)
    return made


def _files() -> list[descriptor_pb2.FileDescriptorProto]:
    money = descriptor_pb2.FileDescriptorProto(
        name="shop/money.proto", package="shop", syntax="proto3"
    )
    _message(money.message_type, "Money", ("cents", _INT64, _ONE, ""))
    order = descriptor_pb2.FileDescriptorProto(
        name="shop/order.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "shop/money.proto"],
    )
    top = _message(
        order.message_type,
        "Order",
        ("id", _STRING, _ONE, ""),
        ("total", _MESSAGE, _ONE, ".shop.Money"),
        ("lines", _MESSAGE, _MANY, ".shop.Order.Line"),
        ("placed", _MESSAGE, _ONE, ".google.protobuf.Timestamp"),
    )
    _message(top.nested_type, "Line", ("sku", _STRING, _ONE, ""), ("count", _INT64, _ONE, ""))
    _message(order.message_type, "Refund", ("id", _STRING, _ONE, ""))
    return [money, order]


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for file in _files():
        pool.Add(file)
    names = ("shop.Money", "shop.Order", "shop.Order.Line", "shop.Refund")
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names
    }


CLASSES = _classes()
Money: Any = CLASSES["shop.Money"]
Order: Any = CLASSES["shop.Order"]
Line: Any = CLASSES["shop.Order.Line"]
Refund: Any = CLASSES["shop.Refund"]


def order(identity: str = "1") -> Any:
    made = Order(id=identity, total=Money(cents=950), lines=[Line(sku="a", count=2)])
    made.placed.seconds = 1_700_000_000
    return made
