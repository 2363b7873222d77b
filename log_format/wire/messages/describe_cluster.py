"""DescribeCluster: its request and response, versions 0 to 2.

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
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(TypedDict):
    broker_id: int
    host: str
    port: int
    rack: NotRequired[str | None]
    is_fenced: NotRequired[bool]


class DescribeClusterResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: NotRequired[str | None]
    endpoint_type: NotRequired[int]
    cluster_id: str
    controller_id: NotRequired[int]
    brokers: Sequence[DescribeClusterBroker]
    cluster_authorized_operations: NotRequired[int]


DESCRIBE_CLUSTER = ApiMessages(
    ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest, DescribeClusterResponse
)
