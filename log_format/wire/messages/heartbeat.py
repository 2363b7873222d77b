"""Heartbeat: its request and response, versions 0 to 4.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class HeartbeatResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode


HEARTBEAT = ApiMessages(ApiKey.HEARTBEAT, HeartbeatRequest, HeartbeatResponse)
