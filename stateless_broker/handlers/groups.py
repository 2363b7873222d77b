"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ListGroups, DescribeGroups, DeleteGroups.

Translators between Kafka's messages and the coordinator. Source: Kafka's messages of these names,
GroupCoordinatorService and KafkaApis; KIP-345 (static members), KIP-394 (members get their id
first), KIP-559 (protocol names in answers), KIP-800 (reasons), KIP-814 (skipped assignments),
KIP-518, KIP-848 (filters of listings), KIP-1043 (groups that are not found).
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeAlias, TypeVar

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinator import GroupCoordinator
from bucketlog.consumers.group_messages import (
    CallerIdentity,
    GroupDescription,
    GroupProtocol,
    GroupState,
    JoinRequest,
    JoinResponse,
    LeavingMember,
    SyncRequest,
)
from bucketlog.consumers.group_store import GroupSummary
from bucketlog.consumers.modern_messages import ModernDescription
from bucketlog.consumers.offsets import GroupOffsets
from bucketlog.consumers.share.coordinator import ShareGroupRow
from bucketlog.consumers.share.offsets import ShareOffsets
from bucketlog.log_format.wire import list_groups
from bucketlog.log_format.wire.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from bucketlog.log_format.wire.messages.describe_groups import (
    DESCRIBE_GROUPS,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
)
from bucketlog.log_format.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from bucketlog.log_format.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from bucketlog.log_format.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from bucketlog.log_format.wire.messages.list_groups import ListGroupsRequest
from bucketlog.log_format.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from bucketlog.metadata.acl_bindings import AclOperation, ResourceType
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.bounded_gather import each_in_turn
from bucketlog.stateless_broker.network.messages import write_row, write_rows
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Slices, Turns

REBALANCE_TIMEOUT_FROM = 1
MEMBER_ID_FIRST_FROM = 4
SKIPPED_ASSIGNMENT_FROM = 9
PROTOCOL_TYPE_FROM = 7
PROTOCOL_IN_SYNC_FROM = 5
MANY_LEAVE_FROM = 3
NOT_FOUND_FROM = 6
NO_OPERATIONS_KNOWN = -(2**31)
_DENIED = ErrorCode.group_authorization_failed
Described: TypeAlias = GroupDescription | ModernDescription
"""A group of the consumer protocol is not found: ConsumerGroupDescribe describes it."""
RowT = TypeVar("RowT", GroupSummary, ShareGroupRow)
DESCRIBE_UNITS = 4
"""Units of work for each described group (`network.turns`)."""
DESCRIBED_AT_ONCE = 64
"""Groups whose members are in memory at the same time."""


