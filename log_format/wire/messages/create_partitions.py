"""CreatePartitions: its request and response, versions 0 to 3.

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
class CreatePartitionsAssignment:
    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsTopic:
    name: str
    count: int
    assignments: tuple[CreatePartitionsAssignment, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsRequest:
    topics: tuple[CreatePartitionsTopic, ...]
    timeout: timedelta
    validate_only: bool


class CreatePartitionsTopicResult(TypedDict):
    name: str
    error_code: ErrorCode
    error_message: NotRequired[str | None]


class CreatePartitionsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    results: Sequence[CreatePartitionsTopicResult]


CREATE_PARTITIONS = ApiMessages(
    ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest, CreatePartitionsResponse
)
