"""DeleteTopics: its request and response, versions 1 to 6.

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
class DeleteTopicState:
    name: str | None
    topic_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    topics: tuple[DeleteTopicState, ...] = ()
    timeout: timedelta
    topic_names: tuple[str, ...] = ()


class DeletableTopicResult(TypedDict):
    name: str | None
    topic_id: NotRequired[UUID | None]
    error_code: ErrorCode
    error_message: NotRequired[str | None]


class DeleteTopicsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    responses: Sequence[DeletableTopicResult]


DELETE_TOPICS = ApiMessages(ApiKey.DELETE_TOPICS, DeleteTopicsRequest, DeleteTopicsResponse)
