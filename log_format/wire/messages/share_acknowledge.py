"""ShareAcknowledge: its request and response, versions 1 to 2.

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
class AcknowledgementBatch:
    first_offset: int
    last_offset: int
    acknowledge_types: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgePartition:
    partition_index: int
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeTopic:
    topic_id: UUID | None
    partitions: tuple[AcknowledgePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeRequest:
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool = False
    topics: tuple[AcknowledgeTopic, ...]


class LeaderIdAndEpoch(TypedDict):
    leader_id: int
    leader_epoch: int


class PartitionData(TypedDict):
    partition_index: int
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    current_leader: LeaderIdAndEpoch


class ShareAcknowledgeTopicResponse(TypedDict):
    topic_id: UUID | None
    partitions: Sequence[PartitionData]


class NodeEndpoint(TypedDict):
    node_id: int
    host: str
    port: int
    rack: NotRequired[str | None]


class ShareAcknowledgeResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    acquisition_lock_timeout: NotRequired[timedelta]
    responses: Sequence[ShareAcknowledgeTopicResponse]
    node_endpoints: Sequence[NodeEndpoint]


SHARE_ACKNOWLEDGE = ApiMessages(
    ApiKey.SHARE_ACKNOWLEDGE, ShareAcknowledgeRequest, ShareAcknowledgeResponse
)
