"""Administration of transactions: list, describe, abort.

librdkafka does not support these requests, so this module sends them over its own connections,
without TLS or SASL. An abort ends a whole transaction, as a timeout does. Source: KIP-664; Kafka's
messages ListTransactions 0, DescribeTransactions 0, WriteTxnMarkers 1.
"""

import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from bucketlog.client.admin import Admin
from bucketlog.client.kafka_errors import ADVICE, log_error
from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter

TRANSPORT = -195
NOT_FOUND = 105
FRAME_BYTES_MAX = 64 << 20
ITEMS_MAX = 10_000_000
_LENGTH = struct.Struct(">i")
_VERSIONS = {
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.WRITE_TXN_MARKERS: 1,
}


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """`state` is Kafka's name: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or
    CompleteAbort."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDetails:
    """`started_ms`: the start of the open transaction, in ms since the Unix epoch, or None.
    `partitions`: its topics and partitions."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[tuple[str, int], ...]


class TransactionAdmin:
    """`log.transactions`. Raises `LogError`, TRANSACTIONAL_ID_NOT_FOUND if there is no such id."""

    def __init__(self, admin: Admin, config: Mapping[str, Any]) -> None:
        self._admin = admin
        self._protocol = str(config.get("security.protocol", "plaintext"))

    def list(self) -> list[TransactionInfo]:
        """List all transactional ids, sorted. Asks each broker for its ids."""
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
        """Describe one transactional id."""
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
        """Abort the open transaction of the id, and return its details.

        Its producer gets an error, aborts and continues. Raises `LogError` INVALID_TXN_STATE if the
        id has no open transaction with records.
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

    def _brokers(self, doing: str) -> Sequence[tuple[str, int]]:
        if self._protocol.lower() != "plaintext":
            raise ConfigurationError(
                f"{doing}: security.protocol {self._protocol} is not supported",
                remedy="use Apache Kafka's kafka-transactions.sh",
            )
        try:
            found = self._admin.client.list_topics(timeout=self._admin.timeout_s).brokers
        except KafkaException as error:
            raise log_error(error.args[0], doing) from error
        return [(str(each.host), each.port) for each in found.values()]

    def _ask(
        self, address: tuple[str, int], key: ApiKey, body: FrameWriter, doing: str
    ) -> FrameReader:
        head = FrameWriter(flexible=False)
        head.int16(key)
        head.int16(_VERSIONS[key])
        head.int32(1)
        head.nullable_string("bucketlog")
        frame = bytes(head.data) + b"\0" + bytes(body.data) + b"\0"  # each ends without tags
        try:
            with socket.create_connection(address, self._admin.timeout_s) as connection:
                connection.sendall(_LENGTH.pack(len(frame)) + frame)
                (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size))
                data = _received(connection, min(length, FRAME_BYTES_MAX))
        except EOFError:
            raise _no_answer(
                doing, address, "it closed the connection", "set BUCKETLOG_TRANSACTIONS=true there"
            ) from None
        except OSError as error:
            remedy = ADVICE["_TRANSPORT"].remedy
            raise _no_answer(doing, address, str(error.strerror or error), remedy) from error
        answer = FrameReader(memoryview(data), 4, flexible=True, items_max=ITEMS_MAX)
        answer.tags()
        return answer


def _no_answer(doing: str, address: Iterable[object], why: str, remedy: str) -> LogError:
    where = ":".join(map(str, address))
    return LogError(
        f"{doing}: broker {where} does not answer: {why}",
        code="TRANSPORT",
        kafka_code=TRANSPORT,
        retriable=True,
        remedy=remedy,
    )


def _received(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(1 << 16, length - len(data)))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


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
