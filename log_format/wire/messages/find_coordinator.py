"""FindCoordinator: its request and response, versions 0 to 6.

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
class FindCoordinatorRequest:
    key_type: int = 0
    coordinator_keys: tuple[str, ...] = ()
    key: str = ""


class Coordinator(TypedDict):
    key: str
    node_id: int
    host: str
    port: int
    error_code: ErrorCode
    error_message: str | None


class FindCoordinatorResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    coordinators: NotRequired[Sequence[Coordinator]]
    error_code: NotRequired[ErrorCode]
    error_message: NotRequired[str | None]
    node_id: NotRequired[int]
    host: NotRequired[str]
    port: NotRequired[int]


FIND_COORDINATOR = ApiMessages(
    ApiKey.FIND_COORDINATOR, FindCoordinatorRequest, FindCoordinatorResponse
)
