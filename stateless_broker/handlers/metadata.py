"""Metadata: brokers, controller, topics; topics that are asked for may be created.

The audit log shows which topics were created, and by whom.

Source: Kafka's MetadataRequest.json and KafkaApis.handleTopicMetadataRequest: a topic that is being
created automatically is answered UNKNOWN_TOPIC_OR_PARTITION, and clients ask again.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import InvalidTopicNameError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire import metadata
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.metadata import MetadataRequest
from bucketlog.metadata.acl_bindings import AclOperation, ResourceType
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.internal_topics import RESERVED_TOPICS
from bucketlog.metadata.topic_checks import check_topic_name
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.handlers.encoded_topics import EncodedTopics, LeaderPlace
from bucketlog.stateless_broker.handlers.topic_changes import TopicChanges, why_missing
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.membership.roles import zone_of_client
from bucketlog.stateless_broker.network.answer_memory import SMALL_ANSWER_BYTES
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.audit import Change
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Turns

logger = logging.getLogger(__name__)

ALL_IF_EMPTY_UNTIL = 0
FEW_TOPICS = 10
TOPIC_BYTES = 100
PARTITION_BYTES = 40
"""An estimate per partition; the actual size is counted once the response is encoded."""
_DENIED = ErrorCode.topic_authorization_failed
CREATED_AT_ONCE = 100
"""Limit of the topics that requests cause to be created at the same time; a client that wants more
asks again."""


class _Missing(NamedTuple):
    """A requested topic without an answer, and the reason."""

    name: str | None
    topic_id: UUID | None
    error: ErrorCode


class MetadataHandler:
    """`spawn` starts the creation of topics in the background. A topic that is named twice is
    answered once, as in Kafka."""

    def __init__(
        self,
        *,
        view: View,
        membership: Membership,
        changes: TopicChanges,
        auto_create_topics: bool,
        cache_bytes_max: int,
        turns: Turns,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
    ) -> None:
        self._view = view
        self._membership = membership
        self._changes = changes
        self._auto_create_topics = auto_create_topics
        self._encoded = EncodedTopics(membership, bytes_max=cache_bytes_max)
        self._turns = turns
        self._spawn = spawn
        self._creating: dict[str, asyncio.Task[None]] = {}

    async def __call__(self, request: Request, message: MetadataRequest) -> WrittenResponse:
        version = request.header.api_version
        rows: Iterator[TopicState | _Missing]
        if message.topics is None or (version == ALL_IF_EMPTY_UNTIL and not message.topics):
            topics = await self._described(request.access)
            count, rows = len(topics), iter(topics)
        else:
            may_create = self._auto_create_topics and message.allow_auto_topic_creation
            tries = iter(range(CREATED_AT_ONCE)) if may_create else None
            wanted = dict.fromkeys((entry.name, entry.topic_id) for entry in message.topics)
            count, rows = len(wanted), (self._find(*each, tries, request) for each in wanted)
        listener = request.connection.listener
        serving = self._membership.serving_on(listener)
        zone = zone_of_client(request.header.client_id)
        if not any(member.address.zone == zone for member in serving):
            zone = ""
        brokers = [
            metadata.BrokerRow(member.node_id, at.host, at.port, member.address.zone or None)
            for member in self._membership.listed_on(listener)
            if (at := member.address.of(listener)) is not None
        ]
        controller_id = self._membership.controller(listener).node_id
        out = [
            metadata.response_start(
                version, brokers, self._membership.cluster_id, controller_id, count
            )
        ]
        errors: list[ErrorCode] = []
        estimate = min(count, len(self._view.topics())) * TOPIC_BYTES
        estimate += self._view.partition_count * PARTITION_BYTES if count > FEW_TOPICS else 0
        if estimate >= SMALL_ANSWER_BYTES:
            await request.memory.acquire(estimate)
        access = request.access
        topic_access = access if message.include_topic_authorized_operations else None
        place = LeaderPlace(zone, listener)
        await self._turns.work(self._steps(rows, version, place, topic_access, out, errors))
        operations = metadata.NO_OPERATIONS_KNOWN
        if message.include_cluster_authorized_operations:
            operations = access.cluster_operations()
        out.append(metadata.response_end(version, operations))
        return WrittenResponse(b"".join(out), errors)

    def _steps(
        self,
        rows: Iterator[TopicState | _Missing],
        version: int,
        place: LeaderPlace,
        access: Access | None,
        out: list[bytes],
        errors: list[ErrorCode],
    ) -> Iterator[int]:
        """`access` None: the authorized operations of topics are not asked for."""
        for row in rows:
            operations = metadata.NO_OPERATIONS_KNOWN
            is_denied = isinstance(row, _Missing) and row.error is _DENIED
            if access is not None and row.name is not None and not is_denied:
                operations = access.operations(ResourceType.TOPIC, row.name)
            if isinstance(row, TopicState):
                yield from self._encoded.steps(row, version, place, out)
                out.append(metadata.topic_end(version, operations))
                continue
            topic_id = row.topic_id.bytes if row.topic_id else None
            out.append(metadata.topic_start(version, row.error.value, row.name, topic_id, 0))
            out.append(metadata.topic_end(version, operations))
            if len(errors) < COUNTED_ROWS:
                errors.append(row.error)
            yield 1

    async def _described(self, access: Access) -> list[TopicState]:
        """The topics that the requester may describe."""
        topics = self._view.topics()
        if access.authorizer is None:
            return topics
        found, quiet = list[TopicState](), access.quiet

        def steps() -> Iterator[int]:
            for topic in topics:
                if quiet.may_topic(AclOperation.DESCRIBE, topic.name):
                    found.append(topic)
                yield 1

        await self._turns.work(steps())
        return found

    def _find(
        self, name: str | None, topic_id: UUID | None, tries: Iterator[int] | None, request: Request
    ) -> TopicState | _Missing:
        """`tries`: number of topics that may be created for the request; None: no topic may. The
        answer does not say whether a topic exists that the requester may not describe."""
        access = request.access
        if name is None or topic_id is not None:
            found = self._view.topic_by_id(TopicId(topic_id.bytes)) if topic_id else None
            if found is not None and not access.may_topic(AclOperation.DESCRIBE, found.name):
                return _Missing(name, topic_id, _DENIED)
            return found or _Missing(name, topic_id, ErrorCode.unknown_topic_id)
        if not access.may_topic(AclOperation.DESCRIBE, name):
            return _Missing(name, None, _DENIED)
        topic = self._view.topic(name)
        if topic is not None:
            return topic
        if (
            tries is not None
            and not access.quiet.may_on_cluster(AclOperation.CREATE)
            and not access.may_topic(AclOperation.CREATE, name)
        ):
            return _Missing(name, None, _DENIED)
        error = why_missing(name) if tries is None else self._create(name, tries, request)
        return _Missing(name, None, error)

    def _create(self, name: str, tries: Iterator[int], request: Request) -> ErrorCode:
        try:
            check_topic_name(name)
        except InvalidTopicNameError as error:
            return kafka_code(error, ApiFamily.TOPICS)
        if name in RESERVED_TOPICS:
            return ErrorCode.unknown_topic_or_partition
        if len(self._creating) >= CREATED_AT_ONCE or next(tries, None) is None:
            return ErrorCode.unknown_topic_or_partition
        if self._view.colliding_name(name):
            return ErrorCode.invalid_topic_exception
        if name not in self._creating:
            task = self._spawn(self._create_now(name, request), f"creating topic {name}")
            self._creating[name] = task
            task.add_done_callback(lambda _: self._creating.pop(name, None))
        return ErrorCode.unknown_topic_or_partition

    async def _create_now(self, name: str, request: Request) -> None:
        error: ErrorCode | None = None
        try:
            result = await self._changes.create(name, by=request.author)
            error = result.error
        finally:
            if request.audit is not None and error is not ErrorCode.topic_already_exists:
                change = Change("topic", name, error, {"automatic": True})
                await request.audit.changed(request.connection, request.header, (change,))
        if error not in (ErrorCode.none, ErrorCode.topic_already_exists):
            logger.warning("automatic creation of %r is refused: %s", name, result.message)
