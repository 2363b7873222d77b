"""Copies topics, partitions and configs of the source to the target.

Invariant: a topic of the target is changed only if it is a mirror of the same topic of this source.
Names are not enough: a topic may be deleted and created again.
"""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin._config import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
)
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from bucketlog.client.admin import Admin
from bucketlog.client.broker_connection import Address
from bucketlog.client.kafka_errors import log_error
from bucketlog.log_format.errors import LogError
from bucketlog.mirror.copier import MirrorError
from bucketlog.mirror.source import Partition

MIRROR_SOURCE = "mirror.source"
_LIKE_SOURCE = frozenset({ConfigSource.DYNAMIC_TOPIC_CONFIG.value})
WRITE_LIMIT, MARKERS_BYTES, STOPPED_BYTES = "max.message.bytes", "78", "0"
"""A cut-over sets these values, in this order, to stop the producers of the source. The values are
never copied. A transaction marker has 78 bytes. If Kafka refuses a marker, the coordinator gives
up, and the transaction stays open until the coordinator moves or restarts."""
_STOPS = MARKERS_BYTES, STOPPED_BYTES
_UUID_BITS = 64
OF_SOURCE_ALONE = ("confluent.", "follower.replication", "leader.replication")
"""Prefixes of configs that are not copied: they name brokers, or belong to other products."""


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic of a cluster.

    `partitions` is the number of partitions. `leaders` has the address of each partition's leader,
    if the partition has a leader. `topic_id` has 16 bytes; None if the topic has no id, as before
    Kafka 2.8 (KIP-516).
    """

    partitions: int
    leaders: Mapping[int, Address]
    topic_id: bytes | None = None

    @property
    def id_text(self) -> str:
        """The topic id as Kafka's tools write it; empty if the topic has no id."""
        return base64.urlsafe_b64encode(self.topic_id or b"").decode().rstrip("=")

    def mirror_source(self, cluster_id: str) -> str:
        """The value of `mirror.source` for the mirror of this topic."""
        return f"{cluster_id}.{self.id_text}" if self.topic_id else cluster_id


