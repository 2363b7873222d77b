"""JoinGroup: its request and response, versions 0 to 9.

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
class JoinGroupRequestProtocol:
    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupRequest:
    group_id: str
    session_timeout: timedelta
    rebalance_timeout: timedelta = timedelta(milliseconds=-1)
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: str | None = None


class JoinGroupResponseMember(TypedDict):
    member_id: str
    group_instance_id: NotRequired[str | None]
    metadata: bytes


class JoinGroupResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    generation_id: NotRequired[int]
    protocol_type: NotRequired[str | None]
    protocol_name: str | None
    leader: str
    skip_assignment: NotRequired[bool]
    member_id: str
    members: Sequence[JoinGroupResponseMember]


JOIN_GROUP = ApiMessages(ApiKey.JOIN_GROUP, JoinGroupRequest, JoinGroupResponse)
