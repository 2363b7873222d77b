"""OffsetCommit: its request and response, versions 2 to 10.

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
class OffsetCommitRequestPartition:
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic:
    topic_id: UUID | None = None
    partitions: tuple[OffsetCommitRequestPartition, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest:
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None = None
    topics: tuple[OffsetCommitRequestTopic, ...]
    retention_time: timedelta = timedelta(milliseconds=-1)


class OffsetCommitResponsePartition(TypedDict):
    partition_index: int
    error_code: ErrorCode


class OffsetCommitResponseTopic(TypedDict):
    topic_id: NotRequired[UUID | None]
    partitions: Sequence[OffsetCommitResponsePartition]
    name: NotRequired[str]


class OffsetCommitResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    topics: Sequence[OffsetCommitResponseTopic]


OFFSET_COMMIT = ApiMessages(ApiKey.OFFSET_COMMIT, OffsetCommitRequest, OffsetCommitResponse)
