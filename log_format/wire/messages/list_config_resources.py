"""ListConfigResources: its request and response, versions 0 to 1.

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
class ListConfigResourcesRequest:
    resource_types: tuple[int, ...] = ()


class ConfigResource(TypedDict):
    resource_name: str
    resource_type: NotRequired[int]


class ListConfigResourcesResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    config_resources: Sequence[ConfigResource]


LIST_CONFIG_RESOURCES = ApiMessages(
    ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest, ListConfigResourcesResponse
)