class GroupsHandler:
    def __init__(
        self,
        *,
        coordinator: GroupCoordinator,
        offsets: GroupOffsets,
        view: View,
        turns: Turns,
        shares: ShareOffsets,
    ) -> None:
        self._shares = shares.coordinator
        self._share_offsets = shares
        self._coordinator = coordinator
        self._offsets = offsets
        self._view = view
        self._turns = turns

    # Members ---------------------------------------------------------------------------------

    async def join(self, request: Request, message: JoinGroupRequest) -> JoinGroupResponse:
        version = request.header.api_version
        if not request.access.may_group(AclOperation.READ, message.group_id):
            return _joined(JoinResponse(_DENIED, ""), version)
        if not message.group_id:
            refused = JoinResponse(ErrorCode.invalid_group_id, message.member_id)
            return _joined(refused, version)
        if self._shares.exists(message.group_id):
            refused = JoinResponse(ErrorCode.inconsistent_group_protocol, message.member_id)
            return _joined(refused, version)
        session_timeout_ms = _milliseconds(message.session_timeout)
        rebalance_timeout = (
            message.rebalance_timeout
            if version >= REBALANCE_TIMEOUT_FROM
            else message.session_timeout
        )
        wanted = JoinRequest(
            member_id=message.member_id,
            client_id=request.header.client_id,
            client_host=f"/{request.connection.host}",
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=_milliseconds(rebalance_timeout),
            protocol_type=message.protocol_type,
            protocols=tuple(GroupProtocol(each.name, each.metadata) for each in message.protocols),
            instance_id=message.group_instance_id,
            member_id_required=version >= MEMBER_ID_FIRST_FROM,
            may_skip_assignment=version >= SKIPPED_ASSIGNMENT_FROM,
        )
        return _joined(await self._coordinator.join(message.group_id, wanted), version)

    async def sync(self, request: Request, message: SyncGroupRequest) -> SyncGroupResponse:
        if not request.access.may_group(AclOperation.READ, message.group_id):
            return _synced(_DENIED)
        if not message.group_id:
            return _synced(ErrorCode.invalid_group_id)
        protocol = message.protocol_type, message.protocol_name
        if request.header.api_version >= PROTOCOL_IN_SYNC_FROM and None in protocol:
            return _synced(ErrorCode.inconsistent_group_protocol)
        wanted = SyncRequest(
            _identity(message),
            tuple((each.member_id, each.assignment) for each in message.assignments),
            *protocol,
        )
        response = await self._coordinator.sync(message.group_id, wanted)
        return {
            "error_code": response.error,
            "protocol_type": response.protocol_type,
            "protocol_name": response.protocol_name,
            "assignment": response.assignment,
        }

    async def heartbeat(self, request: Request, message: HeartbeatRequest) -> HeartbeatResponse:
        if not request.access.may_group(AclOperation.READ, message.group_id):
            return {"error_code": _DENIED}
        if not message.group_id:
            return {"error_code": ErrorCode.invalid_group_id}
        return {
            "error_code": await self._coordinator.heartbeat(message.group_id, _identity(message))
        }

    async def leave(self, request: Request, message: LeaveGroupRequest) -> LeaveGroupResponse:
        if not request.access.may_group(AclOperation.READ, message.group_id):
            return {"error_code": _DENIED, "members": ()}
        if not message.group_id:
            return {"error_code": ErrorCode.invalid_group_id, "members": ()}
        many = request.header.api_version >= MANY_LEAVE_FROM
        leaving = (
            [LeavingMember(each.member_id, each.group_instance_id) for each in message.members]
            if many
            else [LeavingMember(message.member_id)]
        )
        outcome = await self._coordinator.leave(message.group_id, leaving)
        error = outcome.error
        if not many and outcome.members:
            error = outcome.members[0].error
        return {
            "error_code": error,
            "members": [
                {
                    "member_id": each.member_id,
                    "group_instance_id": each.instance_id,
                    "error_code": each.error,
                }
                for each in outcome.members
            ],
        }

    # Administrators --------------------------------------------------------------------------

    async def list(self, request: Request, message: ListGroupsRequest) -> WrittenResponse:
        version = request.header.api_version
        listed = await self._coordinator.list(self._view.groups())
        if isinstance(listed, ErrorCode):
            body = list_groups.write_response(version, listed.value, ())
            return WrittenResponse(body, [listed])
        states = {each.lower() for each in message.states_filter}
        kinds = {each.lower() for each in message.types_filter}
        shares: Sequence[ShareGroupRow] = self._shares.list()
        if kinds:
            listed = [each for each in listed if each.group_type in kinds]
            shares = [each for each in shares if each.group_type in kinds]
        if states:
            listed = [each for each in listed if each.state.lower() in states]
            shares = [each for each in shares if each.state.lower() in states]
        access = request.access.quiet
        if not access.may_on_cluster(AclOperation.DESCRIBE):
            listed = await self._described(listed, access)
            shares = await self._described(shares, access)
        rows = [*listed, *shares] if shares else listed
        return WrittenResponse(list_groups.write_response(version, ErrorCode.none.value, rows))

    async def _described(self, listed: Sequence[RowT], access: Access) -> Sequence[RowT]:
        """The groups that the requester may describe."""
        found: list[RowT] = []

        def steps() -> Iterator[int]:
            for each in listed:
                if access.may_group(AclOperation.DESCRIBE, each.group_id):
                    found.append(each)
                yield 1

        await self._turns.work(steps())
        return found

    async def describe(self, request: Request, message: DescribeGroupsRequest) -> WrittenResponse:
        """Encodes each group at once: the values of all groups together take many times the memory
        of the response."""
        names = list(dict.fromkeys(message.groups))  # each once: an answer can be large
        version = request.header.api_version
        may_exist = await self._coordinator.finder()
        slices = Slices(self._turns)
        rows: dict[str, bytes] = {}
        wanted: list[str] = []
        errors: list[ErrorCode] = []
        with_operations = message.include_authorized_operations

        def add(group_id: str, found: Described | ErrorCode) -> None:
            row = _described(group_id, found, version)
            if with_operations and row["error_code"] is ErrorCode.none:
                operations = request.access.operations(ResourceType.GROUP, group_id)
                row["authorized_operations"] = operations
            rows[group_id] = write_row(DESCRIBE_GROUPS, version, "groups", row)
            error = row["error_code"]
            if error is not ErrorCode.none and len(errors) < COUNTED_ROWS:
                errors.append(error)

        for group_id in names:
            if not request.access.may_group(AclOperation.DESCRIBE, group_id):
                add(group_id, _DENIED)
            elif isinstance(may_exist, ErrorCode):
                add(group_id, may_exist)
            elif may_exist(group_id):
                rows[group_id] = b""  # keeps the group's place
                wanted.append(group_id)
            else:
                add(group_id, ErrorCode.group_id_not_found)
            await slices.spend(DESCRIBE_UNITS)
        for start in range(0, len(wanted), DESCRIBED_AT_ONCE):
            some = wanted[start : start + DESCRIBED_AT_ONCE]
            described = await each_in_turn(self._coordinator.describe, some)
            for group_id, found in zip(some, described, strict=True):
                add(group_id, found)
        body = write_rows(DESCRIBE_GROUPS, version, "groups", list(rows.values()))
        return WrittenResponse(body, errors)

    async def _delete(self, group_id: str, *, by: str | None) -> ErrorCode:
        if self._shares.exists(group_id):
            return await self._share_offsets.delete_group(group_id, by=by)
        return await self._offsets.delete_group(group_id, by=by)

    async def delete(self, request: Request, message: DeleteGroupsRequest) -> DeleteGroupsResponse:
        may_delete, denied = list[str](), list[str]()
        for group_id in dict.fromkeys(message.groups_names):
            may = request.access.may_group(AclOperation.DELETE, group_id)
            (may_delete if may else denied).append(group_id)
        found = await each_in_turn(partial(self._delete, by=request.author), may_delete)
        errors = dict(zip(may_delete, found, strict=True)) | dict.fromkeys(denied, _DENIED)
        return {
            "results": [
                {"group_id": group_id, "error_code": error} for group_id, error in errors.items()
            ]
        }


