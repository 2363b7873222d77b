"""The APIs of share groups' offsets: described, altered, deleted (KIP-932, KIP-1226)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.offsets import ShareOffsets
from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.model import MAX_OFFSET, TopicIdPartition
from bucketlog.log_format.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from bucketlog.log_format.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from bucketlog.log_format.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.share_groups import SharePartition
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.authorization.needs import (
    GROUP_NOT_AUTHORIZED,
    TOPIC_NOT_AUTHORIZED,
)
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.bounded_gather import each_in_turn

NO_TOPIC = UUID(int=0)
NO_OFFSET = -1
NO_PARTITION = "This server does not host this topic-partition."
_DENIED = ErrorCode.group_authorization_failed


class _Wanted(NamedTuple):
    name: str
    partitions: Sequence[int]


class ShareOffsetsHandler:
    def __init__(self, *, offsets: ShareOffsets, view: View) -> None:
        self._offsets = offsets
        self._view = view

    # Describe --------------------------------------------------------------------------------

    async def describe(
        self, request: Request, message: DescribeShareGroupOffsetsRequest
    ) -> DescribeShareGroupOffsetsResponse:
        named = list({group.group_id: group for group in message.groups}.values())
        access = request.access
        return {"groups": await each_in_turn(lambda each: self._describe(each, access), named)}

    async def _describe(
        self, wanted: DescribeShareGroupOffsetsRequestGroup, access: Access
    ) -> DescribeShareGroupOffsetsResponseGroup:
        group = wanted.group_id
        if not access.may_group(AclOperation.DESCRIBE, group):
            return _group(group, error=_DENIED, message=GROUP_NOT_AUTHORIZED)
        found = await self._offsets.describe(group)
        if isinstance(found, ErrorCode):
            text = f"Group {group} not found." if found is ErrorCode.group_id_not_found else None
            return _group(group, error=found, message=text)
        if wanted.topics is None:
            topics: Iterable[_Wanted] = self._all(found, access.quiet)
        else:
            topics = [_Wanted(topic.topic_name, topic.partitions) for topic in wanted.topics]
        return _group(group, [self._topic(each, found, access) for each in topics])

    def _all(
        self, found: Mapping[TopicIdPartition, SharePartition], access: Access
    ) -> Iterable[_Wanted]:
        by_name: dict[str, list[int]] = {}
        for topic_id, number in sorted(found):
            name = self._view.topic_name(topic_id)
            if name is not None and access.may_topic(AclOperation.DESCRIBE, name):
                by_name.setdefault(name, []).append(number)
        return [_Wanted(name, numbers) for name, numbers in by_name.items()]

    def _topic(
        self, wanted: _Wanted, found: Mapping[TopicIdPartition, SharePartition], access: Access
    ) -> DescribeShareGroupOffsetsResponseTopic:
        topic = self._view.topic(wanted.name)
        if not access.may_topic(AclOperation.DESCRIBE, wanted.name):
            rows = [_denied(number) for number in wanted.partitions]
            return {"topic_name": wanted.name, "topic_id": NO_TOPIC, "partitions": rows}
        if topic is None:
            rows = [self._row(number, None, None) for number in wanted.partitions]
            return {"topic_name": wanted.name, "topic_id": NO_TOPIC, "partitions": rows}
        keys = [TopicIdPartition(topic.topic_id, number) for number in wanted.partitions]
        return {
            "topic_name": wanted.name,
            "topic_id": UUID(bytes=topic.topic_id),
            "partitions": [self._row(key.partition, key, found.get(key)) for key in keys],
        }

    def _row(
        self, number: int, key: TopicIdPartition | None, share: SharePartition | None
    ) -> DescribeShareGroupOffsetsResponsePartition:
        """The lag counts records that are neither acknowledged nor archived."""
        log = self._view.log(key) if key is not None else None
        lag, start = NO_OFFSET, NO_OFFSET
        if share is not None and log is not None and key is not None:
            start = max(share.start_offset, self._view.log_start(key))
            lag = max(log.high_watermark - start - share.completed, 0)
        return {
            "partition_index": number,
            "start_offset": start,
            "leader_epoch": LEADER_EPOCH,
            "lag": lag,
            "error_code": ErrorCode.none,
        }

    # Alter -----------------------------------------------------------------------------------

    async def alter(
        self, request: Request, message: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        group, access = message.group_id, request.access
        if not access.may_group(AclOperation.READ, group):
            return _altered(_DENIED, GROUP_NOT_AUTHORIZED)
        starts: dict[TopicIdPartition, int] = {}
        topics: list[AlterShareGroupOffsetsResponseTopic] = []
        for topic in message.topics:
            state = self._view.topic(topic.topic_name)
            rows: list[AlterShareGroupOffsetsResponsePartition] = []
            is_denied = not access.may_topic(AclOperation.READ, topic.topic_name)
            for each in topic.partitions:
                number = each.partition_index
                error, text = ErrorCode.none, None
                if is_denied:
                    error, text = ErrorCode.topic_authorization_failed, TOPIC_NOT_AUTHORIZED
                elif state is None or not 0 <= number < state.partitions:
                    error, text = ErrorCode.unknown_topic_or_partition, NO_PARTITION
                elif not 0 <= each.start_offset <= MAX_OFFSET:
                    error, text = ErrorCode.invalid_request, "The start offset is invalid."
                else:
                    starts[TopicIdPartition(state.topic_id, number)] = each.start_offset
                rows.append({"partition_index": number, "error_code": error, "error_message": text})
            topic_id = NO_TOPIC if state is None or is_denied else UUID(bytes=state.topic_id)
            topics.append(
                {"topic_name": topic.topic_name, "topic_id": topic_id, "partitions": rows}
            )
        outcome = ErrorCode.none
        if starts:
            outcome = await self._offsets.set(group, starts, request.author)
        if outcome is not ErrorCode.none:
            return _altered(outcome, _text(outcome, group))
        return {"error_code": ErrorCode.none, "responses": topics}

    # Delete ----------------------------------------------------------------------------------

    async def delete(
        self, request: Request, message: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        group, access = message.group_id, request.access
        if not access.may_group(AclOperation.DELETE, group):
            return _deleted(_DENIED, GROUP_NOT_AUTHORIZED)
        rows: dict[str, DeleteShareGroupOffsetsResponseTopic] = {}
        wanted = {}
        for topic in message.topics:
            name = topic.topic_name
            state = self._view.topic(name)
            error, text = ErrorCode.none, None
            if not access.may_topic(AclOperation.READ, name):
                error, text = ErrorCode.topic_authorization_failed, TOPIC_NOT_AUTHORIZED
            elif state is None:
                error, text = ErrorCode.unknown_topic_or_partition, NO_PARTITION
            else:
                wanted[name] = state.topic_id
            topic_id = UUID(bytes=wanted[name]) if name in wanted else NO_TOPIC
            rows[name] = {
                "topic_name": name,
                "topic_id": topic_id,
                "error_code": error,
                "error_message": text,
            }
        if wanted:
            outcome = await self._offsets.delete(group, list(wanted.values()), request.author)
            if isinstance(outcome, ErrorCode):
                return _deleted(outcome, _text(outcome, group))
            for name, error in zip(wanted, outcome, strict=True):
                rows[name]["error_code"] = error
                if error is not ErrorCode.none:
                    rows[name]["error_message"] = "There is no offset information to delete."
        return {"error_code": ErrorCode.none, "responses": list(rows.values())}


def _text(error: ErrorCode, group: str) -> str | None:
    if error is ErrorCode.non_empty_group:
        return "The group is not empty."
    return f"Group {group} not found." if error is ErrorCode.group_id_not_found else None


def _group(
    group: str,
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = (),
    *,
    error: ErrorCode = ErrorCode.none,
    message: str | None = None,
) -> DescribeShareGroupOffsetsResponseGroup:
    return {"group_id": group, "topics": topics, "error_code": error, "error_message": message}


def _denied(number: int) -> DescribeShareGroupOffsetsResponsePartition:
    return {
        "partition_index": number,
        "start_offset": NO_OFFSET,
        "leader_epoch": LEADER_EPOCH,
        "error_code": ErrorCode.topic_authorization_failed,
        "error_message": TOPIC_NOT_AUTHORIZED,
    }


def _altered(error: ErrorCode, message: str | None) -> AlterShareGroupOffsetsResponse:
    return {"error_code": error, "error_message": message, "responses": ()}


def _deleted(error: ErrorCode, message: str | None) -> DeleteShareGroupOffsetsResponse:
    return {"error_code": error, "error_message": message, "responses": ()}
