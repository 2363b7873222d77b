"""DescribeQuorum: its request and response, versions 0 to 2.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicData:
    topic_name: str
    partitions: tuple[PartitionData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequest:
    topics: tuple[TopicData, ...]


class ReplicaState(TypedDict):
    replica_id: int
    replica_directory_id: NotRequired[UUID | None]
    log_end_offset: int
    last_fetch_timestamp: NotRequired[int]
    last_caught_up_timestamp: NotRequired[int]


class ResponsePartitionData(TypedDict):
    partition_index: int
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: Sequence[ReplicaState]
    observers: Sequence[ReplicaState]


class ResponseTopicData(TypedDict):
    topic_name: str
    partitions: Sequence[ResponsePartitionData]


class ResponseListener(TypedDict):
    name: str
    host: str
    port: int


class ResponseNode(TypedDict):
    node_id: int
    listeners: Sequence[ResponseListener]


class DescribeQuorumResponse(TypedDict):
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    topics: Sequence[ResponseTopicData]
    nodes: NotRequired[Sequence[ResponseNode]]


DESCRIBE_QUORUM = ApiMessages(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest, DescribeQuorumResponse)
