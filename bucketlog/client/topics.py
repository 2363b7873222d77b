"""Topic administration: create, ensure, configure, list, describe, delete."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin._config import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from bucketlog.client.admin import EARLIEST, LATEST, Admin
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.retention import Retention, retention_ms
from bucketlog.client.topic import Topic
from bucketlog.log_format.errors import ConfigurationError, LogError

BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class TopicInfo:
    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """`earliest` is the first offset kept, `latest` the next one to be given (high watermark)."""

    partition: int
    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class TopicDetails:
    """`configs` has the effective values by Kafka's names. `overrides` has the names of those that
    are set for this topic; the others are brokers' defaults."""

    name: str
    partitions: tuple[PartitionInfo, ...]
    configs: dict[str, str]
    overrides: frozenset[str]


class Topics:
    """`log.topics`. A topic is given by name or as a `Topic`. Raises `LogError`."""

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
        """Create a topic; without `partitions` the broker's default decides.

        `retention` is how long records are kept: `"7d"`, `"forever"`, a timedelta; the rest is for
        `configs`, by Kafka's names. Raises `LogError` TOPIC_ALREADY_EXISTS. A dry run raises what
        the broker says to it, and has 0 partitions where the broker's default would decide.
        """
        name = name_of(topic)
        if partitions is not None and partitions < 1:
            raise ConfigurationError(f"{partitions} partitions", remedy="ask for at least one")
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
        return self._info(name)

    def ensure(
        self,
        topic: str | Topic[Any, Any],
        *,
        partitions: int | None = None,
        retention: Retention | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        """Create the topic unless it exists.

        One that exists is left as it is. Where it has fewer partitions than asked for, or another
        retention, `ConfigurationError` is raised rather than every key's partition changed or
        records deleted; `configs` are for a new one only.
        """
        try:
            return self.create(topic, partitions=partitions, retention=retention, configs=configs)
        except LogError as error:
            if error.code != "TOPIC_ALREADY_EXISTS":
                raise
        info = self._info(name_of(topic))
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
        dry_run: bool = False,
    ) -> None:
        """Set these configs; others stay. A dry run raises what the broker says to it."""
        name = name_of(topic)
        entries = [
            ConfigEntry(key, text, incremental_operation=AlterConfigOpType.SET)
            for key, text in _with_retention(retention, configs).items()
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
        """Raise the number of partitions to `total`. Later records of a key may move.

        A dry run raises what the broker says to it.
        """
        name = name_of(topic)
        futures = self._admin.client.create_partitions(
            [NewPartitions(name, total)],
            request_timeout=self._admin.timeout_s,
            validate_only=dry_run,
        )
        self._admin.wait(futures[name], f"adding partitions to topic {name!r}")
        return self._info(name)

    def list(self) -> list[TopicInfo]:
        """All topics, by name."""
        metadata = self._metadata(None, "listing topics")
        return [
            TopicInfo(name, len(found.partitions))
            for name, found in sorted(metadata.topics.items())
        ]

    def describe(self, topic: str | Topic[Any, Any]) -> TopicDetails:
        """Partitions with their offsets, and configs. Raises `LogError` where there is none."""
        name = name_of(topic)
        doing = f"describing topic {name!r}"
        count = self._info(name).partitions
        earliest = self._admin.offsets(name, range(count), EARLIEST, doing)
        latest = self._admin.offsets(name, range(count), LATEST, doing)
        entries = self._configs(name, doing)
        return TopicDetails(
            name,
            tuple(PartitionInfo(part, earliest[part], latest[part]) for part in range(count)),
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
        """How many partitions it has now. Raises `LogError` if there is no such topic."""
        return self._info(name_of(topic)).partitions

    def delete(self, topic: str | Topic[Any, Any]) -> None:
        """Delete a topic and its records. Raises `LogError` if there is none."""
        name = name_of(topic)
        futures = self._admin.client.delete_topics([name], request_timeout=self._admin.timeout_s)
        self._admin.wait(futures[name], f"deleting topic {name!r}")

    def _info(self, name: str) -> TopicInfo:
        """Any broker answers, also while the cluster has no controller (DescribeTopics would wait
        for one)."""
        doing = f"looking up topic {name!r}"
        found = self._metadata(name, doing).topics[name]
        if found.error is not None:
            raise log_error(found.error, doing)
        return TopicInfo(name, len(found.partitions))

    def _metadata(self, name: str | None, doing: str) -> Any:
        try:
            return self._admin.client.list_topics(name, timeout=self._admin.timeout_s)
        except KafkaException as error:
            raise log_error(error.args[0], doing) from error


def name_of(topic: str | Topic[Any, Any]) -> str:
    return topic if isinstance(topic, str) else topic.name


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
