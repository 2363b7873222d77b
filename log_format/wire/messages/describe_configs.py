"""DescribeConfigs: its request and response, versions 1 to 4.

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
class DescribeConfigsResource:
    resource_type: int
    resource_name: str
    configuration_keys: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsRequest:
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool
    include_documentation: bool = False


class DescribeConfigsSynonym(TypedDict):
    name: str
    value: str | None
    source: int


class DescribeConfigsResourceResult(TypedDict):
    name: str
    value: str | None
    read_only: bool
    config_source: NotRequired[int]
    is_sensitive: bool
    synonyms: Sequence[DescribeConfigsSynonym]
    config_type: NotRequired[int]
    documentation: NotRequired[str | None]


class DescribeConfigsResult(TypedDict):
    error_code: ErrorCode
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: Sequence[DescribeConfigsResourceResult]


class DescribeConfigsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    results: Sequence[DescribeConfigsResult]


DESCRIBE_CONFIGS = ApiMessages(
    ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest, DescribeConfigsResponse
)
