"""DeleteShareGroupOffsets: its request and response, versions 0 to 0.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteShareGroupOffsetsRequest:
    group_id: str
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...]


class DeleteShareGroupOffsetsResponseTopic(TypedDict):
    topic_name: str
    topic_id: UUID | None
    error_code: ErrorCode
    error_message: NotRequired[str | None]


class DeleteShareGroupOffsetsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    responses: Sequence[DeleteShareGroupOffsetsResponseTopic]


DELETE_SHARE_GROUP_OFFSETS = ApiMessages(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
