"""ListGroups: its request and response, versions 0 to 5.

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
class ListGroupsRequest:
    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


class ListedGroup(TypedDict):
    group_id: str
    protocol_type: str
    group_state: NotRequired[str]
    group_type: NotRequired[str]


class ListGroupsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    groups: Sequence[ListedGroup]


LIST_GROUPS = ApiMessages(ApiKey.LIST_GROUPS, ListGroupsRequest, ListGroupsResponse)
