"""TxnOffsetCommit: offsets of a group that a transaction commits.

Source: KIP-98, KIP-447, KIP-890; Kafka's KafkaApis.handleTxnOffsetCommitRequest.
"""

from collections.abc import Iterator

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import CallerIdentity
from bucketlog.consumers.transactional_commits import CommittingTransaction, TransactionalCommits
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.facts import OffsetRow
from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.transaction_requests import ProducerPair
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.handlers.offsets import UNITS_A_ROW, checked_row
from bucketlog.stateless_broker.handlers.transaction_codes import offsets_code
from bucketlog.stateless_broker.handlers.transactions import (
    VERSION_2,
    VERSION_2_FROM,
    TransactionsHandler,
    stop_with_client,
)
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.transaction_log import VERSION_1


class TransactionOffsetsHandler:
    def __init__(
        self,
        *,
        commits: TransactionalCommits,
        transactions: TransactionsHandler,
        view: View,
        metadata_bytes_max: int,
        turns: Turns,
    ) -> None:
        self._commits = commits
        self._transactions = transactions
        self._view = view
        self._metadata_bytes_max = metadata_bytes_max
        self._turns = turns

    async def commit(
        self, request: Request, message: TxnOffsetCommitRequest
    ) -> TxnOffsetCommitResponse:
        version = request.header.api_version
        if version < VERSION_2_FROM:
            stop_with_client(request.connection)
        rows: dict[TopicIdPartition, OffsetRow] = {}
        errors: list[list[ErrorCode]] = []
        await self._turns.work(self._check(message, rows, errors, request.access))
        outcome = ErrorCode.none
        if not self._transactions.is_id(message.transactional_id):
            outcome = ErrorCode.invalid_request
        elif rows:
            outcome = await self._commit(message, list(rows.values()), version)
        topics: list[TxnOffsetCommitResponseTopic] = []

        def steps() -> Iterator[int]:
            for entry, found in zip(message.topics, errors, strict=True):
                topics.append(
                    {
                        "name": entry.name,
                        "partitions": [
                            {
                                "partition_index": each.partition_index,
                                "error_code": outcome if error is ErrorCode.none else error,
                            }
                            for each, error in zip(entry.partitions, found, strict=True)
                        ],
                    }
                )
                yield len(found) + 1

        await self._turns.work(steps())
        return {"topics": topics}

    def _check(
        self,
        message: TxnOffsetCommitRequest,
        rows: dict[TopicIdPartition, OffsetRow],
        errors: list[list[ErrorCode]],
        access: Access,
    ) -> Iterator[int]:
        """Fill `rows` and `errors`, step by step."""
        refused = _denied(message, access)
        for entry in message.topics:
            topic, found = self._view.topic(entry.name), list[ErrorCode]()
            errors.append(found)
            denied = refused
            if not refused and not access.may_topic(AclOperation.READ, entry.name):
                denied = ErrorCode.topic_authorization_failed
            if denied:
                found += [denied] * len(entry.partitions)
                yield len(entry.partitions) + 1
                continue
            for each in entry.partitions:
                row = checked_row(
                    topic,
                    each,
                    missing=ErrorCode.unknown_topic_or_partition,
                    metadata_bytes_max=self._metadata_bytes_max,
                )
                if not isinstance(row, ErrorCode) and topic is not None:
                    rows[TopicIdPartition(topic.topic_id, each.partition_index)] = row
                found.append(row if isinstance(row, ErrorCode) else ErrorCode.none)
                yield UNITS_A_ROW

    async def _commit(
        self, message: TxnOffsetCommitRequest, rows: list[OffsetRow], version: int
    ) -> ErrorCode:
        identity = CallerIdentity(
            message.member_id, message.generation_id, message.group_instance_id
        )
        pair = ProducerPair(message.producer_id, message.producer_epoch)
        if not pair.is_possible:
            return offsets_code(FactStatus.FENCED, version)
        transaction = CommittingTransaction(
            message.transactional_id,
            pair,
            VERSION_2 if version >= VERSION_2_FROM else VERSION_1,
        )
        found = await self._commits.commit(message.group_id, identity, rows, transaction)
        return offsets_code(found, version)


def _denied(message: TxnOffsetCommitRequest, access: Access) -> ErrorCode:
    if not access.may_id(AclOperation.WRITE, message.transactional_id):
        return ErrorCode.transactional_id_authorization_failed
    if not access.may_group(AclOperation.READ, message.group_id):
        return ErrorCode.group_authorization_failed
    return ErrorCode.none
