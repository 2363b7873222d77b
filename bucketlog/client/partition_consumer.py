"""A consumer of explicitly named partitions, in offset order per partition; no group is asked."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.choices import no_choice
from bucketlog.client.consumer import Consumer
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.membership import ENDS
from bucketlog.client.poison import Poison
from bucketlog.client.topic import Topic
from bucketlog.log_format.errors import ConfigurationError

K = TypeVar("K")
V = TypeVar("V")

Start: TypeAlias = Literal["earliest", "latest"] | datetime | int | Mapping[int, int]
"""Where to begin: an end, the first record at or after a time, an offset, or one per
partition: those that it does not name begin at "latest"."""


class PartitionConsumer(Consumer[K, V]):
    """Reads the partitions it is told; nothing is committed. Raises `ConfigurationError`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        topic: Topic[K, V],
        poison: Poison,
        *,
        start: Start,
        partitions: tuple[int, ...],
        until_end: bool,
        timeout_s: float,
    ) -> None:
        _check(start, partitions)
        super().__init__(config, topic, poison, until_end=until_end, timeout_s=timeout_s)
        self.partitions = partitions
        try:
            begin = self._positions(start)
            if until_end:
                self._ends = self._end_offsets(begin)
                begin = [spot for spot in begin if spot.partition in self._ends]
            elif any(spot.offset < 0 for spot in begin):
                # librdkafka asks a leader for an end; where it knows none it tries after 500 ms
                self._kafka.list_topics(topic.name, timeout_s)
            self._kafka.assign(begin)
        except KafkaException as error:
            self._kafka.close()
            raise log_error(error.args[0], f"opening topic {topic.name!r}") from error
        except BaseException:
            self._kafka.close()
            raise

    @property
    def finished(self) -> bool:
        return self._ends is not None and not self._ends and not self._ready

    def _more_wanted(self) -> None:
        """Nobody keeps account of what was read."""

    def _is_serving_due(self) -> bool:
        return False

    def _handed_out(self, message: Message) -> None:
        """Nobody keeps account of what was read."""

    def _stop_reading(self, partition: int) -> None:
        self._kafka.incremental_unassign([KafkaPartition(self.topic.name, partition)])

    def _positions(self, start: Start) -> list[KafkaPartition]:
        if isinstance(start, datetime):
            return self._at_time(list(self.partitions), int(start.timestamp() * 1000))
        name = self.topic.name
        return [KafkaPartition(name, part, _offset(start, part)) for part in self.partitions]


def _offset(start: Literal["earliest", "latest"] | int | Mapping[int, int], partition: int) -> int:
    match start:
        case "earliest":
            return OFFSET_BEGINNING
        case "latest":
            return OFFSET_END
        case int():
            return start
        case _:
            return start.get(partition, OFFSET_END)


def _check(start: object, partitions: tuple[int, ...]) -> None:
    if isinstance(start, Mapping):
        if unread := start.keys() - set(partitions):
            raise ConfigurationError(
                f"start names partition {next(iter(unread))!r}, which is not read",
                remedy=f"those that are read: {', '.join(map(str, partitions))}",
            )
        offsets = list(start.values())
    else:
        offsets = [start] if start not in ENDS and not isinstance(start, datetime) else []
    for offset in offsets:
        if not isinstance(offset, int):
            others = ("a datetime", "an offset", "offsets by partition")
            raise no_choice("start", start, ENDS, *others)
