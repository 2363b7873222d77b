"""DescribeTransactions: its request and response, versions 0 to 0.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsRequest:
    transactional_ids: tuple[str, ...]


class TopicData(TypedDict):
    topic: str
    partitions: NotRequired[Sequence[int]]


class TransactionState(TypedDict):
    error_code: ErrorCode
    transactional_id: str
    transaction_state: str
    transaction_timeout: NotRequired[timedelta]
    transaction_start_time: datetime
    producer_id: int
    producer_epoch: int
    topics: Sequence[TopicData]


class DescribeTransactionsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    transaction_states: Sequence[TransactionState]


DESCRIBE_TRANSACTIONS = ApiMessages(
    ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest, DescribeTransactionsResponse
)
