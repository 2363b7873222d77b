"""DescribeClientQuotas: its request and response, versions 0 to 1.

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
class ComponentData:
    entity_type: str
    match_type: int
    match: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    components: tuple[ComponentData, ...]
    strict: bool


class EntityData(TypedDict):
    entity_type: str
    entity_name: str | None


class ValueData(TypedDict):
    key: str
    value: float


class EntryData(TypedDict):
    entity: Sequence[EntityData]
    values: Sequence[ValueData]


class DescribeClientQuotasResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    error_message: str | None
    entries: Sequence[EntryData] | None


DESCRIBE_CLIENT_QUOTAS = ApiMessages(
    ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest, DescribeClientQuotasResponse
)
