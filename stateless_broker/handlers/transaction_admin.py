"""ListTransactions, DescribeTransactions, and WriteTxnMarkers as the administrator's abort.

Invariants: responses come from the sequencer's records. Each transactional id is listed by the
broker that FindCoordinator returns for it. Any broker can describe and abort any id. An abort never
marks a single partition: it ends the whole transaction, as a timeout does. The producer and epoch
of the request must have the transaction open. Source: KIP-664, KIP-994; Kafka's KafkaApis and
TransactionCoordinator.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import SequencerError, SequencerLostError
from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire import list_transactions
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
    TopicData,
    TransactionState,
)
from bucketlog.log_format.wire.messages.list_transactions import ListTransactionsRequest
from bucketlog.log_format.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.transaction_listing import (
    DESCRIBED_A_CALL,
    ListedTransaction,
    TransactionDescription,
)
from bucketlog.metadata.sequencer.transaction_requests import OverdueTransaction, ProducerPair
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.bounded_gather import each_in_turn
from bucketlog.stateless_broker.network.messages import write_row, write_rows
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Slices, Turns
from bucketlog.stateless_broker.produce.transaction_log import TransactionLog

STATES = frozenset(
    {
        *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
        *("Dead", "PrepareEpochFence"),  # states of Kafka that do not occur here
    }
)
PREPARING = frozenset({"PrepareCommit", "PrepareAbort"})
UNITS_A_ROW = 3
NOT_BEGUN = datetime.fromtimestamp(-0.001, UTC)
UNKNOWN_START = datetime.fromtimestamp(0, UTC)
ABORTED_AT_ONCE = 20
_DENIED = ErrorCode.transactional_id_authorization_failed
NO_TIMEOUT = timedelta(milliseconds=2**31 - 1)
"""The timeout that Kafka shows for a transaction with two-phase commit."""


class TransactionAdminHandler:
    """`is_mine`: whether this broker lists the transactional id. `now_ms`: the sequencer's."""

    def __init__(
        self,
        *,
        transactions: TransactionLog,
        sequencer: Sequencer,
        view: View,
        end: EpochEnd,
        is_mine: Callable[[str], bool],
        now_ms: WallClock,
        turns: Turns,
    ) -> None:
        self._transactions = transactions
        self._sequencer = sequencer
        self._view = view
        self._end = end
        self._is_mine = is_mine
        self._now_ms = now_ms
        self._turns = turns

    def _code(self, error: Exception) -> ErrorCode:
        if isinstance(error, SequencerLostError):
            self._end.end(str(error))
        return kafka_code(error, ApiFamily.TRANSACTIONS)

    # ListTransactions ------------------------------------------------------------------------

    async def list(self, request: Request, message: ListTransactionsRequest) -> WrittenResponse:
        states = set(message.state_filters)
        unknown = sorted(states - STATES)
        slices, rows = Slices(self._turns), dict[str, bytes]()
        longer_than_ms, quiet = message.duration_filter, request.access.quiet
        try:
            if not states or states & STATES:
                async for some in self._sequencer.list_transactions(
                    self._end.epoch, set(message.producer_id_filters)
                ):
                    for each in some:
                        await slices.spend(UNITS_A_ROW)
                        is_wanted = not states or each.state in states
                        if is_wanted and longer_than_ms >= 0:
                            is_wanted = 0 < each.since_ms < self._now_ms() - longer_than_ms
                        if is_wanted and self._is_listed(each.transactional_id, quiet):
                            rows[each.transactional_id] = list_transactions.write_row(
                                each.transactional_id, each.pair.producer_id, each.state
                            )
        except (SequencerError, TimeoutError) as error:
            code = self._code(error)
            return WrittenResponse(list_transactions.write_response(code.value, (), ()), [code])
        body = list_transactions.write_response(ErrorCode.none.value, unknown, list(rows.values()))
        return WrittenResponse(body)

    def _is_listed(self, transactional_id: str, access: Access) -> bool:
        return self._is_mine(transactional_id) and access.may_id(
            AclOperation.DESCRIBE, transactional_id
        )

    # DescribeTransactions --------------------------------------------------------------------

    async def describe(
        self, request: Request, message: DescribeTransactionsRequest
    ) -> WrittenResponse:
        """Encode each transaction immediately, because it may have a thousand partitions."""
        ids = list(dict.fromkeys(message.transactional_ids))  # once: descriptions can be large
        version, slices = request.header.api_version, Slices(self._turns)
        rows: list[bytes] = []
        errors: list[ErrorCode] = []
        for start in range(0, len(ids), DESCRIBED_A_CALL):
            some = ids[start : start + DESCRIBED_A_CALL]
            missing, found = ErrorCode.transactional_id_not_found, _NOTHING
            access = request.access
            allowed = [each for each in some if access.may_id(AclOperation.DESCRIBE, each)]
            try:
                if allowed:
                    found = await self._sequencer.describe_transactions(self._end.epoch, allowed)
            except (SequencerError, TimeoutError) as error:
                missing = self._code(error)
            shown = set(allowed)
            for each in some:
                described = found.get(each)
                code = missing if each in shown else _DENIED
                if each in shown and not each:
                    code = ErrorCode.invalid_request
                state = _missing(each, code)
                if described is not None:
                    state = _described(described, access)
                elif len(errors) < COUNTED_ROWS:
                    errors.append(code)
                rows.append(write_row(DESCRIBE_TRANSACTIONS, version, "transaction_states", state))
                await slices.spend(1 if described is None else UNITS_A_ROW + len(described.parts))
        body = write_rows(DESCRIBE_TRANSACTIONS, version, "transaction_states", rows)
        return WrittenResponse(body, errors)

    # WriteTxnMarkers -------------------------------------------------------------------------

    async def write_markers(
        self, request: Request, message: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse:
        owners: dict[int, ListedTransaction] = {}
        wanted = {each.producer_id for each in message.markers if not each.transaction_result}
        try:
            if wanted:
                async for some in self._sequencer.list_transactions(self._end.epoch, wanted):
                    owners.update((each.pair.producer_id, each) for each in some)
        except (SequencerError, TimeoutError) as error:
            code = self._code(error)
            return {"markers": [_marked(each, lambda _, __: code) for each in message.markers]}
        codes = await each_in_turn(
            lambda marker: self._abort(marker, owners.get(marker.producer_id)),
            message.markers,
            at_once=ABORTED_AT_ONCE,
        )
        return {
            "markers": [
                _marked(marker, self._code_of_partition(code))
                for marker, code in zip(message.markers, codes, strict=True)
            ]
        }

    def _code_of_partition(self, code: ErrorCode) -> Callable[[str, int], ErrorCode]:
        def of(name: str, partition: int) -> ErrorCode:
            is_known = self._is_known(name, partition)
            return code if is_known else ErrorCode.unknown_topic_or_partition

        return of

    def _is_known(self, name: str, partition: int) -> bool:
        topic = self._view.topic(name)
        return topic is not None and 0 <= partition < topic.partitions

    async def _abort(self, marker: WritableTxnMarker, owner: ListedTransaction | None) -> ErrorCode:
        named = ((topic.name, each) for topic in marker.topics for each in topic.partition_indexes)
        if marker.transaction_result:
            return ErrorCode.invalid_request
        if not any(self._is_known(*each) for each in named):
            return ErrorCode.unknown_topic_or_partition
        if owner is None:
            return ErrorCode.invalid_producer_id_mapping
        pair = ProducerPair(marker.producer_id, marker.producer_epoch)
        try:
            if owner.pair == pair and (owner.since_ms or owner.state in PREPARING):
                status = await self._transactions.abort_overdue(
                    OverdueTransaction(
                        owner.transactional_id, owner.owner, owner.version, owner.serial
                    )
                )
                return _ABORT_CODES.get(status, ErrorCode.invalid_txn_state)
            return await self._without_transaction(owner.transactional_id, pair)
        except (SequencerError, TimeoutError) as error:
            return self._code(error)

    async def _without_transaction(self, transactional_id: str, pair: ProducerPair) -> ErrorCode:
        """The result for a pair without an open transaction. The request may be a repetition."""
        found = await self._sequencer.describe_transactions(self._end.epoch, [transactional_id])
        described = found.get(transactional_id)
        if described is not None and described.last == pair:
            is_aborted = described.outcome == "aborted"
            return ErrorCode.none if is_aborted else ErrorCode.invalid_txn_state
        is_owner = described is not None and described.listed.pair == pair
        return ErrorCode.invalid_txn_state if is_owner else ErrorCode.invalid_producer_epoch


_NOTHING: dict[str, TransactionDescription] = {}
_ABORT_CODES = {
    FactStatus.OK: ErrorCode.none,
    FactStatus.DONE: ErrorCode.none,
    FactStatus.WAIT: ErrorCode.concurrent_transactions,
    FactStatus.FENCED: ErrorCode.invalid_producer_epoch,
    FactStatus.UNKNOWN_TRANSACTIONAL_ID: ErrorCode.invalid_producer_id_mapping,
}


def _missing(transactional_id: str, error: ErrorCode) -> TransactionState:
    return {
        "error_code": error,
        "transactional_id": transactional_id,
        "transaction_state": "",
        "transaction_start_time": UNKNOWN_START,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": (),
    }


def _described(found: TransactionDescription, access: Access) -> TransactionState:
    """Return the description, without the topics that the requester may not describe."""
    listed, quiet = found.listed, access.quiet
    by_topic: dict[str, list[int]] = {}
    for name, partition in found.parts:
        by_topic.setdefault(name, []).append(partition)
    topics: list[TopicData] = [
        {"topic": name, "partitions": sorted(partitions)}
        for name, partitions in by_topic.items()
        if quiet.may_topic(AclOperation.DESCRIBE, name)
    ]
    since = datetime.fromtimestamp(listed.since_ms / 1000, UTC)
    return {
        "error_code": ErrorCode.none,
        "transactional_id": listed.transactional_id,
        "transaction_state": listed.state,
        "transaction_timeout": NO_TIMEOUT
        if found.two_phase
        else timedelta(milliseconds=found.timeout_ms),
        "transaction_start_time": since if listed.since_ms else NOT_BEGUN,
        "producer_id": listed.pair.producer_id,
        "producer_epoch": listed.pair.epoch,
        "topics": topics,
    }


def deny_markers(message: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    denied = ErrorCode.cluster_authorization_failed
    return {"markers": [_marked(each, lambda _, __: denied) for each in message.markers]}


def _marked(
    marker: WritableTxnMarker, code: Callable[[str, int], ErrorCode]
) -> WritableTxnMarkerResult:
    return {
        "producer_id": marker.producer_id,
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": each, "error_code": code(topic.name, each)}
                    for each in topic.partition_indexes
                ],
            }
            for topic in marker.topics
        ],
    }
