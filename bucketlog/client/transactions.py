"""Administration of transactions: list, describe, abort.

librdkafka does not support these requests. An abort ends a whole transaction, as a timeout does.
Source: KIP-664; Kafka's messages ListTransactions 0, DescribeTransactions 0, WriteTxnMarkers 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from bucketlog.client.admin import Admin
from bucketlog.client.broker_connection import Address
from bucketlog.client.broker_requests import BrokerRequests
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.security import Security
from bucketlog.log_format.errors import LogError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter

NOT_FOUND = 105
_IF_CLOSED = "set BUCKETLOG_TRANSACTIONS=true at all brokers; if it is set, try again"
_VERSIONS = {
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.WRITE_TXN_MARKERS: 1,
}


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """Transactional id and its state. Returned by `TransactionAdmin.list`.

    Attributes:
        transactional_id: Name of the transactional producer.
        producer_id: Id of the producer.
        state: Kafka's name of the state: Empty, Ongoing, PrepareCommit, PrepareAbort,
            CompleteCommit or CompleteAbort.

    Examples:
        >>> with log.transaction("billing-1") as transaction:
        ...     transaction.send(orders, Order(id="3", amount=1.5), key="ann")
        >>> [each.state for each in log.transactions.list() if each.transactional_id == "billing-1"]
        ['CompleteCommit']
    """

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDetails:
    """State of a transactional id. Returned by `TransactionAdmin.describe`.

    Attributes:
        transactional_id: Name of the transactional producer.
        producer_id: Id of the producer.
        producer_epoch: Number of the producer's epoch, which grows when a producer is fenced.
        state: Kafka's name of the state: Empty, Ongoing, PrepareCommit, PrepareAbort,
            CompleteCommit or CompleteAbort.
        timeout_ms: Time after which brokers abort an open transaction, in milliseconds.
        started_ms: Start of the open transaction, in milliseconds since 1970 UTC; None if none is
            open.
        partitions: Names of topics and numbers of partitions that the open transaction writes.

    Examples:
        >>> with log.transaction("billing-1") as transaction:
        ...     transaction.send(orders, Order(id="3", amount=1.5), key="ann")
        >>> log.transactions.describe("billing-1").timeout_ms
        60000
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[tuple[str, int], ...]


class TransactionAdmin:
    """Administration of transactions. Used for `log.transactions`.

    Examples:
        >>> with log.transaction("billing-1") as transaction:
        ...     transaction.send(orders, Order(id="3", amount=1.5), key="ann")
        >>> log.transactions.describe("billing-1").state
        'CompleteCommit'
    """

    def __init__(
        self, admin: Admin, config: Mapping[str, Any], security: Security | None = None
    ) -> None:
        self._requests = BrokerRequests(admin, config, security, if_closed=_IF_CLOSED)

    def list(self) -> list[TransactionInfo]:
        """List all transactional ids, in their order. Each broker is asked.

        Returns:
            Id, producer id and state of each.

        Raises:
            LogError: If a broker does not answer.
        """
        doing, rows = "listing transactions", dict[str, TransactionInfo]()
        for address in self._brokers(doing):
            body = FrameWriter(flexible=True)
            body.array_length(0)
            body.array_length(0)
            answer = self._ask(address, ApiKey.LIST_TRANSACTIONS, body, doing)
            answer.int32()
            _check(answer.int16(), doing)
            for _ in range(answer.array_length(1)):
                answer.string()
            for _ in range(answer.array_length(11)):
                row = TransactionInfo(answer.string(), answer.int64(), answer.string())
                answer.tags()
                rows[row.transactional_id] = row
        return sorted(rows.values(), key=lambda row: row.transactional_id)

    def describe(self, transactional_id: str) -> TransactionDetails:
        """Describe one transactional id.

        Args:
            transactional_id: Name of the transactional producer.

        Returns:
            The state, and the open transaction, if any.

        Raises:
            LogError: With the code TRANSACTIONAL_ID_NOT_FOUND if the id is unknown.
        """
        doing = f"describing transactional id {transactional_id!r}"
        body = FrameWriter(flexible=True)
        body.array_length(1)
        body.nullable_string(transactional_id)
        address = self._brokers(doing)[0]
        answer = self._ask(address, ApiKey.DESCRIBE_TRANSACTIONS, body, doing)
        answer.int32()
        answer.array_length(1)
        _check(answer.int16(), doing)
        found, state, timeout_ms = answer.string(), answer.string(), answer.int32()
        started_ms, producer_id, epoch = answer.int64(), answer.int64(), answer.int16()
        partitions: list[tuple[str, int]] = []
        for _ in range(answer.array_length(3)):
            name = answer.string()
            partitions += [(name, answer.int32()) for _ in range(answer.array_length(4))]
            answer.tags()
        began = started_ms if started_ms > 0 else None
        parts = tuple(sorted(partitions))
        return TransactionDetails(found, producer_id, epoch, state, timeout_ms, began, parts)

    def abort(self, transactional_id: str) -> TransactionDetails:
        """Abort the open transaction of an id. Its producer gets an error, aborts and continues.

        Args:
            transactional_id: Name of the transactional producer.

        Returns:
            The details of the transaction that was aborted.

        Raises:
            LogError: With the code INVALID_TXN_STATE if the id has no open transaction with
                records, or TRANSACTIONAL_ID_NOT_FOUND if the id is unknown.
        """
        doing = f"aborting the transaction of {transactional_id!r}"
        found = self.describe(transactional_id)
        if found.started_ms is None or not found.partitions:
            raise LogError(
                f"{doing}: it has no open transaction with records, its state is {found.state}",
                code="INVALID_TXN_STATE",
                kafka_code=48,
                retriable=False,
                remedy="run `bucketlog transaction list` to find transactions that are Ongoing",
            )
        name, partition = found.partitions[0]
        body = FrameWriter(flexible=True)
        body.array_length(1)
        body.int64(found.producer_id)
        body.int16(found.producer_epoch)
        body.data += b"\0"  # abort
        body.array_length(1)
        body.nullable_string(name)
        body.array_length(1)
        body.int32(partition)
        body.tags()
        body.int32(0)
        body.tags()
        address = self._brokers(doing)[0]
        answer = self._ask(address, ApiKey.WRITE_TXN_MARKERS, body, doing)
        answer.array_length(1)
        answer.int64()
        answer.array_length(1)
        answer.string()
        answer.array_length(1)
        answer.int32()
        _check(answer.int16(), doing)
        return found

    def _brokers(self, doing: str) -> Sequence[Address]:
        return tuple(self._requests.brokers(doing).values())

    def _ask(self, address: Address, key: ApiKey, body: FrameWriter, doing: str) -> FrameReader:
        return self._requests.ask(address, key, _VERSIONS[key], body, doing)


def _check(code: int, doing: str) -> None:
    if code == NOT_FOUND:
        raise LogError(
            f"{doing}: the id does not exist [TRANSACTIONAL_ID_NOT_FOUND]",
            code="TRANSACTIONAL_ID_NOT_FOUND",
            kafka_code=NOT_FOUND,
            retriable=False,
            remedy="run `bucketlog transaction list` to see all ids",
        )
    if code:
        raise log_error(KafkaError(code), doing)
