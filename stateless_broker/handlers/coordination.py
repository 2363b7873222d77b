"""FindCoordinator and InitProducerId.

Source: KIP-98, KIP-360, KIP-699 (many keys at once). Transactional ids are refused until this
broker has transactions; a consumer group finds the broker that is first for it among the live ones.
"""

import asyncio
from collections.abc import Iterator

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from bucketlog.log_format.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.membership import Membership
from bucketlog.stateless_broker.network.dispatch import Request
from bucketlog.stateless_broker.network.turns import Turns

GROUP = 0
TRANSACTION = 1
MANY_KEYS_FROM = 4
PRODUCER_IDS_BLOCK = 100
NO_TRANSACTIONS = "this version of bucketlog has no transactions yet: leave out transactional.id"

NOT_HEARD = "this broker does not reach the sequencer, and cannot tell which brokers live"


class CoordinationHandler:
    """`wait_ms` bounds an InitProducerId."""

    def __init__(
        self,
        *,
        membership: Membership,
        sequencer: Sequencer,
        end: EpochEnd,
        wait_ms: int,
        turns: Turns,
    ) -> None:
        self._membership = membership
        self._turns = turns
        self._sequencer = sequencer
        self._end = end
        self._wait_s = wait_ms / 1000
        self._producer_ids = iter(range(0))
        self._asking = asyncio.Lock()

    async def find_coordinator(
        self, request: Request, message: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        kind = message.key_type
        if request.header.api_version >= MANY_KEYS_FROM:
            found_by_key: list[Coordinator] = []

            def steps() -> Iterator[int]:
                for key in dict.fromkeys(message.coordinator_keys):  # each once
                    found_by_key.append(self._coordinator(kind, key))
                    yield 1

            await self._turns.work(steps())
            return {"coordinators": found_by_key}
        found = self._coordinator(kind, message.key)
        return {
            "error_code": found["error_code"],
            "error_message": found["error_message"],
            "node_id": found["node_id"],
            "host": found["host"],
            "port": found["port"],
        }

    def _coordinator(self, kind: int, key: str) -> Coordinator:
        error, text = ErrorCode.invalid_request, f"key type {kind} is unknown"
        if kind == TRANSACTION:
            error, text = ErrorCode.transactional_id_authorization_failed, NO_TRANSACTIONS
        elif kind == GROUP and not self._membership.is_session_live:
            error, text = ErrorCode.coordinator_not_available, NOT_HEARD
        elif kind == GROUP:
            node = self._membership.coordinator_of(key)
            return {
                "key": key,
                "error_code": ErrorCode.none,
                "error_message": None,
                "node_id": node.node_id,
                "host": node.address.host,
                "port": node.address.port,
            }
        return {
            "key": key,
            "error_code": error,
            "error_message": text,
            "node_id": -1,
            "host": "",
            "port": -1,
        }

    async def init_producer_id(
        self, request: Request, message: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        if message.transactional_id is not None:
            return _no_producer(ErrorCode.transactional_id_authorization_failed)
        try:
            async with asyncio.timeout(self._wait_s):
                producer_id = await self._next_producer_id()
        except (TimeoutError, SequencerError) as error:
            if isinstance(error, SequencerError) and not error.retriable:
                self._end.end(str(error))
            return _no_producer(kafka_code(error, ApiFamily.PRODUCER_IDS))
        return {"error_code": ErrorCode.none, "producer_id": producer_id, "producer_epoch": 0}

    async def _next_producer_id(self) -> int:
        self._end.check()
        async with self._asking:  # many producers that start at once share a block
            for producer_id in self._producer_ids:
                return producer_id
            first = await self._sequencer.producer_ids(self._end.epoch, PRODUCER_IDS_BLOCK)
            self._producer_ids = iter(range(first + 1, first + PRODUCER_IDS_BLOCK))
            return first


def _no_producer(error: ErrorCode) -> InitProducerIdResponse:
    return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
