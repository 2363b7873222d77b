"""CreateDelegationToken: its request and response, versions 1 to 3.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatableRenewers:
    principal_type: str
    principal_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: tuple[CreatableRenewers, ...]
    max_lifetime: timedelta


class CreateDelegationTokenResponse(TypedDict):
    error_code: ErrorCode
    principal_type: str
    principal_name: str
    token_requester_principal_type: NotRequired[str]
    token_requester_principal_name: NotRequired[str]
    issue_timestamp: datetime
    expiry_timestamp: datetime
    max_timestamp: datetime
    token_id: str
    hmac: bytes
    throttle_time: NotRequired[timedelta]


CREATE_DELEGATION_TOKEN = ApiMessages(
    ApiKey.CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest, CreateDelegationTokenResponse
)
