"""DescribeDelegationToken: its request and response, versions 1 to 3.

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
class DescribeDelegationTokenOwner:
    principal_type: str
    principal_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDelegationTokenRequest:
    owners: tuple[DescribeDelegationTokenOwner, ...] | None


class DescribedDelegationTokenRenewer(TypedDict):
    principal_type: str
    principal_name: str


class DescribedDelegationToken(TypedDict):
    principal_type: str
    principal_name: str
    token_requester_principal_type: NotRequired[str]
    token_requester_principal_name: NotRequired[str]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    token_id: str
    hmac: bytes
    renewers: Sequence[DescribedDelegationTokenRenewer]


class DescribeDelegationTokenResponse(TypedDict):
    error_code: ErrorCode
    tokens: Sequence[DescribedDelegationToken]
    throttle_time: NotRequired[timedelta]


DESCRIBE_DELEGATION_TOKEN = ApiMessages(
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
