"""ApiVersions: its request and response, versions 0 to 4.

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
class ApiVersionsRequest:
    client_software_name: str = ""
    client_software_version: str = ""


class ApiVersion(TypedDict):
    api_key: int
    min_version: int
    max_version: int


class SupportedFeatureKey(TypedDict):
    name: str
    min_version: int
    max_version: int


class FinalizedFeatureKey(TypedDict):
    name: str
    max_version_level: int
    min_version_level: int


class ApiVersionsResponse(TypedDict):
    error_code: ErrorCode
    api_keys: Sequence[ApiVersion]
    throttle_time: NotRequired[timedelta]
    supported_features: NotRequired[Sequence[SupportedFeatureKey]]
    finalized_features_epoch: NotRequired[int]
    finalized_features: NotRequired[Sequence[FinalizedFeatureKey]]
    zk_migration_ready: NotRequired[bool]


API_VERSIONS = ApiMessages(ApiKey.API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse)
