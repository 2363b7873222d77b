"""OffsetForLeaderEpoch: its request and response, versions 2 to 4.

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
class OffsetForLeaderPartition:
    partition: int
    current_leader_epoch: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopic:
    topic: str
    partitions: tuple[OffsetForLeaderPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest:
    replica_id: int = -2
    topics: tuple[OffsetForLeaderTopic, ...]


class EpochEndOffset(TypedDict):
    error_code: ErrorCode
    partition: int
    leader_epoch: NotRequired[int]
    end_offset: NotRequired[int]


class OffsetForLeaderTopicResult(TypedDict):
    topic: str
    partitions: Sequence[EpochEndOffset]


class OffsetForLeaderEpochResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    topics: Sequence[OffsetForLeaderTopicResult]


OFFSET_FOR_LEADER_EPOCH = ApiMessages(
    ApiKey.OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
)
