"""ShareFetch and ShareAcknowledge (KIP-932, KIP-1206, KIP-1222).

A ShareFetch may carry acknowledgements, which are written while records are fetched. Invariants: a
confirmed acknowledgement is in the log; records of a response are acquired for the member. The
response is sent when it has content, at the latest after `max_wait`.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.leader import ShareKey
from bucketlog.consumers.share.sessions import (
    FIRST_EPOCH,
    LAST_EPOCH,
    SessionKey,
    ShareSession,
)
from bucketlog.consumers.share.settings import ShareRules
from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.messages.share_acknowledge import (
    NodeEndpoint as AcknowledgeEndpoint,
)
from bucketlog.log_format.wire.messages.share_acknowledge import (
    PartitionData as AcknowledgedPartition,
)
from bucketlog.log_format.wire.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from bucketlog.log_format.wire.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.authorization.needs import GROUP_NOT_AUTHORIZED
from bucketlog.stateless_broker.handlers.share_acknowledgements import (
    NamedPartition,
    named_partitions,
    topic_id_of,
)
from bucketlog.stateless_broker.handlers.share_acquiring import (
    ShareAcquirer,
    ShareFetchLimits,
    ShareParts,
)
from bucketlog.stateless_broker.handlers.share_records import (
    NOTHING_ACQUIRED,
    AcquiredData,
)
from bucketlog.stateless_broker.network.apis import Request

T = TypeVar("T")

NO_LEADER: LeaderIdAndEpoch = {"leader_id": -1, "leader_epoch": -1}


class ShareFetchHandler:
    def __init__(self, parts: ShareParts, limits: ShareFetchLimits) -> None:
        self._parts = parts
        self._acquirer = ShareAcquirer(parts, limits)

    async def fetch(self, request: Request, message: ShareFetchRequest) -> ShareFetchResponse:
        group, member = message.group_id or "", message.member_id or ""
        named = named_partitions(message.topics)
        if not request.access.may_group(AclOperation.READ, group):
            return _failed(ErrorCode.group_authorization_failed, GROUP_NOT_AUTHORIZED)
        key, rules = SessionKey(group, member), self._parts.rules(group)
        session = self._session(key, message, named, request)
        if isinstance(session, ErrorCode):
            return _failed(session, None)
        may_renew = message.is_renew_ack and rules.may_renew
        acknowledging = self._run(
            self._parts.acknowledgements.acknowledge(
                group, member, named, request.access, may_renew=may_renew
            )
        )
        found: Mapping[TopicIdPartition, AcquiredData] = {}
        is_last = message.share_session_epoch == LAST_EPOCH
        if not is_last and not message.is_renew_ack and message.max_records > 0:
            found = await self._acquirer.acquire(request, message, session, key)
        acknowledged = await acknowledging
        if is_last:
            self._close(key)
        return self._answer(request, session, found, acknowledged, rules)

    def _run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """Answer the request. This continues if the client goes away meanwhile."""
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                result = await work
            except BaseException:
                outcome.cancel()
                raise
            if not outcome.done():
                outcome.set_result(result)

        self._parts.spawn(run(), "acknowledgements")
        return outcome

    def _session(
        self,
        key: SessionKey,
        message: ShareFetchRequest,
        named: Sequence[NamedPartition],
        request: Request,
    ) -> ShareSession | ErrorCode:
        sessions, epoch = self._parts.sessions, message.share_session_epoch
        if not key.member:
            return ErrorCode.invalid_request
        if epoch == FIRST_EPOCH:
            if any(each.batches for each in named):
                return ErrorCode.invalid_request
            earlier = sessions.find(key)
            session = sessions.open(key, request.connection)
            if isinstance(session, ErrorCode):
                return session
            if earlier is not None:  # the member may still hold records of it
                session.touched |= earlier.touched
        else:
            session = sessions.step(key, epoch)
        if isinstance(session, ErrorCode) or epoch == LAST_EPOCH:
            return session
        if not sessions.has_room(session, len(named)):
            return ErrorCode.invalid_request
        session.add(each.partition for each in named)
        for topic in message.forgotten_topics_data:
            for number in topic.partitions:
                gone = TopicIdPartition(topic_id_of(topic.topic_id), number)
                session.partitions.pop(gone, None)
        return session

    def _close(self, key: SessionKey) -> None:
        """Release what the member holds. A lost connection does the same."""
        session = self._parts.sessions.close(key)
        for partition in () if session is None else session.touched:
            held = self._parts.leader.find(ShareKey(key.group, partition))
            if held is not None and held.window.holds(key.member):
                self._parts.spawn(self._release(held.key, key.member), "released records")

    async def _release(self, key: ShareKey, member: str) -> None:
        await self._parts.leader.release(key, member)

    def close_gone(self) -> None:
        """End the sessions whose connections are gone."""
        for key in self._parts.sessions.gone():
            self._close(key)

    # Acknowledging ---------------------------------------------------------------------------

    async def acknowledge(
        self, request: Request, message: ShareAcknowledgeRequest
    ) -> ShareAcknowledgeResponse:
        group, member = message.group_id or "", message.member_id or ""
        if not request.access.may_group(AclOperation.READ, group):
            return _refused(ErrorCode.group_authorization_failed, GROUP_NOT_AUTHORIZED)
        key, epoch = SessionKey(group, member), message.share_session_epoch
        if epoch == FIRST_EPOCH:
            return _refused(ErrorCode.invalid_share_session_epoch, None)
        session = self._parts.sessions.step(key, epoch)
        if isinstance(session, ErrorCode):
            return _refused(session, None)
        rules, named = self._parts.rules(group), named_partitions(message.topics)
        outcome = await self._run(
            self._parts.acknowledgements.acknowledge(
                group,
                member,
                named,
                request.access,
                may_renew=message.is_renew_ack and rules.may_renew,
            )
        )
        if epoch == LAST_EPOCH:
            self._close(key)
        by_topic: dict[TopicId, list[AcknowledgedPartition]] = {}
        for each in named:
            error = outcome.get(each.partition, ErrorCode.none)
            by_topic.setdefault(each.partition.topic_id, []).append(
                {
                    "partition_index": each.partition.partition,
                    "error_code": error,
                    "current_leader": self._leader_of(each.partition, error),
                }
            )
        endpoints: list[AcknowledgeEndpoint] = list(self._endpoints(request, outcome.items()))
        return {
            "error_code": ErrorCode.none,
            "acquisition_lock_timeout": timedelta(milliseconds=rules.lock_ms),
            "responses": [
                {"topic_id": UUID(bytes=topic_id), "partitions": rows}
                for topic_id, rows in by_topic.items()
            ],
            "node_endpoints": endpoints,
        }

    # Answers ---------------------------------------------------------------------------------

    def _answer(
        self,
        request: Request,
        session: ShareSession,
        found: Mapping[TopicIdPartition, AcquiredData],
        acknowledged: Mapping[TopicIdPartition, ErrorCode],
        rules: ShareRules,
    ) -> ShareFetchResponse:
        by_topic: dict[TopicId, list[PartitionData]] = {}
        errors: list[tuple[TopicIdPartition, ErrorCode]] = []
        for partition in dict.fromkeys([*found, *acknowledged]):
            got = found.get(partition, NOTHING_ACQUIRED)
            if got is NOTHING_ACQUIRED and partition not in acknowledged:
                continue
            acknowledge_error = acknowledged.get(partition, ErrorCode.none)
            errors += [(partition, got.error), (partition, acknowledge_error)]
            moved = acknowledge_error if got.error is ErrorCode.none else got.error
            by_topic.setdefault(partition.topic_id, []).append(
                {
                    "partition_index": partition.partition,
                    "error_code": got.error,
                    "acknowledge_error_code": int(acknowledge_error),
                    "current_leader": self._leader_of(partition, moved),
                    "records": got.data,
                    "acquired_records": [
                        {"first_offset": first, "last_offset": last, "delivery_count": deliveries}
                        for first, last, deliveries in got.ranges
                    ],
                }
            )
        return {
            "error_code": ErrorCode.none,
            "acquisition_lock_timeout": timedelta(milliseconds=rules.lock_ms),
            "responses": [
                {"topic_id": UUID(bytes=topic_id), "partitions": rows}
                for topic_id, rows in by_topic.items()
            ],
            "node_endpoints": list(self._endpoints(request, errors)),
        }

    def _leader_of(self, partition: TopicIdPartition, error: ErrorCode) -> LeaderIdAndEpoch:
        if error is not ErrorCode.not_leader_or_follower:
            return NO_LEADER
        leader = self._parts.leaders.leader_of(partition)
        if leader is None:
            return NO_LEADER
        return {"leader_id": leader.node_id, "leader_epoch": LEADER_EPOCH}

    def _endpoints(
        self, request: Request, errors: Iterable[tuple[TopicIdPartition, ErrorCode]]
    ) -> Iterable[NodeEndpoint]:
        """The leaders that an answer names, each once."""
        named: set[int] = set()
        for partition, error in errors:
            if error is not ErrorCode.not_leader_or_follower:
                continue
            leader = self._parts.leaders.leader_of(partition)
            at = None if leader is None else leader.address.of(request.connection.listener)
            if leader is not None and at is not None and leader.node_id not in named:
                named.add(leader.node_id)
                yield {"node_id": leader.node_id, "host": at.host, "port": at.port}


def _failed(error: ErrorCode, message: str | None) -> ShareFetchResponse:
    return {
        "error_code": error,
        "error_message": message,
        "acquisition_lock_timeout": timedelta(0),
        "responses": (),
        "node_endpoints": (),
    }


def _refused(error: ErrorCode, message: str | None) -> ShareAcknowledgeResponse:
    return {
        "error_code": error,
        "error_message": message,
        "acquisition_lock_timeout": timedelta(0),
        "responses": (),
        "node_endpoints": (),
    }
