"""CreateTopics: its request and response, versions 2 to 7.

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
class CreatableReplicaAssignment:
    partition_index: int
    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopicConfig:
    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableTopic:
    name: str
    num_partitions: int
    replication_factor: int
    assignments: tuple[CreatableReplicaAssignment, ...]
    configs: tuple[CreatableTopicConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsRequest:
    topics: tuple[CreatableTopic, ...]
    timeout: timedelta
    validate_only: bool


class CreatableTopicConfigs(TypedDict):
    name: str
    value: str | None
    read_only: bool
    config_source: NotRequired[int]
    is_sensitive: bool


class CreatableTopicResult(TypedDict):
    name: str
    topic_id: NotRequired[UUID | None]
    error_code: ErrorCode
    error_message: str | None
    topic_config_error_code: NotRequired[int]
    num_partitions: NotRequired[int]
    replication_factor: NotRequired[int]
    configs: NotRequired[Sequence[CreatableTopicConfigs] | None]


class CreateTopicsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    topics: Sequence[CreatableTopicResult]


CREATE_TOPICS = ApiMessages(ApiKey.CREATE_TOPICS, CreateTopicsRequest, CreateTopicsResponse)
