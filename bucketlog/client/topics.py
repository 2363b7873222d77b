"""Topic administration: create, ensure, configure, list, describe, delete."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin._config import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from bucketlog.client.admin import EARLIEST, LATEST, Admin, at_time
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.moving_leader import settling
from bucketlog.client.names import whole_name
from bucketlog.client.retention import Retention, retention_ms
from bucketlog.client.topic import Topic
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import ConfigurationError, LogError

BROKER_DEFAULT = -1
PARTITIONS_MAX = 100_000
"""librdkafka's limit."""
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """Name of a topic and its number of partitions. Returned by `Topics.list`.

    Attributes:
        name: Name of the topic.
        partitions: Number of partitions.

    Examples:
        >>> log.topics.list()
        [TopicInfo(name='orders', partitions=1)]
    """

    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Offsets of a partition. Returned by `Topics.describe`.

    Attributes:
        partition: Number of the partition.
        earliest: First offset that is kept.
        latest: Offset of the next record (high watermark).

    Examples:
        >>> log.topics.describe(orders).partitions[0]
        PartitionInfo(partition=0, earliest=0, latest=2)
    """

    partition: int
    earliest: int
    latest: int


@dataclass(frozen=True, slots=True, repr=False)
class TopicDetails(DisplayedObject):
    """Partitions and configs of a topic. Returned by `Topics.describe`.

    Attributes:
        name: Name of the topic.
        partitions: Offsets of each partition.
        configs: Effective values by Kafka's names.
        overrides: Names of the configs that are set for this topic; brokers have the defaults of
            others.

    Examples:
        >>> log.topics.describe(orders).configs["cleanup.policy"]
        'delete'
    """

    name: str
    partitions: tuple[PartitionInfo, ...]
    configs: dict[str, str]
    overrides: frozenset[str]

    def _description(self) -> Description:
        own = ", ".join(f"{name}={self.configs[name]}" for name in sorted(self.overrides)[:10])
        return Description(
            {"name": self.name, "partitions": len(self.partitions), "overrides": own or None},
            ("partition", "earliest", "latest"),
            [(each.partition, each.earliest, each.latest) for each in self.partitions],
        )


@dataclass(frozen=True, slots=True)
class FirstRecord:
    """Offset and time of a record. Returned by `Topics`.

    Attributes:
        offset: Offset of the record in its partition.
        timestamp_ms: Time of the record, in milliseconds since 1970 UTC.

    Examples:
        >>> from bucketlog.client.topics import FirstRecord
        >>> FirstRecord(offset=3, timestamp_ms=1_700_000_000_000).offset
        3
    """

    offset: int
    timestamp_ms: int


class Topics:
    """Administration of topics. Used for `log.topics`.

    Examples:
        >>> log.topics.create("bills", partitions=3, retention="7d")
        TopicInfo(name='bills', partitions=3)
        >>> log.topics.add_partitions("bills", 6).partitions
        6
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def create(
        self,
        topic: str | Topic[Any, Any],
        *,
        partitions: int | None = None,
        retention: Retention | None = None,
        configs: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> TopicInfo:
        """Create a topic.

        Args:
            topic: Name of the topic, or a `Topic`.
            partitions: Number of partitions; None means the broker's default.
            retention: Time for which records are kept: text such as "7d" or "12h", "forever", or a
                timedelta. None means the broker's default.
            configs: Further configs by Kafka's names; None means no further ones.
            dry_run: Whether the broker only checks the request.

        Returns:
            Name and number of partitions. After a dry run without `partitions`, the number is 0.

        Raises:
            ConfigurationError: If an argument is not valid.
            LogError: With the code TOPIC_ALREADY_EXISTS if the topic exists, or if the broker
                refuses it.
        """
        name = name_of(topic)
        if partitions is not None:
            _check_partitions(partitions)
        new = NewTopic(
            name,
            BROKER_DEFAULT if partitions is None else partitions,
            BROKER_DEFAULT,
            config=_with_retention(retention, configs),
        )
        futures = self._admin.client.create_topics(
            [new], request_timeout=self._admin.timeout_s, validate_only=dry_run
        )
        self._admin.wait(futures[name], f"creating topic {name!r}")
        if dry_run:
            return TopicInfo(name, partitions or 0)
        return self._info_once_known(name, 1 if partitions is None else partitions)

    def ensure(
        self,
        topic: str | Topic[Any, Any],
        *,
        partitions: int | None = None,
        retention: Retention | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        """Create a topic unless it exists. An existing topic is not changed.

        Args:
            topic: Name of the topic, or a `Topic`.
            partitions: Least number of partitions; None means the broker's default.
            retention: Time for which records are kept: text such as "7d" or "12h", "forever", or a
                timedelta. None means the broker's default.
            configs: Configs of a new topic by Kafka's names; None means no further ones.

        Returns:
            Name and number of partitions.

        Raises:
            ConfigurationError: If an existing topic has fewer partitions, or another retention.
            LogError: If the broker refuses the topic.
        """
        try:
            return self.create(topic, partitions=partitions, retention=retention, configs=configs)
        except LogError as error:
            if error.code != "TOPIC_ALREADY_EXISTS":
                raise
        info = self._info_once_known(name_of(topic), 1)
        if partitions is not None and info.partitions < partitions:
            raise ConfigurationError(
                f"topic {info.name!r} has {info.partitions} partitions, not {partitions}",
                remedy="topics.add_partitions does it, and moves keys to other partitions",
            )
        if retention is not None:
            self._check_retention(info.name, retention_ms(retention))
        return info

    def configure(
        self,
        topic: str | Topic[Any, Any],
        configs: Mapping[str, str] | None = None,
        *,
        retention: Retention | None = None,
        unset: Iterable[str] = (),
        dry_run: bool = False,
    ) -> None:
        """Set configs of a topic. Other configs keep their values.

        Args:
            topic: Name of the topic, or a `Topic`.
            configs: Values by Kafka's names; None means no values.
            retention: Time for which records are kept: text such as "7d" or "12h", "forever", or a
                timedelta. None means no change.
            unset: Names of configs that get the broker's default again.
            dry_run: Whether the broker only checks the request.

        Raises:
            ConfigurationError: If the retention is not valid.
            LogError: If the topic does not exist, or if the broker refuses a value.
        """
        name = name_of(topic)
        given = _with_retention(retention, configs)
        removed = list(dict.fromkeys(unset))
        if both := sorted(given.keys() & removed):
            raise ConfigurationError(
                f"the config {both[0]} is set and unset", remedy="leave one of them out"
            )
        entries = [
            *(
                ConfigEntry(key, text, incremental_operation=AlterConfigOpType.SET)
                for key, text in given.items()
            ),
            *(
                ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
                for key in removed
            ),
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        futures = self._admin.client.incremental_alter_configs(
            [resource], request_timeout=self._admin.timeout_s, validate_only=dry_run
        )
        self._admin.wait(futures[resource], f"configuring topic {name!r}")

    def _check_retention(self, name: str, wanted_ms: int) -> None:
        has_ms = int(self._configs(name, f"looking up topic {name!r}")["retention.ms"].value)
        if has_ms != wanted_ms:
            raise ConfigurationError(
                f"topic {name!r} keeps records for {has_ms} ms, not {wanted_ms}",
                remedy="topics.configure(topic, retention=...) changes it; a shorter one deletes",
            )

    def add_partitions(
        self, topic: str | Topic[Any, Any], total: int, *, dry_run: bool = False
    ) -> TopicInfo:
        """Raise the number of partitions. Later records of a key may go to another partition.

        Args:
            topic: Name of the topic, or a `Topic`.
            total: Number of partitions afterwards.
            dry_run: Whether the broker only checks the request.

        Returns:
            Name and number of partitions.

        Raises:
            LogError: If the topic does not exist, or has as many partitions.
        """
        name = name_of(topic)
        _check_partitions(total)
        futures = self._admin.client.create_partitions(
            [NewPartitions(name, total)],
            request_timeout=self._admin.timeout_s,
            validate_only=dry_run,
        )
        self._admin.wait(futures[name], f"adding partitions to topic {name!r}")
        return self._info(name) if dry_run else self._info_once_known(name, total)

    def list(self) -> list[TopicInfo]:
        """List all topics, by name.

        Returns:
            Name and number of partitions of each topic.

        Raises:
            LogError: If no broker answers.
        """
        metadata = self._admin.metadata(None, "listing topics")
        return [
            TopicInfo(name, len(found.partitions))
            for name, found in sorted(metadata.topics.items())
        ]

    def describe(self, topic: str | Topic[Any, Any]) -> TopicDetails:
        """Describe a topic: the offsets of its partitions, and its configs.

        Args:
            topic: Name of the topic, or a `Topic`.

        Returns:
            Partitions and configs.

        Raises:
            LogError: With the code UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        name = name_of(topic)
        offsets = self.offsets_of(name)
        entries = self._configs(name, f"describing topic {name!r}")
        return TopicDetails(
            name,
            offsets,
            {entry.name: entry.value or "" for entry in entries.values()},
            frozenset(
                entry.name
                for entry in entries.values()
                if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
            ),
        )

    def _configs(self, name: str, doing: str) -> Any:
        resource = ConfigResource(ResourceType.TOPIC, name)
        futures = self._admin.client.describe_configs(
            [resource], request_timeout=self._admin.timeout_s
        )
        return self._admin.wait(futures[resource], doing)

    def partition_count(self, topic: str | Topic[Any, Any]) -> int:
        """Return the number of partitions of a topic.

        Args:
            topic: Name of the topic, or a `Topic`.

        Returns:
            The number of partitions.

        Raises:
            LogError: With the code UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        return self._info(name_of(topic)).partitions

    def partitions_of(
        self, topic: str | Topic[Any, Any], wanted: Iterable[int] | None = None
    ) -> tuple[int, ...]:
        """Return the numbers of partitions, in order, and check that they exist.

        Args:
            topic: Name of the topic, or a `Topic`.
            wanted: Numbers of the partitions; None means all partitions of the topic.

        Returns:
            The numbers, each once.

        Raises:
            ConfigurationError: If the topic does not have a partition.
            LogError: If the topic does not exist.
        """
        name = name_of(topic)
        count = self._info(name).partitions
        chosen = tuple(range(count) if wanted is None else sorted(set(wanted)))
        if missing := [part for part in chosen if not 0 <= part < count]:
            raise ConfigurationError(
                f"topic {name!r} has no partition {missing[0]}",
                remedy=f"it has partitions 0 to {count - 1}",
            )
        return chosen

    def offsets_of(
        self, topic: str | Topic[Any, Any], wanted: Iterable[int] | None = None
    ) -> tuple[PartitionInfo, ...]:
        """Return the earliest and latest offset of partitions.

        Args:
            topic: Name of the topic, or a `Topic`.
            wanted: Numbers of the partitions; None means all partitions of the topic.

        Returns:
            Offsets of each partition, in order.

        Raises:
            ConfigurationError: If the topic does not have a partition.
            LogError: If the topic does not exist.
        """
        name = name_of(topic)
        chosen = self.partitions_of(name, wanted)
        doing = f"describing topic {name!r}"
        earliest = self._admin.offsets(name, chosen, EARLIEST, doing)
        latest = self._admin.offsets(name, chosen, LATEST, doing)
        return tuple(PartitionInfo(part, earliest[part], latest[part]) for part in chosen)

    def offsets_at(
        self, topic: str | Topic[Any, Any], partitions: Iterable[int], when: datetime
    ) -> dict[int, int | None]:
        """Return the first offset at or after a time, for each partition.

        Args:
            topic: Name of the topic, or a `Topic`.
            partitions: Numbers of the partitions.
            when: Time to look for.

        Returns:
            Offsets by partition; None for a partition without such a record.

        Raises:
            LogError: If the topic does not exist.
        """
        name = name_of(topic)
        doing = f"finding a time in topic {name!r}"
        found = self._admin.offsets(name, partitions, at_time(when), doing)
        return {part: None if offset < 0 else offset for part, offset in found.items()}

    def first_records_at(
        self, topic: str | Topic[Any, Any], partitions: Iterable[int], when: datetime
    ) -> dict[int, FirstRecord | None]:
        """Return the first record at or after a time, for each partition.

        Args:
            topic: Name of the topic, or a `Topic`.
            partitions: Numbers of the partitions.
            when: Time to look for.

        Returns:
            Offset and time of the record by partition; None for a partition without such a record.

        Raises:
            LogError: If the topic does not exist.
        """
        name = name_of(topic)
        doing = f"finding a time in topic {name!r}"
        found = self._admin.offsets_and_times(name, partitions, at_time(when), doing)
        return {
            part: None if offset < 0 else FirstRecord(offset, timestamp_ms)
            for part, (offset, timestamp_ms) in found.items()
        }

    def trim(self, topic: str | Topic[Any, Any], before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records of partitions before an offset (KIP-107).

        Args:
            topic: Name of the topic, or a `Topic`.
            before: Offset of the first record to keep, by partition.

        Returns:
            New earliest offsets by partition.

        Raises:
            LogError: With the code OFFSET_OUT_OF_RANGE if an offset is after the latest one.
        """
        name = name_of(topic)
        spots = [KafkaPartition(name, part, offset) for part, offset in before.items()]
        if not spots:
            return {}
        futures = self._admin.client.delete_records(spots, request_timeout=self._admin.timeout_s)
        doing = f"deleting records of topic {name!r}"
        return {
            spot.partition: self._admin.wait(future, doing).low_watermark
            for spot, future in futures.items()
        }

    def delete(self, topic: str | Topic[Any, Any]) -> None:
        """Delete a topic and its records.

        Args:
            topic: Name of the topic, or a `Topic`.

        Raises:
            LogError: With the code UNKNOWN_TOPIC_OR_PARTITION if the topic does not exist.
        """
        name = name_of(topic)
        futures = self._admin.client.delete_topics([name], request_timeout=self._admin.timeout_s)
        self._admin.wait(futures[name], f"deleting topic {name!r}")

    def _info(self, name: str) -> TopicInfo:
        """Any broker answers, also while the cluster has no controller (DescribeTopics would wait
        for one)."""
        doing = f"looking up topic {name!r}"
        found = self._admin.metadata(name, doing).topics[name]
        if found.error is not None:
            raise log_error(found.error, doing)
        return TopicInfo(name, len(found.partitions))

    def _info_once_known(self, name: str, partitions: int) -> TopicInfo:
        """Like `_info`, once the broker that answers knows the topic with this many partitions.
        Another broker made the change, and brokers learn of changes within moments."""
        retries = settling(self._admin.timeout_s)
        while True:
            try:
                info = self._info(name)
            except LogError as error:
                if error.code != UNKNOWN_TOPIC:
                    raise
                missing = error
            else:
                if info.partitions >= partitions:
                    return info
                missing = LogError(
                    f"topic {name!r} still has {info.partitions} partitions, not {partitions}",
                    code=UNKNOWN_TOPIC,
                    kafka_code=KafkaError.UNKNOWN_TOPIC_OR_PART,
                    retriable=True,
                    remedy="describe the topic again in a moment",
                )
            time.sleep(retries.pause_s(missing))


def name_of(topic: str | Topic[Any, Any]) -> str:
    """The name of a topic. Raises `ConfigurationError` for a name with a NUL."""
    return whole_name(topic if isinstance(topic, str) else topic.name, "topic")


def _check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise ConfigurationError(
            f"{partitions} partitions", remedy=f"ask for 1 to {PARTITIONS_MAX} partitions"
        )


def _with_retention(
    retention: Retention | None, configs: Mapping[str, str] | None
) -> dict[str, str]:
    given = dict(configs or {})
    if retention is None:
        return given
    if "retention.ms" in given:
        raise ConfigurationError(
            "retention and the config retention.ms say the same", remedy="give one of them"
        )
    return given | {"retention.ms": str(retention_ms(retention))}
