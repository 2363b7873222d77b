"""InitProducerId: its request and response, versions 0 to 6.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest:
    transactional_id: str | None
    transaction_timeout: timedelta
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False


class InitProducerIdResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    producer_id: NotRequired[int]
    producer_epoch: int
    ongoing_txn_producer_id: NotRequired[int]
    ongoing_txn_producer_epoch: NotRequired[int]


INIT_PRODUCER_ID = ApiMessages(
    ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest, InitProducerIdResponse
)
