"""DescribeUserScramCredentials: its request and response, versions 0 to 0.

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
class UserName:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    users: tuple[UserName, ...] | None


class CredentialInfo(TypedDict):
    mechanism: int
    iterations: int


class DescribeUserScramCredentialsResult(TypedDict):
    user: str
    error_code: ErrorCode
    error_message: str | None
    credential_infos: Sequence[CredentialInfo]


class DescribeUserScramCredentialsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: str | None
    results: Sequence[DescribeUserScramCredentialsResult]


DESCRIBE_USER_SCRAM_CREDENTIALS = ApiMessages(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
