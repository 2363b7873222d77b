"""LeaveGroup: its request and response, versions 0 to 5.

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
class MemberIdentity:
    member_id: str
    group_instance_id: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupRequest:
    group_id: str
    members: tuple[MemberIdentity, ...] = ()
    member_id: str = ""


class MemberResponse(TypedDict):
    member_id: str
    group_instance_id: str | None
    error_code: ErrorCode


class LeaveGroupResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    members: NotRequired[Sequence[MemberResponse]]


LEAVE_GROUP = ApiMessages(ApiKey.LEAVE_GROUP, LeaveGroupRequest, LeaveGroupResponse)
