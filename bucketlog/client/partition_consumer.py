"""A consumer of explicitly named partitions, in offset order per partition; no group is asked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.consumer import Consumer
from bucketlog.client.decoding import part_of_message
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.poison import Poison
from bucketlog.client.reading_range import ENDS, StartOf, UntilOf, check_offsets, offsets_for
from bucketlog.client.sources import P, Part, Sources
from bucketlog.client.topic_search import TopicSearch
from bucketlog.log_format.errors import ConfigurationError, LogError

if TYPE_CHECKING:
    from bucketlog.client.traced_reads import TracedReads

K = TypeVar("K")
V = TypeVar("V")


class PartitionConsumer(Consumer[K, V, P]):
    """Consumer of chosen partitions, which commits nothing. Made by `Log.consumer` without a group.

    Attributes:
        topic: Topic that is read.
        partitions: Numbers of the partitions that are read.

    Examples:
        >>> with log.consumer(orders, partitions=[0], start=1, until="end") as consumer:
        ...     [record.value.id for record in consumer]
        ['2']
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        sources: Sources[K, V, P],
        poison: Poison,
        search: TopicSearch,
        *,
        start: StartOf[P],
        partitions: Sequence[Part],
        partitions_of: Callable[[str], Iterable[int]],
        until: UntilOf[P] | None,
        timeout_s: float,
        traced: "TracedReads | None" = None,
    ) -> None:
        """`partitions_of` finds the partitions of a topic that appears later."""
        begin_at = _checked(sources, start, partitions)
        super().__init__(
            config, sources, poison, search, until=until, timeout_s=timeout_s, traced=traced
        )
        self._parts = list(partitions)
        self._partitions_of = partitions_of
        try:
            begin = self._begin_at(offsets_for(self._kafka, partitions, begin_at, timeout_s))
            if until is not None:
                self._ends = self._end_offsets(begin)
                begin = [spot for spot in begin if (spot.topic, spot.partition) in self._ends]
            self._kafka.assign(begin)
        except KafkaException as error:
            self._kafka.close()
            raise log_error(error.args[0], f"opening {sources.description}") from error
        except BaseException:
            self._kafka.close()
            raise

    @property
    def partitions(self) -> tuple[P, ...]:
        """The partitions that are read."""
        return tuple(map(self._sources.name, self._parts))

    @property
    def finished(self) -> bool:
        return self._ends is not None and not (self._ends or self._ready or self._held)

    def _more_wanted(self) -> None:
        """Do nothing: without a group, no account of read records is kept."""

    def _is_serving_due(self) -> bool:
        return False

    def _handed_out(self, message: Message) -> None:
        """Do nothing: without a group, no account of read records is kept."""

    def _stop_reading(self, part: Part) -> None:
        self._kafka.incremental_unassign([KafkaPartition(*part)])

    def _failure(self, error: KafkaError, message: Message) -> LogError | None:
        """librdkafka looks for the coordinator of a group that is never used. Without rights on
        this group, the search fails, and reading does not need it."""
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return None
        if error.code() == KafkaError._PARTITION_EOF and (
            part_of_message(message) not in self._parts
        ):
            return None
        return super()._failure(error, message)

    def _mine(self) -> Sequence[Part]:
        return self._parts

    def _read_again(self, part: Part, offset: int) -> None:
        self._kafka.incremental_assign([KafkaPartition(*part, offset)])
        if part in self._paused:
            self._pause_fetching([part])

    def _topics_changed(self) -> None:
        """New topics are read from their earliest records; nothing is left of deleted ones."""
        gone = [part for part in self._parts if part[0] not in self._sources.topics]
        known = {part[0] for part in self._parts}
        new = [name for name in self._sources.names if name not in known]
        try:
            if gone:
                self._kafka.incremental_unassign([KafkaPartition(*part) for part in gone])
                self._forget(gone)
            came = [(name, number) for name in new for number in self._partitions_of(name)]
            if came:
                begin = offsets_for(self._kafka, came, "earliest", self._timeout_s)
                self._kafka.incremental_assign(self._begin_at(begin))
                self._parts = sorted({*self._parts, *came})
        except KafkaException as error:
            raise log_error(
                error.args[0], f"reading new topics of {self._sources.description}"
            ) from error

    def _forget(self, gone: Sequence[Part]) -> None:
        self._drop_ready(gone)
        self._parts = [part for part in self._parts if part not in gone]
        self._paused.difference_update(gone)
        self._at_earliest.difference_update(gone)
        for part in gone:
            self._began.pop(part, None)


def _checked(
    sources: Sources[Any, Any, P], start: StartOf[P], partitions: Sequence[Part]
) -> StartOf[Part]:
    """`start` for parts. Raises `ConfigurationError`."""
    check_offsets("start", start, tuple(ENDS))
    if not isinstance(start, Mapping):
        return start
    at = {sources.part(name): offset for name, offset in start.items()}
    if unread := at.keys() - set(partitions):
        raise ConfigurationError(
            f"start names partition {sources.label(next(iter(unread)))}, which is not read",
            remedy=f"those that are read: {', '.join(map(sources.label, partitions))}",
        )
    return at
