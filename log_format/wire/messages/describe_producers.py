"""DescribeProducers: its request and response, versions 0 to 0.

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
class TopicRequest:
    name: str
    partition_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersRequest:
    topics: tuple[TopicRequest, ...]


class ProducerState(TypedDict):
    producer_id: int
    producer_epoch: int
    last_sequence: NotRequired[int]
    last_timestamp: NotRequired[int]
    coordinator_epoch: int
    current_txn_start_offset: NotRequired[int]


class PartitionResponse(TypedDict):
    partition_index: int
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    active_producers: Sequence[ProducerState]


class TopicResponse(TypedDict):
    name: str
    partitions: Sequence[PartitionResponse]


class DescribeProducersResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    topics: Sequence[TopicResponse]


DESCRIBE_PRODUCERS = ApiMessages(
    ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest, DescribeProducersResponse
)
