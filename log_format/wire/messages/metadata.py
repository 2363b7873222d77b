"""Metadata: its request and response, versions 0 to 13.

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
class MetadataRequestTopic:
    topic_id: UUID | None = None
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest:
    topics: tuple[MetadataRequestTopic, ...] | None
    allow_auto_topic_creation: bool = True
    include_topic_authorized_operations: bool = False
    include_cluster_authorized_operations: bool = False


class MetadataResponseBroker(TypedDict):
    node_id: int
    host: str
    port: int
    rack: NotRequired[str | None]


class MetadataResponsePartition(TypedDict):
    error_code: ErrorCode
    partition_index: int
    leader_id: int
    leader_epoch: NotRequired[int]
    replica_nodes: NotRequired[Sequence[int]]
    isr_nodes: NotRequired[Sequence[int]]
    offline_replicas: NotRequired[Sequence[int]]


class MetadataResponseTopic(TypedDict):
    error_code: ErrorCode
    name: str | None
    topic_id: NotRequired[UUID | None]
    is_internal: NotRequired[bool]
    partitions: Sequence[MetadataResponsePartition]
    topic_authorized_operations: NotRequired[int]


class MetadataResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    brokers: Sequence[MetadataResponseBroker]
    cluster_id: NotRequired[str | None]
    controller_id: NotRequired[int]
    topics: Sequence[MetadataResponseTopic]
    error_code: NotRequired[ErrorCode]
    cluster_authorized_operations: NotRequired[int]


METADATA = ApiMessages(ApiKey.METADATA, MetadataRequest, MetadataResponse)
