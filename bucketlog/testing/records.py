"""Reading in a test: consumers from the start, and all that a topic holds now."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

if TYPE_CHECKING:
    from bucketlog.client.consumer import Consumer
    from bucketlog.client.group_consumer import GroupConsumer
    from bucketlog.client.log import Log
    from bucketlog.client.options import GroupOptions, PartitionOptions
    from bucketlog.client.partition_consumer import PartitionConsumer
    from bucketlog.client.topic import Record, Topic

K = TypeVar("K")
V = TypeVar("V")


class ConsumerFactory:
    """As `Log.consumer`, from the earliest record unless `start` says otherwise."""

    def __init__(self, log: "Log", stack: ExitStack) -> None:
        self._log = log
        self._stack = stack

    @overload
    def __call__(
        self, topic: "Topic[K, V]", **options: "Unpack[PartitionOptions]"
    ) -> "PartitionConsumer[K, V]": ...
    @overload
    def __call__(
        self, topic: "Topic[K, V]", *, group: str, **options: "Unpack[GroupOptions]"
    ) -> "GroupConsumer[K, V]": ...
    def __call__(self, topic: "Topic[K, V]", **options: Any) -> "Consumer[K, V]":
        consumer: Consumer[K, V] = self._log.consumer(topic, **({"start": "earliest"} | options))
        self._stack.callback(consumer.close)
        return consumer


class RecordReader:
    """`read(topic)`: its records, by partition and offset. What is queued in a producer is not
    there yet: flush it first. Raises `LogError`, `InvalidDataError`."""

    def __init__(self, log: "Log") -> None:
        self._log = log

    @overload
    def __call__(self, topic: str) -> "list[Record[bytes, bytes]]": ...
    @overload
    def __call__(self, topic: "Topic[K, V]") -> "list[Record[K, V]]": ...
    def __call__(self, topic: "str | Topic[Any, Any]") -> "list[Record[Any, Any]]":
        from bucketlog.client.topic import Topic

        typed: Topic[Any, Any] = Topic(topic) if isinstance(topic, str) else topic
        with self._log.consumer(typed, start="earliest", until="end") as consumer:
            return sorted(consumer, key=lambda record: (record.partition, record.offset))