class TopicMirror:
    """Copies topics that match `patterns`. `report` gets each config that is not copied, once."""

    def __init__(
        self,
        source: Admin,
        target: Admin,
        patterns: Sequence[str],
        report: Callable[[str], None],
    ) -> None:
        self._source, self._target = source, target
        self._patterns = patterns
        self._report = report
        self._refused: set[tuple[str, str]] = set()

    def source_id(self) -> str:
        try:
            return str(self._source.client.list_topics(timeout=self._source.timeout_s).cluster_id)
        except KafkaException as error:
            raise log_error(error.args[0], "asking the source for its cluster id") from error

    def in_source(self) -> dict[str, TopicSummary]:
        """The topics of the source that match the patterns, without internal topics."""
        return identified_topics_of(self._source, self._patterns)

    def sync(self) -> dict[str, TopicSummary]:
        """Create missing topics and partitions in the target, and set configs. Returns the topics
        of the source. Raises `LogError`, `MirrorError`."""
        source_id, wanted = self.source_id(), self.in_source()
        present = _summaries(self._target, "listing the target's topics")
        wanted_configs = configs_of(self._source, wanted)
        for name, topic in wanted.items():
            if name not in present:
                self._create(name, topic.partitions, topic.mirror_source(source_id))
        present_configs = configs_of(self._target, wanted)
        for name, topic in wanted.items():
            was = present_configs[name].get(MIRROR_SOURCE, "")
            wanted_source = topic.mirror_source(source_id)
            _check_mirror_source(name, was, topic, source_id)
            if name in present:
                self._sync_partitions(name, topic.partitions, present[name].partitions)
            if was == source_id != wanted_source:  # the source had no topic ids until now
                alter(self._target, name, [change_of(MIRROR_SOURCE, wanted_source)])
            self._set_configs(name, wanted_configs[name], present_configs[name])
        return wanted

    def _sync_partitions(self, name: str, wanted: int, present: int) -> None:
        if present > wanted:
            raise MirrorError(
                f"topic {name!r} has {present} partitions in the target, but {wanted} at the "
                "source: keys would get other partitions",
                remedy="delete the topic in the target, or add partitions at the source",
            )
        if present < wanted:
            add_partitions(self._target, name, wanted)

    def _create(self, name: str, partitions: int, mirror_source: str) -> None:
        topic = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=-1,
            config={MIRROR_SOURCE: mirror_source},
        )
        for future in self._target.client.create_topics([topic]).values():
            try:
                self._target.wait(future, f"creating topic {name!r}")
            except LogError as error:
                if error.code == "TOPIC_ALREADY_EXISTS":
                    continue
                if error.code == "INVALID_CONFIG":
                    raise MirrorError(
                        f"the target refuses the config {MIRROR_SOURCE}: {error.message}",
                        remedy="the target of a mirror must be bucketlog; to copy to Apache Kafka, "
                        "use `bucketlog export`",
                    ) from error
                raise

    def _set_configs(
        self, name: str, wanted: Mapping[str, str], present: Mapping[str, str]
    ) -> None:
        changes: list[ConfigEntry] = []
        for config, value in wanted.items():
            is_left_out = (config, value) in (
                *self._refused,
                *((WRITE_LIMIT, each) for each in _STOPS),
            ) or config.startswith(OF_SOURCE_ALONE)
            if present.get(config) != value and not is_left_out:
                changes.append(change_of(config, value))
        changes += [
            change_of(config, None)
            for config in present
            if config not in wanted and config != MIRROR_SOURCE
        ]
        for change in changes:
            self._apply(name, change)

    def _apply(self, name: str, change: ConfigEntry) -> None:
        """Change one config. If the target refuses the config, report it."""
        try:
            alter(self._target, name, [change])
        except LogError as error:
            if error.code not in ("INVALID_CONFIG", "INVALID_REQUEST"):
                raise
            self._refused.add((change.name, str(change.value)))
            self._report(f"config {change.name}={change.value} of {name!r} is not copied: {error}")

    def free(self, names: Iterable[str]) -> None:
        """Delete `mirror.source`, so that producers may write to the topics in the target."""
        resources = [
            ConfigResource(
                ResourceType.TOPIC, name, incremental_configs=[change_of(MIRROR_SOURCE, None)]
            )
            for name in names
        ]
        for resource, future in self._target.client.incremental_alter_configs(resources).items():
            self._target.wait(future, f"freeing topic {resource.name!r}")

    def leaders(self) -> dict[Partition, Address]:
        """The addresses of the leaders at the source, by partition."""
        return {
            Partition(name, number): address
            for name, topic in topics_of(self._source, self._patterns).items()
            for number, address in topic.leaders.items()
        }

    def write_limits(self) -> dict[str, str]:
        """The values of `max.message.bytes` by topic of the source, if set on the topic.

        A killed cut-over leaves its value at the source. Then, the earlier value is read from the
        copy in the target. Raises `LogError`.
        """
        names = topics_of(self._source, self._patterns)
        configs, copies = configs_of(self._source, names), configs_of(self._target, names)
        found = {
            name: copies[name].get(WRITE_LIMIT) if each.get(WRITE_LIMIT) in _STOPS else limit
            for name, each in configs.items()
            if (limit := each.get(WRITE_LIMIT)) is not None
        }
        return {name: value for name, value in found.items() if value is not None}

    def are_mirrors(self, topics: Mapping[str, TopicSummary]) -> dict[str, bool]:
        """Whether the target's topic is a mirror of the source's, for each of these topics that the
        target has. Raises `LogError`."""
        source_id = self.source_id()
        present = _summaries(self._target, "listing the target's topics")
        configs = configs_of(self._target, [name for name in topics if name in present])
        return {
            name: each.get(MIRROR_SOURCE) == topics[name].mirror_source(source_id)
            for name, each in configs.items()
        }

    def compacted(self, names: Iterable[str]) -> set[str]:
        """The topics among `names` that are compacted at the source. Raises `LogError`."""
        return compacted_of(self._source, names)


def compacted_of(admin: Admin, names: Iterable[str]) -> set[str]:
    """The topics among `names` that are compacted. Raises `LogError`."""
    configs = configs_of(admin, names)
    return {name for name, each in configs.items() if "compact" in each.get("cleanup.policy", "")}


def no_topic(patterns: Sequence[str]) -> MirrorError:
    return MirrorError(
        f"no topic of the source matches {' or '.join(map(repr, patterns))}",
        remedy="check --topics; topics whose names begin with __ are never copied",
    )


