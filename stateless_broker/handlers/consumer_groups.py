"""ConsumerGroupHeartbeat and ConsumerGroupDescribe.

Translators between Kafka's messages and groups of the consumer protocol. Source: KIP-848, KIP-1082
(consumers choose their member ids), KIP-1099 (types of members); KafkaApis.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.assignor_input import Assignment
from bucketlog.consumers.consumer_heartbeats import ConsumerHeartbeats
from bucketlog.consumers.coordinator import GroupCoordinator
from bucketlog.consumers.modern_heartbeat import invalid
from bucketlog.consumers.modern_messages import (
    DescribedModernMember,
    GroupRefusal,
    HeartbeatAnswer,
    ModernDescription,
    ModernHeartbeat,
)
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from bucketlog.log_format.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation, ResourceType
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.bounded_gather import each_in_turn
from bucketlog.stateless_broker.network.messages import write_row, write_rows
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Slices, Turns

MEMBER_ID_REQUIRED_FROM = 1
DESCRIBE_UNITS = 4
"""Units of work for each described group (`network.turns`)."""
DESCRIBED_AT_ONCE = 16
"""Groups whose members are in memory at the same time."""
_HIDDEN = "The group has described topic(s) that the client is not authorized to describe."
_DENIED = ErrorCode.group_authorization_failed


class ConsumerGroupsHandler:
    def __init__(
        self,
        *,
        coordinator: GroupCoordinator,
        heartbeats: ConsumerHeartbeats,
        view: View,
        turns: Turns,
    ) -> None:
        self._coordinator = coordinator
        self._heartbeats = heartbeats
        self._view = view
        self._turns = turns

    async def heartbeat(
        self, request: Request, message: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        access = request.access
        if not access.may_group(AclOperation.READ, message.group_id):
            return _refused(GroupRefusal(_DENIED, ""))
        names = message.subscribed_topic_names
        if not all(access.may_topic(AclOperation.DESCRIBE, name) for name in names or ()):
            return _refused(GroupRefusal(ErrorCode.topic_authorization_failed, ""))
        wanted = _wanted(request, message)
        required = request.header.api_version >= MEMBER_ID_REQUIRED_FROM
        refusal = invalid(message.group_id, wanted, member_id_required=required)
        if refusal is not None:
            return _refused(refusal)

        def may_describe(name: str) -> bool:
            return access.quiet.may_topic(AclOperation.DESCRIBE, name)

        answer = await self._heartbeats.heartbeat(message.group_id, wanted, may_describe)
        return _refused(answer) if isinstance(answer, GroupRefusal) else _answered(answer)

    async def describe(
        self, request: Request, message: ConsumerGroupDescribeRequest
    ) -> WrittenResponse:
        """Encodes each group at once, as DescribeGroups does."""
        names = list(dict.fromkeys(message.group_ids))
        version, access = request.header.api_version, request.access
        may_exist = await self._coordinator.finder()
        slices = Slices(self._turns)
        rows: dict[str, bytes] = {}
        wanted: list[str] = []
        errors: list[ErrorCode] = []

        def add(group_id: str, found: ModernDescription | GroupRefusal) -> None:
            row = self._row(group_id, found, access)
            if message.include_authorized_operations and row["error_code"] is ErrorCode.none:
                operations = access.operations(ResourceType.GROUP, group_id)
                row["authorized_operations"] = operations
            rows[group_id] = write_row(CONSUMER_GROUP_DESCRIBE, version, "groups", row)
            error = row["error_code"]
            if error is not ErrorCode.none and len(errors) < COUNTED_ROWS:
                errors.append(error)

        for group_id in names:
            if not access.may_group(AclOperation.DESCRIBE, group_id):
                add(group_id, GroupRefusal(_DENIED, ""))
            elif isinstance(may_exist, ErrorCode):
                add(group_id, GroupRefusal(may_exist, ""))
            elif may_exist(group_id):
                rows[group_id] = b""  # keeps the group's place
                wanted.append(group_id)
            else:
                add(group_id, _not_found(group_id))
            await slices.spend(DESCRIBE_UNITS)
        for start in range(0, len(wanted), DESCRIBED_AT_ONCE):
            some = wanted[start : start + DESCRIBED_AT_ONCE]
            for group_id, found in zip(some, await each_in_turn(self._found, some), strict=True):
                add(group_id, found)
        body = write_rows(CONSUMER_GROUP_DESCRIBE, version, "groups", list(rows.values()))
        return WrittenResponse(body, errors)

    async def _found(self, group_id: str) -> ModernDescription | GroupRefusal:
        found = await self._coordinator.describe(group_id)
        if isinstance(found, ModernDescription):
            return found
        if found is ErrorCode.group_id_not_found:
            return _not_found(group_id)
        if isinstance(found, ErrorCode):
            return GroupRefusal(found, "")
        text = f"Group {group_id} is not a consumer group."
        return GroupRefusal(ErrorCode.group_id_not_found, text)

    def _row(
        self, group_id: str, found: ModernDescription | GroupRefusal, access: Access
    ) -> DescribedGroup:
        if isinstance(found, ModernDescription) and self._is_hidden(found, access):
            found = GroupRefusal(ErrorCode.topic_authorization_failed, _HIDDEN)
        if isinstance(found, GroupRefusal):
            return {
                "error_code": found.error,
                "error_message": found.message or None,
                "group_id": group_id,
                "group_state": "",
                "group_epoch": 0,
                "assignment_epoch": 0,
                "assignor_name": "",
                "members": (),
            }
        return {
            "error_code": ErrorCode.none,
            "error_message": None,
            "group_id": group_id,
            "group_state": str(found.state),
            "group_epoch": found.group_epoch,
            "assignment_epoch": found.assignment_epoch,
            "assignor_name": found.assignor,
            "members": [self._member(each) for each in found.members],
        }

    def _is_hidden(self, found: ModernDescription, access: Access) -> bool:
        """Return whether a member has a topic that the requester may not see."""
        ids = {topic for each in found.members for topic in (*each.assigned, *each.target)}
        names = (self._view.topic_name(topic) for topic in ids)
        return not all(
            access.may_topic(AclOperation.DESCRIBE, name) for name in names if name is not None
        )

    def _member(self, each: DescribedModernMember) -> Member:
        return {
            "member_id": each.member_id,
            "instance_id": each.instance_id,
            "rack_id": each.rack_id,
            "member_epoch": each.member_epoch,
            "client_id": each.client_id,
            "client_host": each.client_host,
            "subscribed_topic_names": each.topics,
            "subscribed_topic_regex": each.regex,
            "assignment": {"topic_partitions": self._partitions(each.assigned)},
            "target_assignment": {"topic_partitions": self._partitions(each.target)},
            "member_type": each.member_type.value,
        }

    def _partitions(self, partitions: Mapping[TopicId, Sequence[int]]) -> list[TopicPartitions]:
        return [
            {"topic_id": UUID(bytes=topic), "topic_name": name, "partitions": tuple(numbers)}
            for topic, numbers in partitions.items()
            if (name := self._view.topic_name(topic)) is not None
        ]


def _wanted(request: Request, message: ConsumerGroupHeartbeatRequest) -> ModernHeartbeat:
    names, timeout_ms = message.subscribed_topic_names, _milliseconds(message.rebalance_timeout)
    return ModernHeartbeat(
        message.member_id,
        message.member_epoch,
        request.header.client_id,
        f"/{request.connection.host}",
        instance_id=message.instance_id,
        rack_id=message.rack_id,
        rebalance_timeout_ms=None if timeout_ms < 0 else timeout_ms,
        topics=None if names is None else frozenset(names),
        regex=message.subscribed_topic_regex,
        assignor=message.server_assignor,
        owned=_owned(message),
    )


def _owned(message: ConsumerGroupHeartbeatRequest) -> Assignment | None:
    if message.topic_partitions is None:
        return None
    return {
        TopicId(each.topic_id.bytes if each.topic_id is not None else bytes(16)): frozenset(
            each.partitions
        )
        for each in message.topic_partitions
    }


def _milliseconds(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)


def _refused(refusal: GroupRefusal) -> ConsumerGroupHeartbeatResponse:
    return {
        "error_code": refusal.error,
        "error_message": refusal.message or None,
        "member_epoch": 0,
    }


def _answered(answer: HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse:
    told = answer.assignment
    return {
        "error_code": ErrorCode.none,
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval": timedelta(milliseconds=answer.heartbeat_interval_ms),
        "assignment": None
        if told is None
        else {
            "topic_partitions": [
                {"topic_id": UUID(bytes=topic), "partitions": tuple(sorted(numbers))}
                for topic, numbers in sorted(told.items())
            ]
        },
    }


def _not_found(group_id: str) -> GroupRefusal:
    return GroupRefusal(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
