"""UpdateFeatures: its request and response, versions 0 to 2.

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
class FeatureUpdateKey:
    feature: str
    max_version_level: int
    upgrade_type: int = 1
    allow_downgrade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesRequest:
    timeout: timedelta
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: bool = False


class UpdatableFeatureResult(TypedDict):
    feature: str
    error_code: ErrorCode
    error_message: str | None


class UpdateFeaturesResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: str | None
    results: NotRequired[Sequence[UpdatableFeatureResult]]


UPDATE_FEATURES = ApiMessages(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest, UpdateFeaturesResponse)