def is_wanted(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the shell patterns matches."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def topics_of(admin: Admin, patterns: Sequence[str]) -> dict[str, TopicSummary]:
    """The topics that match the patterns, without their ids, and without internal topics.

    Raises `LogError`.
    """
    return {
        name: topic
        for name, topic in _summaries(admin, "listing topics").items()
        if not name.startswith("__") and is_wanted(name, patterns)
    }


def identified_topics_of(admin: Admin, patterns: Sequence[str]) -> dict[str, TopicSummary]:
    """As `topics_of`, with the ids of the topics. Raises `LogError`."""
    topics = topics_of(admin, patterns)
    ids = topic_ids(admin, topics)
    return {name: replace(topics[name], topic_id=each) for name, each in ids.items()}


def replaced_topic(
    topics: Mapping[str, TopicSummary], ids: Mapping[str, bytes | None]
) -> str | None:
    """Describe a topic that is deleted or was created again; None if there is no such topic.

    `topics` were there before. `ids` are the topic ids of now.
    """
    for name, topic in topics.items():
        if name not in ids:
            return f"{name!r} is deleted"
        if ids[name] != topic.topic_id:
            return f"{name!r} was created again"
    return None


def changed_topic(
    topics: Mapping[str, TopicSummary], there: Mapping[str, TopicSummary]
) -> str | None:
    """Describe a topic that is deleted, was created again, or has another number of partitions;
    None if there is no such topic."""
    replaced = replaced_topic(topics, {name: topic.topic_id for name, topic in there.items()})
    if replaced is not None:
        return replaced
    for name, topic in topics.items():
        if there[name].partitions != topic.partitions:
            return f"{name!r} has {there[name].partitions} partitions instead of {topic.partitions}"
    return None


def _check_mirror_source(name: str, value: str, topic: TopicSummary, source_id: str) -> None:
    """Raise `MirrorError` if the target's topic is not a mirror of `topic`. If `mirror.source` has
    no topic id, the mirror is of the topic that the source has now."""
    if value in (source_id, topic.mirror_source(source_id)):
        return
    if topic.topic_id is None and value.startswith(f"{source_id}."):
        return
    if value.startswith(f"{source_id}."):
        raise MirrorError(
            f"topic {name!r} was deleted at the source and created again: the target has the "
            "records of the deleted topic",
            remedy="delete the topic in the target, and mirror the topic again",
        )
    raise MirrorError(
        f"topic {name!r} of the target is not a mirror of cluster {source_id}: a cut-over has "
        "freed the topic, or somebody else has created it",
        remedy="omit the topic from --topics. Delete the topic in the target only if nobody needs "
        "its records",
    )


def add_partitions(admin: Admin, topic: str, count: int) -> None:
    """Raise the number of partitions to `count`. Raises `LogError`."""
    for future in admin.client.create_partitions([NewPartitions(topic, count)]).values():
        admin.wait(future, f"adding partitions to {topic!r}")


def alter(admin: Admin, topic: str, changes: Sequence[ConfigEntry]) -> None:
    """Change some configs of a topic. Raises `LogError`."""
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=list(changes))
    for future in admin.client.incremental_alter_configs([resource]).values():
        admin.wait(future, f"setting configs of {topic!r}")


def change_of(name: str, value: str | None) -> ConfigEntry:
    """The change that sets a config. With the value None, the change deletes the config."""
    kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value or "", incremental_operation=kind)


def _summaries(admin: Admin, doing: str) -> dict[str, TopicSummary]:
    try:
        found = admin.client.list_topics(timeout=admin.timeout_s)
    except KafkaException as error:
        raise log_error(error.args[0], doing) from error
    brokers = {each.id: (str(each.host), int(each.port)) for each in found.brokers.values()}
    return {
        str(name): TopicSummary(
            len(topic.partitions),
            {
                number: brokers[part.leader]
                for number, part in topic.partitions.items()
                if part.leader in brokers
            },
        )
        for name, topic in found.topics.items()
        if topic.error is None
    }


def topic_ids(admin: Admin, names: Iterable[str]) -> dict[str, bytes | None]:
    """The topic ids by name, without deleted topics. None: the topic has no id. Raises
    `LogError`."""
    names = list(names)
    if not names:
        return {}
    found = {}
    futures = admin.client.describe_topics(TopicCollection(names), request_timeout=admin.timeout_s)
    for name, future in futures.items():
        try:
            topic_id = future.result().topic_id
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise log_error(error.args[0], f"describing topic {name!r}") from error
        found[str(name)] = _uuid_bytes(topic_id)
    return found


def _uuid_bytes(topic_id: Any) -> bytes | None:
    """The bytes of a topic id; None for the zero UUID, which means that the topic has no id.
    `topic_id` is a `Uuid` of confluent-kafka, whose stub has no methods."""
    halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    raw = b"".join((half % (1 << _UUID_BITS)).to_bytes(_UUID_BITS // 8) for half in halves)
    return raw if any(raw) else None


def configs_of(admin: Admin, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The configs that are set on the topics themselves, by topic. Raises `LogError`."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    found = {}
    for resource, future in admin.client.describe_configs(resources).items():
        entries: Mapping[str, Any] = admin.wait(future, f"reading configs of {resource.name!r}")
        found[str(resource.name)] = {
            entry.name: str(entry.value)
            for entry in entries.values()
            if _source_of(entry) in _LIKE_SOURCE and entry.value is not None
        }
    return found


def _source_of(entry: Any) -> int:
    return int(getattr(entry.source, "value", entry.source))
