"""GetTelemetrySubscriptions: its request and response, versions 0 to 0.

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
class GetTelemetrySubscriptionsRequest:
    client_instance_id: UUID | None


class GetTelemetrySubscriptionsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    client_instance_id: UUID | None
    subscription_id: int
    accepted_compression_types: NotRequired[Sequence[int]]
    push_interval: NotRequired[timedelta]
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: NotRequired[Sequence[str]]


GET_TELEMETRY_SUBSCRIPTIONS = ApiMessages(
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
