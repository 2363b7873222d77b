"""DeleteRecords: its request and response, versions 0 to 2.

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
class DeleteRecordsPartition:
    partition_index: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopic:
    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequest:
    topics: tuple[DeleteRecordsTopic, ...]
    timeout: timedelta


class DeleteRecordsPartitionResult(TypedDict):
    partition_index: int
    low_watermark: int
    error_code: ErrorCode


class DeleteRecordsTopicResult(TypedDict):
    name: str
    partitions: Sequence[DeleteRecordsPartitionResult]


class DeleteRecordsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    topics: Sequence[DeleteRecordsTopicResult]


DELETE_RECORDS = ApiMessages(ApiKey.DELETE_RECORDS, DeleteRecordsRequest, DeleteRecordsResponse)
