"""SyncGroup: its request and response, versions 0 to 5.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupRequestAssignment:
    member_id: str
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...]


class SyncGroupResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    protocol_type: NotRequired[str | None]
    protocol_name: NotRequired[str | None]
    assignment: bytes


SYNC_GROUP = ApiMessages(ApiKey.SYNC_GROUP, SyncGroupRequest, SyncGroupResponse)
