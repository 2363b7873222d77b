"""OffsetFetch: its request and response, versions 1 to 10.

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
class OffsetFetchRequestTopics:
    topic_id: UUID | None = None
    partition_indexes: tuple[int, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroup:
    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopic:
    name: str
    partition_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest:
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    require_stable: bool = False
    group_id: str = ""
    topics: tuple[OffsetFetchRequestTopic, ...] | None = ()


class OffsetFetchResponsePartitions(TypedDict):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: NotRequired[int]
    metadata: str | None
    error_code: ErrorCode


class OffsetFetchResponseTopics(TypedDict):
    topic_id: NotRequired[UUID | None]
    partitions: Sequence[OffsetFetchResponsePartitions]
    name: NotRequired[str]


class OffsetFetchResponseGroup(TypedDict):
    group_id: str
    topics: Sequence[OffsetFetchResponseTopics]
    error_code: NotRequired[ErrorCode]


class OffsetFetchResponsePartition(TypedDict):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: NotRequired[int]
    metadata: str | None
    error_code: ErrorCode


class OffsetFetchResponseTopic(TypedDict):
    name: str
    partitions: Sequence[OffsetFetchResponsePartition]


class OffsetFetchResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    groups: NotRequired[Sequence[OffsetFetchResponseGroup]]
    topics: NotRequired[Sequence[OffsetFetchResponseTopic]]
    error_code: NotRequired[ErrorCode]


OFFSET_FETCH = ApiMessages(ApiKey.OFFSET_FETCH, OffsetFetchRequest, OffsetFetchResponse)
