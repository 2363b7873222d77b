"""Creating, growing and deleting topics: validate, bring the fact into the log, report its code.

Source: Kafka's ReplicationControlManager (createTopic, createPartitions, deleteTopics).
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, Protocol
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import InvalidConfigError, InvalidTopicNameError, SequencerError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.facts import (
    PartitionsAdded,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicFact,
)
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.internal_topics import RESERVED_TOPICS
from bucketlog.metadata.sequencer.requests import FactStatus, WantedTopicChange
from bucketlog.metadata.topic_checks import check_configs, check_topic_name
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.partition_quota import PartitionQuota

logger = logging.getLogger(__name__)


class TopicChangeResult(NamedTuple):
    """The result of a change. `throttle_s`: the client may retry the change after this time."""

    error: ErrorCode
    message: str | None
    topic: TopicState | None
    throttle_s: float = 0


class ChangeQuota(Protocol):
    """The quota of one client (controller_mutation_rate)."""

    def changes_wait_s(self) -> float: ...

    def changed(self, partitions: int) -> None: ...


class ChangeTerms(NamedTuple):
    """Terms of a change. `is_strict`: the client knows THROTTLING_QUOTA_EXCEEDED. `quota` None: the
    client has none."""

    is_strict: bool = False
    quota: ChangeQuota | None = None


USUAL_TERMS = ChangeTerms()


class TopicFactCommitter(Protocol):
    async def commit_fact(self, fact: TopicFact, wanted: WantedTopicChange) -> FactStatus: ...


class TopicChanges:
    """`new_topic_id` gives fresh ids; `partitions_max` bounds a topic. A `deadline` is of the event
    loop's clock: a change that is not visible by then continues, but is not waited for. `by` is the
    principal that asks, which the fact names.

    A change above the quota is refused with THROTTLING_QUOTA_EXCEEDED if its `terms` are
    strict. Otherwise the change waits for the quota, at most until the deadline, because the client
    does not know the error (KIP-599)."""

    def __init__(
        self,
        *,
        view: View,
        committer: TopicFactCommitter,
        new_topic_id: Callable[[], UUID],
        partitions_default: int,
        partitions_max: int,
        cluster_partitions_max: int,
        quota: PartitionQuota,
        topic_defaults: TopicDefaults,
    ) -> None:
        self._view = view
        self._topic_defaults = topic_defaults
        self._committer = committer
        self._new_topic_id = new_topic_id
        self._partitions_default = partitions_default
        self._partitions_max = partitions_max
        self._cluster_partitions_max = cluster_partitions_max
        self._quota = quota
        self._partitions_on_their_way = 0

    async def create(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
        deadline: float | None = None,
        terms: ChangeTerms = USUAL_TERMS,
        by: str | None = None,
    ) -> TopicChangeResult:
        """Create a topic. `partitions` -1 takes the default (KIP-464)."""
        problem = self.problem(name, partitions, replication_factor)
        if problem is not None:
            return problem
        try:
            accepted = check_configs(configs or {})
            self._topic_defaults.check(accepted)
        except InvalidConfigError as error:
            return TopicChangeResult(kafka_code(error, ApiFamily.TOPICS), error.message, None)
        count = self._partitions_default if partitions == -1 else partitions
        if self._total_partitions() + count > self._cluster_partitions_max:
            return self._too_many()
        topic_id = self._new_topic_id()
        fact = TopicCreated(topic_id=topic_id, name=name, partitions=count, configs=accepted, by=by)
        topic = TopicState(TopicId(topic_id.bytes), name, count, accepted)
        if validate_only:
            return TopicChangeResult(ErrorCode.none, None, topic)
        wanted = WantedTopicChange("create", name, topic.topic_id, count)
        with self._on_their_way(count):
            throttled = await self._throttled(count, deadline, terms)
            if throttled is not None:
                return throttled
            return await self._commit(fact, wanted, topic, deadline)

    def problem(
        self, name: str, partitions: int = -1, replication_factor: int = -1
    ) -> TopicChangeResult | None:
        """Why a new topic is refused, its configs aside."""
        try:
            check_topic_name(name)
        except InvalidTopicNameError as error:
            return TopicChangeResult(kafka_code(error, ApiFamily.TOPICS), str(error), None)
        if name in RESERVED_TOPICS:
            text = f"Creation of internal topic {name} is prohibited."
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
        if self._view.topic(name) is not None:
            return TopicChangeResult(
                ErrorCode.topic_already_exists, f"Topic '{name}' already exists.", None
            )
        other = self._view.colliding_name(name)
        if other is not None:
            return TopicChangeResult(
                ErrorCode.invalid_topic_exception,
                f"Topic '{name}' collides with existing topic: {other}",
                None,
            )
        if partitions != -1 and not 0 < partitions <= self._partitions_max:
            return TopicChangeResult(
                ErrorCode.invalid_partitions,
                f"{partitions} partitions; 1 to {self._partitions_max} are accepted "
                "(BUCKETLOG_PARTITIONS_MAX)",
                None,
            )
        if replication_factor == 0 or replication_factor < -1:
            return TopicChangeResult(
                ErrorCode.invalid_replication_factor,
                "Replication factor must be larger than 0, or -1 to use the default value.",
                None,
            )
        return None

    def _total_partitions(self) -> int:
        """Return the number of partitions. Partitions that are being created count, because many
        topics may be requested at once."""
        return self._view.partition_count + self._partitions_on_their_way

    @contextmanager
    def _on_their_way(self, partitions: int) -> Iterator[None]:
        self._partitions_on_their_way += partitions
        try:
            yield
        finally:
            self._partitions_on_their_way -= partitions

    def _too_many(self) -> TopicChangeResult:
        return TopicChangeResult(
            ErrorCode.policy_violation,
            f"The cluster may have {self._cluster_partitions_max} partitions in all "
            "(BUCKETLOG_CLUSTER_PARTITIONS_MAX).",
            None,
        )

    async def grow(
        self,
        name: str,
        partitions: int,
        *,
        refused: TopicChangeResult | None = None,
        validate_only: bool = False,
        deadline: float | None = None,
        terms: ChangeTerms = USUAL_TERMS,
        by: str | None = None,
    ) -> TopicChangeResult:
        topic = self._view.topic(name)
        if topic is None:
            return _unknown(name)
        if not topic.partitions < partitions <= self._partitions_max:
            return TopicChangeResult(
                ErrorCode.invalid_partitions,
                f"Topic {name} has {topic.partitions} partitions, {partitions} were asked for; "
                f"at most {self._partitions_max} are accepted (BUCKETLOG_PARTITIONS_MAX).",
                topic,
            )
        if refused is not None:
            return refused
        added = partitions - topic.partitions
        if self._total_partitions() + added > self._cluster_partitions_max:
            return self._too_many()
        grown = TopicState(topic.topic_id, name, partitions, topic.configs)
        if validate_only:
            return TopicChangeResult(ErrorCode.none, None, grown)
        fact = PartitionsAdded(
            topic_id=UUID(bytes=topic.topic_id), name=name, partitions=partitions, by=by
        )
        wanted = WantedTopicChange("grow", name, topic.topic_id, partitions)
        with self._on_their_way(added):
            throttled = await self._throttled(added, deadline, terms)
            if throttled is not None:
                return throttled
            return await self._commit(fact, wanted, grown, deadline)

    async def configure(
        self,
        topic: TopicState,
        configs: Mapping[str, str | None],
        *,
        replaces_all: bool = False,
        validate_only: bool = False,
        deadline: float | None = None,
        by: str | None = None,
    ) -> TopicChangeResult:
        """Change configs of a topic. A value of None restores a config's default; as in Kafka, the
        name may be unknown. Returns `INVALID_CONFIG` if a name or value is refused: then nothing is
        changed."""
        try:
            given = check_configs({k: v for k, v in configs.items() if v is not None})
            unset = [name for name in configs if name in TOPIC_CONFIGS and name not in given]
            fact = TopicConfigured(
                topic_id=UUID(bytes=topic.topic_id),
                name=topic.name,
                configs=given | dict.fromkeys(unset),
                replaces_all=replaces_all,
                by=by,
            )
            after = fact.applied_to(topic.configs)
            self._topic_defaults.check(after)
        except InvalidConfigError as error:
            return TopicChangeResult(kafka_code(error, ApiFamily.TOPICS), error.message, None)
        if validate_only:  # a view that lags does not tell that nothing would change
            return TopicChangeResult(ErrorCode.none, None, topic)
        wanted = WantedTopicChange("configure", topic.name, topic.topic_id, 0)
        return await self._commit(fact, wanted, replace(topic, configs=after), deadline)

    async def delete(
        self,
        topic: TopicState,
        *,
        deadline: float | None = None,
        terms: ChangeTerms = USUAL_TERMS,
        by: str | None = None,
    ) -> TopicChangeResult:
        throttled = await self._throttled(topic.partitions, deadline, terms)
        if throttled is not None:
            return throttled
        fact = TopicDeleted(topic_id=UUID(bytes=topic.topic_id), name=topic.name, by=by)
        return await self._commit(
            fact, WantedTopicChange("delete", topic.name, topic.topic_id, 0), topic, deadline
        )

    async def _throttled(
        self, partitions: int, deadline: float | None, terms: ChangeTerms
    ) -> TopicChangeResult | None:
        """Wait for the quota of all clients. Returns None when the quotas have accepted a change of
        this number of partitions, else the refusal. Old clients are never refused because of their
        own quota: their next requests wait (KIP-599)."""
        loop, own = asyncio.get_running_loop(), terms.quota
        own_wait_s = 0.0 if own is None else own.changes_wait_s()
        if own_wait_s > 0 and terms.is_strict:
            text = "The throttling quota has been exceeded."
            code = ErrorCode.throttling_quota_exceeded
            return TopicChangeResult(code, text, None, own_wait_s)
        while (wait_s := self._quota.wait_s()) > 0:
            if terms.is_strict:
                return TopicChangeResult(
                    ErrorCode.throttling_quota_exceeded,
                    "The throttling quota has been exceeded: this broker's clients create and "
                    "delete partitions too fast (BUCKETLOG_PARTITION_CHANGES_PER_S).",
                    None,
                    wait_s,
                )
            if deadline is not None and loop.time() + wait_s > deadline:
                return TopicChangeResult(
                    ErrorCode.request_timed_out,
                    f"The quota of partition changes is used up; retry in {wait_s:.0f} s "
                    "(BUCKETLOG_PARTITION_CHANGES_PER_S).",
                    None,
                    wait_s,
                )
            await asyncio.sleep(wait_s)
        self._quota.take(partitions)
        if own is not None:
            own.changed(partitions)
        return None

    async def _commit(
        self, fact: TopicFact, wanted: WantedTopicChange, topic: TopicState, deadline: float | None
    ) -> TopicChangeResult:
        try:
            async with asyncio.timeout_at(deadline):
                status = await self._committer.commit_fact(fact, wanted)
        except TimeoutError as error:
            return TopicChangeResult(
                kafka_code(error, ApiFamily.TOPICS), "It may be done later.", None
            )
        except SequencerError as error:
            logger.warning("%s %r is refused: %s", wanted.verb, topic.name, error)
            return TopicChangeResult(kafka_code(error, ApiFamily.TOPICS), str(error), None)
        match status:
            case FactStatus.OK:
                return TopicChangeResult(ErrorCode.none, None, topic)
            case FactStatus.EXISTS:
                message = f"Topic '{topic.name}' already exists."
                return TopicChangeResult(ErrorCode.topic_already_exists, message, None)
            case FactStatus.INVALID_PARTITIONS:
                return TopicChangeResult(
                    ErrorCode.invalid_partitions, "it has as many already", topic
                )
            case _:
                return _unknown(topic.name)


def _unknown(name: str) -> TopicChangeResult:
    return TopicChangeResult(
        ErrorCode.unknown_topic_or_partition, f"This server does not host topic {name!r}.", None
    )


def why_missing(name: str) -> ErrorCode:
    """The error of a topic that does not exist, by its name."""
    try:
        check_topic_name(name)
    except InvalidTopicNameError as error:
        return kafka_code(error, ApiFamily.TOPICS)
    return ErrorCode.unknown_topic_or_partition