def _milliseconds(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)


def _identity(message: SyncGroupRequest | HeartbeatRequest) -> CallerIdentity:
    return CallerIdentity(message.member_id, message.generation_id, message.group_instance_id)


def _joined(response: JoinResponse, version: int) -> JoinGroupResponse:
    """Return the response. If the group has no protocol, the protocol's name is null in versions
    that allow null."""
    no_name = None if version >= PROTOCOL_TYPE_FROM else ""
    return {
        "error_code": response.error,
        "generation_id": response.generation,
        "protocol_type": response.protocol_type,
        "protocol_name": no_name if response.protocol_name is None else response.protocol_name,
        "leader": response.leader,
        "skip_assignment": response.skip_assignment,
        "member_id": response.member_id,
        "members": [
            {
                "member_id": each.member_id,
                "group_instance_id": each.instance_id,
                "metadata": each.metadata,
            }
            for each in response.members
        ],
    }


def _synced(error: ErrorCode) -> SyncGroupResponse:
    return {"error_code": error, "assignment": b""}


def _described(group_id: str, found: Described | ErrorCode, version: int) -> DescribedGroup:
    """A group that does not exist is dead, before it could be said that it is not found."""
    error, text = ErrorCode.none, None
    state, protocol_type, protocol = "", "", ""
    members: list[DescribedGroupMember] = []
    if isinstance(found, GroupDescription):
        state, protocol_type, protocol = str(found.state), found.protocol_type, found.protocol_name
        members = [
            {
                "member_id": each.member_id,
                "group_instance_id": each.instance_id,
                "client_id": each.client_id,
                "client_host": each.client_host,
                "member_metadata": each.metadata,
                "member_assignment": each.assignment,
            }
            for each in found.members
        ]
    elif isinstance(found, ModernDescription) or found is ErrorCode.group_id_not_found:
        state = str(GroupState.DEAD)
        if version >= NOT_FOUND_FROM:
            modern = isinstance(found, ModernDescription)
            error = ErrorCode.group_id_not_found
            text = f"Group {group_id} {'is not a classic group' if modern else 'not found'}."
    else:
        error = found
    return {
        "error_code": error,
        "error_message": text,
        "group_id": group_id,
        "group_state": state,
        "protocol_type": protocol_type,
        "protocol_data": protocol,
        "members": members,
        "authorized_operations": NO_OPERATIONS_KNOWN,
    }
