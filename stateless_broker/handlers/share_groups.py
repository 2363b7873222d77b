"""ShareGroupHeartbeat and ShareGroupDescribe (KIP-932)."""

from datetime import timedelta
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.coordinator import EMPTY, STABLE, ShareCoordinator
from bucketlog.consumers.share.group import ShareGroup, ShareHeartbeat
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.messages.share_group_describe import (
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from bucketlog.log_format.wire.messages.share_group_describe import (
    TopicPartitions as DescribedPartitions,
)
from bucketlog.log_format.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation, ResourceType
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.authorization.needs import GROUP_NOT_AUTHORIZED
from bucketlog.stateless_broker.network.apis import Request

ASSIGNOR = "simple"


class ShareGroupsHandler:
    def __init__(self, *, coordinator: ShareCoordinator, view: View) -> None:
        self._coordinator = coordinator
        self._view = view

    async def heartbeat(
        self, request: Request, message: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        access, names = request.access, message.subscribed_topic_names
        if not access.may_group(AclOperation.READ, message.group_id):
            return _refused(ErrorCode.group_authorization_failed, None)
        if not all(access.may_topic(AclOperation.DESCRIBE, name) for name in names or ()):
            return _refused(ErrorCode.topic_authorization_failed, None)
        outcome = self._coordinator.heartbeat(
            message.group_id,
            ShareHeartbeat(
                message.member_id,
                message.member_epoch,
                None if names is None else tuple(names),
                message.rack_id,
                request.header.client_id,
                f"/{request.connection.host}",
            ),
        )
        if outcome.error is not ErrorCode.none:
            return _refused(outcome.error, outcome.message)
        interval_ms = self._coordinator.limits_of(message.group_id).heartbeat_interval_ms
        return {
            "error_code": ErrorCode.none,
            "member_id": message.member_id,
            "member_epoch": outcome.epoch,
            "heartbeat_interval": timedelta(milliseconds=interval_ms),
            "assignment": _assignment(outcome.assignment),
        }

    async def describe(
        self, request: Request, message: ShareGroupDescribeRequest
    ) -> ShareGroupDescribeResponse:
        groups: list[DescribedGroup] = []
        for group_id in dict.fromkeys(message.group_ids):
            row = self._described(group_id, request.access)
            if message.include_authorized_operations and row["error_code"] is ErrorCode.none:
                operations = request.access.operations(ResourceType.GROUP, group_id)
                row["authorized_operations"] = operations
            groups.append(row)
        return {"groups": groups}

    def _described(self, group_id: str, access: Access) -> DescribedGroup:
        if not access.may_group(AclOperation.DESCRIBE, group_id):
            return _not_described(
                group_id, ErrorCode.group_authorization_failed, GROUP_NOT_AUTHORIZED
            )
        error = self._coordinator.refusal(group_id)
        if error is not ErrorCode.none:
            return _not_described(group_id, error, None)
        if not self._coordinator.exists(group_id):
            text = f"Group {group_id} not found."
            return _not_described(group_id, ErrorCode.group_id_not_found, text)
        group = self._coordinator.find(group_id)
        if group is not None and not all(
            access.may_topic(AclOperation.DESCRIBE, name) for name in group.topics()
        ):
            text = "The group has described topic(s) that the client is not authorized to describe."
            return _not_described(group_id, ErrorCode.topic_authorization_failed, text)
        epoch = 0 if group is None else group.epoch
        return {
            "error_code": ErrorCode.none,
            "group_id": group_id,
            "group_state": EMPTY if group is None else STABLE,
            "group_epoch": epoch,
            "assignment_epoch": epoch,
            "assignor_name": ASSIGNOR,
            "members": [] if group is None else self._members(group),
        }

    def _members(self, group: ShareGroup) -> list[Member]:
        return [
            {
                "member_id": member.member_id,
                "rack_id": member.rack or None,
                "member_epoch": member.epoch,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "subscribed_topic_names": sorted(member.topics),
                "assignment": {"topic_partitions": self._parts(group.assigned(member.member_id))},
            }
            for member in group.members.values()
        ]

    def _parts(self, assigned: frozenset[TopicIdPartition]) -> list[DescribedPartitions]:
        return [
            {
                "topic_id": UUID(bytes=topic_id),
                "topic_name": self._view.topic_name(topic_id) or "",
                "partitions": numbers,
            }
            for topic_id, numbers in _by_topic(assigned).items()
        ]


def _by_topic(assigned: frozenset[TopicIdPartition]) -> dict[TopicId, list[int]]:
    found: dict[TopicId, list[int]] = {}
    for topic_id, number in sorted(assigned):
        found.setdefault(topic_id, []).append(number)
    return found


def _assignment(assigned: frozenset[TopicIdPartition] | None) -> Assignment | None:
    if assigned is None:
        return None
    return {
        "topic_partitions": [
            {"topic_id": UUID(bytes=topic_id), "partitions": numbers}
            for topic_id, numbers in _by_topic(assigned).items()
        ]
    }


def _refused(error: ErrorCode, message: str | None) -> ShareGroupHeartbeatResponse:
    return {
        "error_code": error,
        "error_message": message,
        "member_epoch": 0,
        "heartbeat_interval": timedelta(0),
    }


def _not_described(group_id: str, error: ErrorCode, message: str | None) -> DescribedGroup:
    return {
        "error_code": error,
        "error_message": message,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": [],
    }
