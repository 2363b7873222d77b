"""RenewDelegationToken: its request and response, versions 1 to 2.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewDelegationTokenRequest:
    hmac: bytes
    renew_period: timedelta


class RenewDelegationTokenResponse(TypedDict):
    error_code: ErrorCode
    expiry_timestamp: datetime
    throttle_time: NotRequired[timedelta]


RENEW_DELEGATION_TOKEN = ApiMessages(
    ApiKey.RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest, RenewDelegationTokenResponse
)
