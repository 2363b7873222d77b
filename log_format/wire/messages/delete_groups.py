"""DeleteGroups: its request and response, versions 0 to 2.

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
class DeleteGroupsRequest:
    groups_names: tuple[str, ...]


class DeletableGroupResult(TypedDict):
    group_id: str
    error_code: ErrorCode


class DeleteGroupsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    results: Sequence[DeletableGroupResult]


DELETE_GROUPS = ApiMessages(ApiKey.DELETE_GROUPS, DeleteGroupsRequest, DeleteGroupsResponse)
