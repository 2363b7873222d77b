"""EndTxn: its request and response, versions 0 to 5.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnRequest:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


class EndTxnResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    producer_id: NotRequired[int]
    producer_epoch: NotRequired[int]


END_TXN = ApiMessages(ApiKey.END_TXN, EndTxnRequest, EndTxnResponse)
