"""Control over where a consumer reads: `seek`, `pause`, `resume`, `position`, `committed`, `lag`.

Invariants: a position is the offset of the next record that the caller gets: messages that were
read ahead and not returned count as not read. After a seek, the caller gets no record from before
it. A partition whose seek fails keeps its position.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.decoding import part_of_message
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.message_buffer import MessageBuffer
from bucketlog.client.own_process import OwnProcess
from bucketlog.client.reading_range import (
    ENDS,
    StartOf,
    check_offsets,
    found_offsets,
    offsets_for,
    part_of,
)
from bucketlog.client.sources import P, Part
from bucketlog.client.topic import Topic
from bucketlog.client.turn import Turn
from bucketlog.log_format.errors import ConfigurationError

K = TypeVar("K")
V = TypeVar("V")

NAMED_MAX = 100
"""Limit of the partitions that an error names."""


class ControlledReading(MessageBuffer[K, V, P], ABC):
    """Control over a consumer's positions. All methods raise `LogError`, and
    `ConcurrentUseError` if another thread uses the consumer."""

    _turn: Turn
    _process: OwnProcess

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics that are read now, in order."""
        return tuple(sorted(self._sources.topics))

    def partitions_of(self, topic: str | Topic[Any, Any]) -> list[P]:
        """Return the partitions of one topic, for `pause`, `resume` and `seek`.

        Args:
            topic: Topic, or its name.

        Returns:
            Partitions of the topic that this consumer has, in order. In a group, an empty list if
            the group has assigned none.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If the consumer is closed.
        """
        name = topic if isinstance(topic, str) else topic.name
        with self._controlling("finding partitions"):
            return [self._sources.name(part) for part in self._shown() if part[0] == name]

    def seek(self, to: StartOf[P], partitions: Iterable[P] | None = None) -> None:
        """Continue reading at another position.

        Returned records of the sought partitions no longer count as done. In a group, the next
        commit commits the new position, even if it is lower. With `auto_commit="ack"`, records in
        flight of these partitions can no longer be acknowledged.

        Args:
            to: Position: "earliest", "latest", an offset, a mapping of partitions to offsets, or a
                datetime. A datetime is the first record at or after this time, or "latest" if there
                is none.
            partitions: Numbers of the partitions to move; None means those of the mapping, or all
                partitions of this consumer.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If the position is not valid, or if this consumer does not have a
                partition.
            LogError: If brokers do not answer.
        """
        with self._controlling("seeking"):
            wanted = _wanted(to, partitions)
            chosen = self._chosen(wanted)
            if not chosen:
                self._refuse("this consumer has no partitions")
            at: StartOf[Part] = (
                {self._sources.part(name): offset for name, offset in to.items()}
                if isinstance(to, Mapping)
                else to
            )
            asked = offsets_for(self._kafka, chosen, at, self._timeout_s)
            offsets = found_offsets(self._kafka, asked, self._timeout_s)
            before = self._positions_to_undo(chosen)
            for part, offset in offsets.items():
                self._move(part, offset)
                if asked[part] == OFFSET_BEGINNING:
                    self._at_earliest.add(part)
                self._sought(part, offset, before.get(part))

    def pause(self, partitions: Iterable[P] | None = None) -> None:
        """Return no records of some partitions until `resume`.

        A member of a group keeps its paused partitions. A partition that comes from another member
        is not paused.

        Args:
            partitions: Numbers of the partitions; None means all partitions of this consumer.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If this consumer does not have a partition.
            LogError: If brokers do not answer.
        """
        with self._controlling("pausing"):
            chosen = self._chosen(partitions)
            self._pause_fetching([part for part in chosen if self._is_being_read(part)])
            self._paused.update(chosen)
            ready = list(self._ready)
            self._ready.clear()
            for message in ready:
                paused = part_of_message(message) in self._paused
                (self._held if paused else self._ready).append(message)

    def resume(self, partitions: Iterable[P] | None = None) -> None:
        """Return records of paused partitions again.

        Args:
            partitions: Numbers of the partitions; None means all partitions of this consumer.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If this consumer does not have a partition.
            LogError: If brokers do not answer.
        """
        with self._controlling("resuming"):
            chosen = self._paused.intersection(self._chosen(partitions))
            self._resume_fetching([part for part in chosen if self._is_being_read(part)])
            self._paused -= chosen
            self._return_held(chosen)

    @property
    def paused(self) -> frozenset[P]:
        """Numbers of the paused partitions."""
        return frozenset(self._sources.names_of(self._paused))

    def position(self) -> dict[P, int]:
        """Return the offset of the next record of each partition.

        Returns:
            Offsets by partition, for the partitions of this consumer.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If the consumer is closed.
            LogError: If brokers do not answer.
        """
        with self._controlling("finding positions"):
            return self._sources.by_name(self._positions_of(self._shown()))

    def committed(self) -> dict[P, int | None]:
        """Return the offset that the group has committed for each partition.

        Returns:
            Offsets by partition, for the partitions of this consumer; None for a partition without
            a committed offset.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If the consumer is not in a group.
            LogError: If brokers do not answer.
        """
        raise ConfigurationError(
            f"the consumer of {self._sources.description} has no group, and commits nothing",
            remedy="open it with group=..., or keep position() with the results",
        )

    def lag(self) -> dict[P, int]:
        """Return the number of offsets between the position and the end of each partition.

        Records of open transactions do not count.

        Returns:
            Lags by partition, as numbers of offsets, for the partitions of this consumer.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If the consumer is closed.
            LogError: If brokers do not answer.
        """
        with self._controlling("finding the lag"):
            ends = dict.fromkeys(self._shown(), OFFSET_END)
            latest = found_offsets(self._kafka, ends, self._timeout_s)
            at = self._positions_of(latest)
            behind = {part: max(0, end - at[part]) for part, end in latest.items()}
            return self._sources.by_name(behind)

    # What the kinds of consumers differ in -----------------------------------------------------

    @abstractmethod
    def _mine(self) -> Sequence[Part]:
        """The partitions that this consumer has, in order."""

    @abstractmethod
    def _read_again(self, part: Part, offset: int) -> None:
        """Read a partition that was read to its end."""

    def _positions_to_undo(self, partitions: Collection[Part]) -> dict[Part, int]:
        """With an open transaction: where its abort continues."""
        return {}

    def _sought(self, part: Part, offset: int, undone_at: int | None) -> None:
        """Reading continues there."""

    # ------------------------------------------------------------------------------------------

    @contextmanager
    def _controlling(self, doing: str) -> Iterator[None]:
        self._process.check()
        with self._turn:
            try:
                yield
            except KafkaException as error:
                raise log_error(error.args[0], f"{doing} in {self._sources.description}") from error
            except RuntimeError as error:  # of a closed client
                raise ConfigurationError(
                    f"the consumer of {self._sources.description} is closed",
                    remedy="use it inside its with block",
                ) from error

    def _shown(self) -> list[Part]:
        return self._sources.shown(self._mine())

    def _chosen(self, partitions: Iterable[P] | None) -> list[Part]:
        mine = self._shown()
        if partitions is None:
            return mine
        chosen = sorted({self._sources.part(name) for name in partitions})
        if missing := [part for part in chosen if part not in mine]:
            self._refuse(f"this consumer does not have partition {self._sources.label(missing[0])}")
        return chosen

    def _refuse(self, reason: str) -> NoReturn:
        mine = [self._sources.label(part) for part in self._shown()]
        more = f" and {len(mine) - NAMED_MAX} more" if len(mine) > NAMED_MAX else ""
        raise ConfigurationError(
            f"{reason} of {self._sources.description}",
            remedy=f"it has: {', '.join(mine[:NAMED_MAX])}{more}"
            if mine
            else "a group has not assigned any yet: call poll first, or seek in on_assigned",
        )

    def _return_held(self, parts: Collection[Part]) -> None:
        """Messages of these partitions are ready again."""
        again = [message for message in self._held if part_of_message(message) in parts]
        self._held = [message for message in self._held if part_of_message(message) not in parts]
        self._ready.extendleft(reversed(again))

    def _is_being_read(self, part: Part) -> bool:
        """Not read to its end yet."""
        return self._ends is None or part in self._ends

    def _pause_fetching(self, parts: Collection[Part]) -> None:
        if parts:
            self._kafka.pause([KafkaPartition(*part) for part in parts])

    def _resume_fetching(self, parts: Collection[Part]) -> None:
        if parts:
            self._kafka.resume([KafkaPartition(*part) for part in parts])

    def _positions_of(self, parts: Collection[Part]) -> dict[Part, int]:
        waiting: dict[Part, int] = {}
        for message in (*self._ready, *self._held):
            waiting.setdefault(part_of_message(message), message.offset() or 0)
        ended = {part: end for part, end in self._end_at.items() if not self._is_being_read(part)}
        known = {**ended, **self._began, **waiting}
        asked = [KafkaPartition(*part) for part in parts if part not in known]
        for spot in self._kafka.position(asked) if asked else ():
            if spot.error is not None:
                raise KafkaException(spot.error)
            known[part_of(spot)] = spot.offset
        return {part: known[part] for part in parts}

    def _move(self, part: Part, offset: int) -> None:
        """Read from this offset on."""
        if self._ends is None:
            self._seek_kafka(part, offset)
        elif offset >= self._end_at[part]:
            self._end(part)
        elif part in self._ends:
            self._seek_kafka(part, offset)
        else:
            self._ends[part] = self._end_at[part]
            self._read_again(part, offset)
        self._drop_ready({part})
        self._began[part] = offset
        self._at_earliest.discard(part)

    def _begin_at_earliest(self, part: Part) -> None:
        found = found_offsets(self._kafka, {part: OFFSET_BEGINNING}, self._timeout_s)
        self._move(part, found[part])
        self._at_earliest.add(part)

    def _seek_kafka(self, part: Part, offset: int) -> None:
        """librdkafka cannot seek in a partition that it has not begun to read, or whose offset is
        out of range: this partition is assigned anew. Raises `KafkaException`."""
        try:
            self._kafka.seek(KafkaPartition(*part, offset))
            return
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                raise
        self._assign_anew(part, offset)
        if part in self._paused or part in self._due:
            self._pause_fetching([part])

    def _assign_anew(self, part: Part, offset: int) -> None:
        spot = KafkaPartition(*part, offset)
        self._kafka.incremental_unassign([spot])
        self._kafka.incremental_assign([spot])


def _wanted(to: StartOf[P], partitions: Iterable[P] | None) -> list[P] | None:
    """The named partitions; None: all. Raises `ConfigurationError`."""
    check_offsets("to", to, tuple(ENDS))
    named = None if partitions is None else list(partitions)
    if not isinstance(to, Mapping):
        return named
    if named is not None and (unnamed := set(named) - to.keys()):
        raise ConfigurationError(
            f"no offset for partition {min(unnamed, key=str)}", remedy="name one for each partition"
        )
    return list(to) if named is None else named
