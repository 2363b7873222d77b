"""SaslAuthenticate: its request and response, versions 0 to 2.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateRequest:
    auth_bytes: bytes


class SaslAuthenticateResponse(TypedDict):
    error_code: ErrorCode
    error_message: str | None
    auth_bytes: bytes
    session_lifetime: NotRequired[timedelta]


SASL_AUTHENTICATE = ApiMessages(
    ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest, SaslAuthenticateResponse
)
