"""DescribeGroups: its request and response, versions 0 to 6.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsRequest:
    groups: tuple[str, ...]
    include_authorized_operations: bool = False


class DescribedGroupMember(TypedDict):
    member_id: str
    group_instance_id: NotRequired[str | None]
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


class DescribedGroup(TypedDict):
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: Sequence[DescribedGroupMember]
    authorized_operations: NotRequired[int]


class DescribeGroupsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    groups: Sequence[DescribedGroup]


DESCRIBE_GROUPS = ApiMessages(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest, DescribeGroupsResponse)
