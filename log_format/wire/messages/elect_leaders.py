"""ElectLeaders: its request and response, versions 0 to 2.

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
class TopicPartitions:
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest:
    election_type: int = 0
    topic_partitions: tuple[TopicPartitions, ...] | None
    timeout: timedelta


class PartitionResult(TypedDict):
    partition_id: int
    error_code: ErrorCode
    error_message: str | None


class ReplicaElectionResult(TypedDict):
    topic: str
    partition_result: Sequence[PartitionResult]


class ElectLeadersResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: NotRequired[ErrorCode]
    replica_election_results: Sequence[ReplicaElectionResult]


ELECT_LEADERS = ApiMessages(ApiKey.ELECT_LEADERS, ElectLeadersRequest, ElectLeadersResponse)
