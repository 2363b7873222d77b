"""PushTelemetry: its request and response, versions 0 to 0.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTelemetryRequest:
    client_instance_id: UUID | None
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes


class PushTelemetryResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode


PUSH_TELEMETRY = ApiMessages(ApiKey.PUSH_TELEMETRY, PushTelemetryRequest, PushTelemetryResponse)
