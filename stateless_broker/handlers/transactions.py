"""InitProducerId with a transactional id, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn.

Translators between Kafka's messages and `TransactionLog`. Every request is judged by its own
version: from EndTxn 5 on, each end raises the producer's epoch (KIP-890). Any broker takes the
requests of any transactional id. Source: KIP-98, KIP-360, KIP-588, KIP-890, KIP-939; Kafka's
TransactionCoordinator and KafkaApis.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import SequencerError, SequencerLostError
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from bucketlog.log_format.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from bucketlog.log_format.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from bucketlog.log_format.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.transaction_requests import ProducerPair, TransactionPart
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.handlers.transaction_codes import (
    add_code,
    end_code,
    init_code,
    verified_code,
)
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.transaction_log import VERSION_1, TransactionLog

VERSION_2 = 2
VERSION_2_FROM = 5
"""EndTxn and TxnOffsetCommit."""
INIT_OF_VERSION_2_FROM = 5
MANY_TRANSACTIONS_FROM = 4
ROWS_A_STEP = 500
NONE = -1
_ID_DENIED = ErrorCode.transactional_id_authorization_failed


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """Rules of transactions. `two_phase_commit`: whether clients may use two-phase commit
    (KIP-939)."""

    timeout_ms_max: int
    id_bytes_max: int
    partitions_max: int
    group_id_bytes_max: int
    two_phase_commit: bool


def stop_with_client(connection: Connection) -> None:
    """The request is not executed after its client has gone: the client may have asked again, and
    an init or a request of version 1 could then spoil its next transaction."""
    task = asyncio.current_task()
    if task is not None:
        connection.give_up_with_client(task)


class TransactionsHandler:
    def __init__(
        self,
        *,
        transactions: TransactionLog,
        view: View,
        end: EpochEnd,
        is_leaving: Callable[[], bool],
        rules: TransactionRules,
        turns: Turns,
    ) -> None:
        self._turns = turns
        self._transactions = transactions
        self._view = view
        self._end = end
        self._is_leaving = is_leaving
        self._rules = rules

    def is_id(self, transactional_id: str) -> bool:
        return 0 < len(transactional_id.encode()) <= self._rules.id_bytes_max

    # InitProducerId --------------------------------------------------------------------------

    async def init_producer_id(
        self, request: Request, message: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        stop_with_client(request.connection)
        version, transactional_id = request.header.api_version, message.transactional_id or ""
        timeout_ms = round(message.transaction_timeout.total_seconds() * 1000)
        given = ProducerPair(message.producer_id, message.producer_epoch)
        two_phase, keeps = message.enable2_pc, message.keep_prepared_txn
        if not self.is_id(transactional_id) or (given.producer_id < 0) != (given.epoch < 0):
            return _no_producer(ErrorCode.invalid_request)
        if two_phase and not request.access.may_id(AclOperation.TWO_PHASE_COMMIT, transactional_id):
            return _no_producer(_ID_DENIED)
        if (two_phase or keeps) and not self._rules.two_phase_commit:
            return _no_producer(_ID_DENIED)
        if keeps and given.is_possible:
            return _no_producer(ErrorCode.invalid_request)
        if timeout_ms <= 0 or (not two_phase and timeout_ms > self._rules.timeout_ms_max):
            return _no_producer(ErrorCode.invalid_transaction_timeout)
        if self._is_leaving():
            return _no_producer(ErrorCode.not_coordinator)
        try:
            outcome = await self._transactions.initialise(
                transactional_id,
                None if given.producer_id < 0 else given,
                timeout_ms=timeout_ms,
                version=VERSION_2 if version >= INIT_OF_VERSION_2_FROM else VERSION_1,
                two_phase=two_phase,
                keeps=keeps,
            )
        except (SequencerError, TimeoutError) as error:
            self._note(error)
            return _no_producer(kafka_code(error, ApiFamily.PRODUCER_IDS))
        code = init_code(outcome.status, version)
        if code is not ErrorCode.none or outcome.change is None:
            return _no_producer(code)
        producer_id, epoch = outcome.change.pair
        kept_id, kept_epoch = outcome.change.kept or ProducerPair(NONE, NONE)
        return {
            "error_code": code,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "ongoing_txn_producer_id": kept_id,
            "ongoing_txn_producer_epoch": kept_epoch,
        }

    def _note(self, error: Exception) -> None:
        if isinstance(error, SequencerLostError):
            self._end.end(str(error))

    async def _status(self, work: Awaitable[FactStatus]) -> FactStatus | ErrorCode:
        try:
            return await work
        except (SequencerError, TimeoutError) as error:
            self._note(error)
            return kafka_code(error, ApiFamily.TRANSACTIONS)

    # EndTxn ----------------------------------------------------------------------------------

    async def end(self, request: Request, message: EndTxnRequest) -> EndTxnResponse:
        api_version = request.header.api_version
        version = VERSION_2 if api_version >= VERSION_2_FROM else VERSION_1
        if version == VERSION_1:
            stop_with_client(request.connection)
        if not request.access.may_id(AclOperation.WRITE, message.transactional_id):
            return _not_ended(_ID_DENIED)
        if not self.is_id(message.transactional_id):
            return _not_ended(ErrorCode.invalid_request)
        if self._is_leaving():
            return _not_ended(ErrorCode.not_coordinator)
        pair = ProducerPair(message.producer_id, message.producer_epoch)
        try:
            outcome = await self._transactions.finish(
                message.transactional_id, pair, is_commit=message.committed, version=version
            )
        except (SequencerError, TimeoutError) as error:
            self._note(error)
            return _not_ended(kafka_code(error, ApiFamily.TRANSACTIONS))
        code = end_code(outcome.status, api_version, is_commit=message.committed)
        if code is not ErrorCode.none or outcome.change is None:
            return _not_ended(code)
        producer_id, epoch = outcome.change.pair
        return {"error_code": code, "producer_id": producer_id, "producer_epoch": epoch}

    # AddOffsetsToTxn -------------------------------------------------------------------------

    async def add_offsets(
        self, request: Request, message: AddOffsetsToTxnRequest
    ) -> AddOffsetsToTxnResponse:
        stop_with_client(request.connection)
        group_bytes = len(message.group_id.encode())
        if not request.access.may_id(AclOperation.WRITE, message.transactional_id):
            return {"error_code": _ID_DENIED}
        if not request.access.may_group(AclOperation.READ, message.group_id):
            return {"error_code": ErrorCode.group_authorization_failed}
        if not self.is_id(message.transactional_id):
            return {"error_code": ErrorCode.invalid_request}
        if not 0 < group_bytes <= self._rules.group_id_bytes_max:
            return {"error_code": ErrorCode.invalid_group_id}
        if self._is_leaving():
            return {"error_code": ErrorCode.not_coordinator}
        status = await self._status(
            self._transactions.add(
                message.transactional_id,
                ProducerPair(message.producer_id, message.producer_epoch),
                groups=[message.group_id],
            )
        )
        if isinstance(status, ErrorCode):
            return {"error_code": status}
        return {"error_code": add_code(status, request.header.api_version)}

    # AddPartitionsToTxn ----------------------------------------------------------------------

    async def add_partitions(
        self, request: Request, message: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        version = request.header.api_version
        stop_with_client(request.connection)
        if version < MANY_TRANSACTIONS_FROM:
            pair = ProducerPair(
                message.v3_and_below_producer_id, message.v3_and_below_producer_epoch
            )
            rows = await self._add(
                message.v3_and_below_transactional_id,
                pair,
                message.v3_and_below_topics,
                version,
                left=self._rules.partitions_max,
                access=request.access,
            )
            return {"results_by_topic_v3_and_below": rows}
        if not request.access.may_on_cluster(AclOperation.CLUSTER_ACTION):
            denied = ErrorCode.cluster_authorization_failed
            return {"error_code": denied, "results_by_transaction": ()}
        results: list[AddPartitionsToTxnResult] = []
        left = self._rules.partitions_max
        for each in message.transactions:
            rows = await self._add(
                each.transactional_id,
                ProducerPair(each.producer_id, each.producer_epoch),
                each.topics,
                version,
                left=left,
                verify_only=each.verify_only,
            )
            left -= max(1, _count(each.topics))
            results.append({"transactional_id": each.transactional_id, "topic_results": rows})
        return {"error_code": ErrorCode.none, "results_by_transaction": results}

    async def _add(
        self,
        transactional_id: str,
        pair: ProducerPair,
        topics: Sequence[AddPartitionsToTxnTopic],
        version: int,
        *,
        left: int,
        verify_only: bool = False,
        access: Access | None = None,
    ) -> list[AddPartitionsToTxnTopicResult]:
        """Add all partitions or none, as in Kafka. `left`: how many the request may still name.
        `access` None: the request has been allowed as a whole."""
        unknown, denied = set[tuple[str, int]](), set[str]()
        if access is not None:
            names = {topic.name for topic in topics}
            denied = {each for each in names if not access.may_topic(AclOperation.WRITE, each)}
        if access is not None and not access.may_id(AclOperation.WRITE, transactional_id):
            code, denied = _ID_DENIED, set()
        elif not self.is_id(transactional_id):
            code = ErrorCode.invalid_request
        elif self._is_leaving():
            code = ErrorCode.not_coordinator
        elif left <= 0 or _count(topics) > left:
            code = add_code(FactStatus.TOO_MANY, version)
        else:
            parts = dict[TransactionPart, None]()
            await self._turns.work(self._find(topics, parts, unknown))
            code = ErrorCode.operation_not_attempted
            if not unknown and not denied:
                code = await self._added(transactional_id, pair, list(parts), version, verify_only)
        rows: list[AddPartitionsToTxnTopicResult] = []
        await self._turns.work(_answer(topics, code, (unknown, denied), rows))
        return rows

    async def _added(
        self,
        transactional_id: str,
        pair: ProducerPair,
        parts: Sequence[TransactionPart],
        version: int,
        verify_only: bool,
    ) -> ErrorCode:
        status = await self._status(
            self._transactions.add(transactional_id, pair, parts=parts, verify_only=verify_only)
        )
        if isinstance(status, ErrorCode):
            return status
        is_of_broker = version >= MANY_TRANSACTIONS_FROM
        return verified_code(status, version) if is_of_broker else add_code(status, version)

    def _find(
        self,
        topics: Sequence[AddPartitionsToTxnTopic],
        parts: dict[TransactionPart, None],
        unknown: set[tuple[str, int]],
    ) -> Iterator[int]:
        """Fill `parts` and `unknown`, step by step."""
        for each in topics:
            topic = self._view.topic(each.name)
            for number in each.partitions:
                if topic is None or not 0 <= number < topic.partitions:
                    unknown.add((each.name, number))
                else:
                    parts[TransactionPart(topic.name, topic.topic_id, number)] = None
            yield len(each.partitions) + 1


def _count(topics: Sequence[AddPartitionsToTxnTopic]) -> int:
    return sum(len(topic.partitions) for topic in topics)


def _answer(
    topics: Sequence[AddPartitionsToTxnTopic],
    code: ErrorCode,
    refused: tuple[Collection[tuple[str, int]], Collection[str]],
    rows: list[AddPartitionsToTxnTopicResult],
) -> Iterator[int]:
    """Fill `rows`, step by step: `code` for all partitions, except for unknown partitions and
    topics without a right (`refused`)."""
    unknown, denied = refused

    def result(name: str, number: int) -> AddPartitionsToTxnPartitionResult:
        own = ErrorCode.unknown_topic_or_partition if (name, number) in unknown else code
        if name in denied:
            own = ErrorCode.topic_authorization_failed
        return {"partition_index": number, "partition_error_code": own}

    for topic in topics:
        numbers, results = topic.partitions, list[AddPartitionsToTxnPartitionResult]()
        for start in range(0, len(numbers), ROWS_A_STEP):
            some = numbers[start : start + ROWS_A_STEP]
            results += [result(topic.name, number) for number in some]
            yield len(some)
        rows.append({"name": topic.name, "results_by_partition": results})
        yield 1


def _no_producer(error: ErrorCode) -> InitProducerIdResponse:
    return {"error_code": error, "producer_id": NONE, "producer_epoch": NONE}


def _not_ended(error: ErrorCode) -> EndTxnResponse:
    return {"error_code": error, "producer_id": NONE, "producer_epoch": NONE}
