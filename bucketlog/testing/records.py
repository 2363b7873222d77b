"""Reading in a test: consumers from the start, and all that a topic holds now."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

if TYPE_CHECKING:
    from bucketlog.client.consumer import Consumer
    from bucketlog.client.group_consumer import GroupConsumer
    from bucketlog.client.log import Log
    from bucketlog.client.options import (
        GroupOptions,
        PartitionOptions,
        TopicsGroupOptions,
        TopicsOptions,
    )
    from bucketlog.client.partition_consumer import PartitionConsumer
    from bucketlog.client.sources import SeveralTopics
    from bucketlog.client.topic import Record, Topic, TopicPartition

K = TypeVar("K")
V = TypeVar("V")


class ConsumerFactory:
    """Maker of consumers that are closed after the test. Returned by the fixture
    `bucketlog_consumer`.

    A call takes the arguments of `Log.consumer`. Consumers begin at the earliest record, unless
    `start` is given.

    Examples:
        >>> from contextlib import ExitStack
        >>> from bucketlog.testing import ConsumerFactory
        >>> with ExitStack() as stack:
        ...     consumer = ConsumerFactory(log, stack)(orders, until="end")
        ...     [record.value.id for record in consumer]
        ['1', '2']
    """

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
    @overload
    def __call__(
        self, topic: "SeveralTopics[K, V]", **options: "Unpack[TopicsOptions]"
    ) -> "PartitionConsumer[K, V, TopicPartition]": ...
    @overload
    def __call__(
        self, topic: "SeveralTopics[K, V]", *, group: str, **options: "Unpack[TopicsGroupOptions]"
    ) -> "GroupConsumer[K, V, TopicPartition]": ...
    def __call__(self, topic: Any, **options: Any) -> Any:
        consumer: Consumer[Any, Any, Any]
        consumer = self._log.consumer(topic, **({"start": "earliest"} | options))
        self._stack.callback(consumer.close)
        return consumer


class RecordReader:
    """Reader of all records that a topic has now, by partition and offset. Returned by the fixture
    `bucketlog_records`.

    A call takes a topic or its name. Flush producers before. It raises `LogError` and
    `InvalidDataError`.

    Examples:
        >>> from bucketlog.testing import RecordReader
        >>> [record.value.id for record in RecordReader(log)(orders)]
        ['1', '2']
    """

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
