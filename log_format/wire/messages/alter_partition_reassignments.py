"""AlterPartitionReassignments: its request and response, versions 0 to 1.

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
class ReassignablePartition:
    partition_index: int
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignableTopic:
    name: str
    partitions: tuple[ReassignablePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    timeout: timedelta
    allow_replication_factor_change: bool = True
    topics: tuple[ReassignableTopic, ...]


class ReassignablePartitionResponse(TypedDict):
    partition_index: int
    error_code: ErrorCode
    error_message: str | None


class ReassignableTopicResponse(TypedDict):
    name: str
    partitions: Sequence[ReassignablePartitionResponse]


class AlterPartitionReassignmentsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    allow_replication_factor_change: NotRequired[bool]
    error_code: ErrorCode
    error_message: str | None
    responses: Sequence[ReassignableTopicResponse]


ALTER_PARTITION_REASSIGNMENTS = ApiMessages(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
