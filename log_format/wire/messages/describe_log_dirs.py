"""DescribeLogDirs: its request and response, versions 1 to 5.

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
class DescribableLogDirTopic:
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsRequest:
    topics: tuple[DescribableLogDirTopic, ...] | None


class DescribeLogDirsPartition(TypedDict):
    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool


class DescribeLogDirsTopic(TypedDict):
    name: str
    partitions: Sequence[DescribeLogDirsPartition]


class DescribeLogDirsResult(TypedDict):
    error_code: ErrorCode
    log_dir: str
    topics: Sequence[DescribeLogDirsTopic]
    total_bytes: NotRequired[int]
    usable_bytes: NotRequired[int]
    is_cordoned: NotRequired[bool]


class DescribeLogDirsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: NotRequired[ErrorCode]
    results: Sequence[DescribeLogDirsResult]


DESCRIBE_LOG_DIRS = ApiMessages(
    ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest, DescribeLogDirsResponse
)
