"""FindCoordinator and InitProducerId.

Source: KIP-98, KIP-360, KIP-699 (many keys at once). A consumer group or a transactional id finds
the broker that is first for it among the live ones. Transactional ids are refused if transactions
are off. A transactional id's broker is only a hint: every broker takes its requests.
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
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.authorization.needs import GROUP_NOT_AUTHORIZED
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.handlers.transactions import TransactionsHandler
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.producer_ids import ProducerIds

GROUP = 0
TRANSACTION = 1
MANY_KEYS_FROM = 4
NO_TRANSACTIONS = "transactions are off (BUCKETLOG_TRANSACTIONS): leave out transactional.id"

NO_LISTENER = "the coordinator has no listener of the name that this connection came through"
NOT_HEARD = "this broker does not reach the sequencer, and cannot tell which brokers live"


class CoordinationHandler:
    """`wait_ms` bounds an InitProducerId."""

    def __init__(
        self,
        *,
        membership: Membership,
        producer_ids: ProducerIds,
        end: EpochEnd,
        wait_ms: int,
        turns: Turns,
        transactions: TransactionsHandler | None,
    ) -> None:
        self._membership = membership
        self._turns = turns
        self._transactions = transactions
        self._end = end
        self._wait_s = wait_ms / 1000
        self._producer_ids = producer_ids

    async def find_coordinator(
        self, request: Request, message: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        kind, listener = message.key_type, request.connection.listener
        if request.header.api_version >= MANY_KEYS_FROM:
            found_by_key: list[Coordinator] = []

            def steps() -> Iterator[int]:
                for key in dict.fromkeys(message.coordinator_keys):  # each once
                    found_by_key.append(self._coordinator(kind, key, listener, request.access))
                    yield 1

            await self._turns.work(steps())
            return {"coordinators": found_by_key}
        found = self._coordinator(kind, message.key, listener, request.access)
        return {
            "error_code": found["error_code"],
            "error_message": found["error_message"],
            "node_id": found["node_id"],
            "host": found["host"],
            "port": found["port"],
        }

    def _coordinator(self, kind: int, key: str, listener: str, access: Access) -> Coordinator:
        error, text = ErrorCode.invalid_request, f"key type {kind} is unknown"
        has_transactions = self._transactions is not None
        if kind == GROUP and not access.may_group(AclOperation.DESCRIBE, key):
            error, text = ErrorCode.group_authorization_failed, GROUP_NOT_AUTHORIZED
        elif kind == TRANSACTION and not access.may_id(AclOperation.DESCRIBE, key):
            error = ErrorCode.transactional_id_authorization_failed
            text = "Transactional Id authorization failed."
        elif kind == TRANSACTION and not has_transactions:
            error, text = ErrorCode.transactional_id_authorization_failed, NO_TRANSACTIONS
        elif kind in (GROUP, TRANSACTION) and not self._membership.is_session_live:
            error, text = ErrorCode.coordinator_not_available, NOT_HEARD
        elif kind in (GROUP, TRANSACTION):
            membership = self._membership
            is_group = kind == GROUP
            node = (
                membership.coordinator_of(key)
                if is_group
                else membership.transaction_coordinator_of(key)
            )
            at = node.address.of(listener)
            if at is not None:
                return {
                    "key": key,
                    "error_code": ErrorCode.none,
                    "error_message": None,
                    "node_id": node.node_id,
                    "host": at.host,
                    "port": at.port,
                }
            error, text = ErrorCode.coordinator_not_available, NO_LISTENER
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
        access, transactional_id = request.access, message.transactional_id
        if transactional_id is not None:
            if not access.may_id(AclOperation.WRITE, transactional_id):
                return _no_producer(ErrorCode.transactional_id_authorization_failed)
        elif not access.may_on_any_topic(AclOperation.WRITE) and not access.may_on_cluster(
            AclOperation.IDEMPOTENT_WRITE
        ):
            return _no_producer(ErrorCode.cluster_authorization_failed)
        if message.transactional_id is not None and self._transactions is not None:
            return await self._transactions.init_producer_id(request, message)
        if message.transactional_id is not None:
            return _no_producer(ErrorCode.transactional_id_authorization_failed)
        if (message.producer_id < 0) != (message.producer_epoch < 0):
            return _no_producer(ErrorCode.invalid_request)
        try:
            async with asyncio.timeout(self._wait_s):
                producer_id = await self._producer_ids.next()
        except (TimeoutError, SequencerError) as error:
            if isinstance(error, SequencerError) and not error.retriable:
                self._end.end(str(error))
            return _no_producer(kafka_code(error, ApiFamily.PRODUCER_IDS))
        return {"error_code": ErrorCode.none, "producer_id": producer_id, "producer_epoch": 0}


def _no_producer(error: ErrorCode) -> InitProducerIdResponse:
    return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
