"""CreateAcls: its request and response, versions 1 to 3.

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
class AclCreation:
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsRequest:
    creations: tuple[AclCreation, ...]


class AclCreationResult(TypedDict):
    error_code: ErrorCode
    error_message: str | None


class CreateAclsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    results: Sequence[AclCreationResult]


CREATE_ACLS = ApiMessages(ApiKey.CREATE_ACLS, CreateAclsRequest, CreateAclsResponse)
