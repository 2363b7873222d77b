"""Opening a consumer: its options are checked, and it gets its parts."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bucketlog.client.admin import Admin
from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.membership import GroupMembership
from bucketlog.client.options import DISCOVERY_INTERVAL_S, consumer_config
from bucketlog.client.partition_consumer import PartitionConsumer
from bucketlog.client.poison import OnError, Poison
from bucketlog.client.reading_range import check_until
from bucketlog.client.retry_topics import RetryTopics
from bucketlog.client.settlement import Settlement
from bucketlog.client.sources import OneTopic, P, Part, Sources
from bucketlog.client.topic_search import TopicSearch
from bucketlog.client.topics import Topics
from bucketlog.log_format.errors import ConfigurationError, LogError

if TYPE_CHECKING:
    from bucketlog.client.traced_reads import TracedReads

K = TypeVar("K")
V = TypeVar("V")

_logger = logging.getLogger("bucketlog.consumer")


class ConsumerOpening:
    """Opens consumers of one log. `poison` makes what a consumer does with records that do not
    decode. `traced` makes the recorder of a group's spans, or of a consumer without a group."""

    def __init__(
        self,
        config: Mapping[str, Any],
        admin: Admin,
        topics: Topics,
        poison: Callable[[OnError], Poison],
        traced: "Callable[[str | None], TracedReads | None]",
    ) -> None:
        self._config = config
        self._admin = admin
        self._topics = topics
        self._poison = poison
        self._traced = traced

    def member(
        self, sources: Sources[K, V, P], group: str, options: dict[str, Any]
    ) -> GroupConsumer[K, V, P]:
        """`options`: those of `Log.consumer`. Raises `LogError`, `ConfigurationError`."""
        config, poison, bounds = self._common(sources, options, group)
        search = self._search(sources, options, bounds)
        membership: GroupMembership[P] = GroupMembership(group=group, **options)
        counts = {name: self._topics.partition_count(name) for name in sources.names}
        settlement = Settlement(self._admin, group, counts)
        return GroupConsumer(
            config,
            sources,
            poison,
            search,
            membership,
            settlement,
            self._prepare_retries,
            **bounds,
        )

    def partitions(
        self, sources: Sources[K, V, P], options: dict[str, Any]
    ) -> PartitionConsumer[K, V, P]:
        """Open a consumer without a group. Raises as `member`."""
        config, poison, bounds = self._common(sources, options, None)
        search = self._search(sources, options, bounds)
        return PartitionConsumer(
            config,
            sources,
            poison,
            search,
            start=options.get("start", "latest"),
            partitions=self._partitions(sources, options.get("partitions")),
            partitions_of=self._topics.partitions_of,
            **bounds,
        )

    def _common(
        self, sources: Sources[Any, Any, Any], options: dict[str, Any], group: str | None
    ) -> tuple[dict[str, Any], Poison, dict[str, Any]]:
        config = {**self._config, **consumer_config(options, group)}
        poison = self._poison(options.pop("on_error", "raise"))
        until = options.pop("until", None)
        check_until(until, sources)
        traced = self._traced(group)
        bounds = {"until": until, "timeout_s": self._admin.timeout_s, "traced": traced}
        return config, poison, bounds

    def _prepare_retries(self, retries: RetryTopics, partitions: int) -> Mapping[str, int]:
        """Create missing retry topics. Returns the number of partitions of each."""
        self._topics.partition_count(retries.dead_letter_topic)
        for name in retries.topics:
            try:
                self._topics.partition_count(name)
            except LogError as error:
                if error.code != "UNKNOWN_TOPIC_OR_PARTITION":
                    raise
                self._create(name, partitions)
        return {name: self._topics.partition_count(name) for name in retries.topics}

    def _create(self, name: str, partitions: int) -> None:
        try:
            self._topics.create(name, partitions=partitions)
        except LogError as error:
            if error.code != "TOPIC_ALREADY_EXISTS":  # another member was faster
                raise

    def _search(
        self, sources: Sources[Any, Any, Any], options: dict[str, Any], bounds: dict[str, Any]
    ) -> TopicSearch:
        """Also finds the topics that match now."""
        interval_s = options.pop("discovery_interval_s", DISCOVERY_INTERVAL_S)
        if not interval_s > 0:
            raise ConfigurationError(
                f"discovery_interval_s is {interval_s}", remedy="make it positive"
            )
        if not sources.is_growing:
            return TopicSearch(list, None)
        sources.update(self._names(), is_late=False)
        if not sources.topics:
            _logger.warning("no topic matches %s yet", sources.description)
        can_grow = bounds["until"] is None and options.get("partitions") is None
        return TopicSearch(self._names, interval_s if can_grow else None)

    def _names(self) -> list[str]:
        return [info.name for info in self._topics.list()]

    def _partitions(self, sources: Sources[Any, Any, P], wanted: Any) -> Sequence[Part]:
        """Return the chosen partitions in order; None: all. Raises `LogError`,
        `ConfigurationError`."""
        if wanted is None:
            named: Mapping[str, Any] = dict.fromkeys(sources.names)
        elif isinstance(sources, OneTopic):
            named = {sources.topic.name: wanted}
        else:
            by_topic: dict[str, list[int]] = {}
            for name, number in map(sources.part, wanted):
                by_topic.setdefault(name, []).append(number)
            if alien := by_topic.keys() - sources.topics.keys():
                raise ConfigurationError(
                    f"topic {min(alien)!r} is not one of {sources.description}",
                    remedy="name partitions of the topics that the consumer reads",
                )
            named = by_topic
        return [
            (name, number)
            for name, numbers in named.items()
            for number in self._topics.partitions_of(name, numbers)
        ]
