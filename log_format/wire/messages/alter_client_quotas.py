"""AlterClientQuotas: its request and response, versions 0 to 1.

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
class EntityData:
    entity_type: str
    entity_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpData:
    key: str
    value: float
    remove: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryData:
    entity: tuple[EntityData, ...]
    ops: tuple[OpData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterClientQuotasRequest:
    entries: tuple[EntryData, ...]
    validate_only: bool


class ResponseEntityData(TypedDict):
    entity_type: str
    entity_name: str | None


class ResponseEntryData(TypedDict):
    error_code: ErrorCode
    error_message: str | None
    entity: Sequence[ResponseEntityData]


class AlterClientQuotasResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    entries: Sequence[ResponseEntryData]


ALTER_CLIENT_QUOTAS = ApiMessages(
    ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest, AlterClientQuotasResponse
)
