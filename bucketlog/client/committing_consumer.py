"""What a member of a group commits: by itself, by its caller, or by a transaction."""

from abc import ABC
from typing import Any, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.acknowledging import AcknowledgingConsumer
from bucketlog.client.committing import GroupCommits
from bucketlog.client.group_errors import GroupErrors
from bucketlog.client.membership import GroupMembership
from bucketlog.client.reading_range import part_of
from bucketlog.client.sources import P

K = TypeVar("K")
V = TypeVar("V")


class CommittingConsumer(AcknowledgingConsumer[K, V, P], ABC):
    """Member of a consumer group, which reads the partitions that the group assigns to it. Made by
    `Log.consumer` with a group.

    Attributes:
        topic: Topic that is read.
        group: Name of the consumer group.

    Examples:
        >>> with log.consumer(orders, group="billing", start="earliest", until="end") as consumer:
        ...     for record in consumer:
        ...         print(record.value.id)
        1
        2
        >>> log.groups.committed("billing", orders)[0].offset
        2
    """

    _membership: GroupMembership[P]
    _commits: GroupCommits
    _errors: GroupErrors
    _interrupted: bool

    def commit(self) -> None:
        """Commit the offsets of all returned records, and wait for the response.

        If you call this before you process the records, each record is processed at most once.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            ConfigurationError: If an open transaction commits the offsets.
            LogError: If the group has continued without this member (ILLEGAL_GENERATION,
                UNKNOWN_MEMBER_ID), or if brokers do not answer.
        """
        self._process.check()
        with self._turn:
            self._given.check_no_transaction()
            self._given.finish()
            self._commits.store(self._given)
            self._commits.commit()
            self._given.settle()

    def committed(self) -> dict[P, int | None]:
        """Look up the offsets that the group has committed.

        Returns:
            The offset of each partition that this consumer has; None where nothing is committed.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            LogError: If brokers do not answer.
        """
        with self._controlling("finding committed offsets"):
            asked = [KafkaPartition(*part) for part in self._shown()]
            rows = self._kafka.committed(asked, self._timeout_s) if asked else []
            for row in rows:
                if row.error is not None:
                    raise KafkaException(row.error)
            return {
                self._sources.name(part_of(row)): row.offset if row.offset >= 0 else None
                for row in rows
            }

    # For transactions that commit the offsets ---------------------------------------------------

    def note_transaction(self, transactional_id: str | None) -> None:
        """Set the transaction that commits the offsets of this consumer.

        Args:
            transactional_id: Id of the open transaction; None means that there is none.
        """
        self._given.transactional_id = transactional_id

    @property
    def commits_automatically(self) -> bool:
        """Whether the consumer commits without `commit` or a transaction."""
        return bool(self._membership.auto_commit)

    @property
    def has_lost_records(self) -> bool:
        """Whether partitions with returned, uncommitted records have moved to another member."""
        return self._given.has_lost_records

    def offsets_in_hand(self) -> tuple[list[KafkaPartition], Any]:
        """Return the offsets to commit after all returned records.

        Returns:
            Partitions with their offsets, and librdkafka's metadata of this member.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
        """
        spots = self._commits.spots(self._given.next_offsets())
        return spots, self._kafka.consumer_group_metadata()

    def settle(self) -> None:
        """Note that all returned records are committed."""
        self._given.settle()

    def rewind(self) -> None:
        """Read all returned, uncommitted records again.

        Raises:
            LogError: If a partition cannot be read from there.
        """
        try:
            for spot in self._commits.spots(self._given.settle()):
                self._move(part_of(spot), spot.offset)
        except KafkaException as error:
            self._interrupted = True
            raise self._errors.of(error.args[0], "reading records again") from error
