"""ListTransactions: its request and response, versions 0 to 1.

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
class ListTransactionsRequest:
    state_filters: tuple[str, ...]
    producer_id_filters: tuple[int, ...]
    duration_filter: int = -1


class TransactionState(TypedDict):
    transactional_id: str
    producer_id: int
    transaction_state: str


class ListTransactionsResponse(TypedDict):
    throttle_time: NotRequired[timedelta]
    error_code: ErrorCode
    unknown_state_filters: NotRequired[Sequence[str]]
    transaction_states: Sequence[TransactionState]


LIST_TRANSACTIONS = ApiMessages(
    ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest, ListTransactionsResponse
)
