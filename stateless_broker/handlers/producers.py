"""DescribeProducers: the producers of a partition, and their open transactions.

Invariants: open transactions come from the view, so they are those that hold back the last stable
offset. Other producers come from the sequencer, which returns a part of its rows per call; only one
request at a time asks it. The rows of a response are limited. Open transactions come first.
Source: KIP-664; Kafka's ReplicaManager.activeProducerState.
"""

import asyncio
from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import SequencerError, SequencerLostError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.transaction_listing import ListedProducer
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.handlers.topic_changes import why_missing
from bucketlog.stateless_broker.network.apis import Request, WrittenResponse
from bucketlog.stateless_broker.network.messages import write_row, write_rows
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS
from bucketlog.stateless_broker.network.turns import Slices, Turns

PRODUCERS_MAX = 10_000
"""Rows of a response: half a megabyte."""
ROW_UNITS = 3
NO_COORDINATOR = 0
"""Markers have the sequencer's epoch, but Kafka's tools need a number that is not negative."""

Producers = dict[int, ProducerState]


class ProducersHandler:
    def __init__(self, *, sequencer: Sequencer, view: View, end: EpochEnd, turns: Turns) -> None:
        self._sequencer = sequencer
        self._view = view
        self._end = end
        self._turns = turns
        self._scanning = asyncio.Lock()

    async def describe(
        self, request: Request, message: DescribeProducersRequest
    ) -> WrittenResponse:
        version, slices = request.header.api_version, Slices(self._turns)
        topics = {each.name: each for each in message.topics}  # the last one of a name counts
        found: dict[TopicIdPartition, Producers] = {}
        access = request.access
        readable = {name for name in topics if access.may_topic(AclOperation.READ, name)}
        for topic in topics.values():
            if topic.name not in readable:
                continue
            for number in topic.partition_indexes:
                partition = self._partition(topic.name, number)
                if partition is not None:
                    found[partition] = {}
                await slices.spend(1)
        code = await self._collect(found, slices)
        rows: list[bytes] = []
        errors: list[ErrorCode] = []
        for topic in topics.values():
            missing = ErrorCode.topic_authorization_failed
            if topic.name in readable:
                missing = why_missing(topic.name)
            answers = self._answers(topic, found, code, missing)
            errors += [each["error_code"] for each in answers if each["error_code"].value]
            row = {"name": topic.name, "partitions": answers}
            rows.append(write_row(DESCRIBE_PRODUCERS, version, "topics", row))
            await slices.spend(ROW_UNITS * sum(len(each["active_producers"]) for each in answers))
        body = write_rows(DESCRIBE_PRODUCERS, version, "topics", rows)
        return WrittenResponse(body, errors[:COUNTED_ROWS])

    def _partition(self, name: str, number: int) -> TopicIdPartition | None:
        topic = self._view.topic(name)
        if topic is None or not 0 <= number < topic.partitions:
            return None
        return TopicIdPartition(topic.topic_id, number)

    async def _collect(self, found: dict[TopicIdPartition, Producers], slices: Slices) -> ErrorCode:
        left = PRODUCERS_MAX
        for partition, producers in found.items():
            log = self._view.log(partition)
            opened = () if log is None else list(log.transactions.open.items())[:left]
            for producer_id, transaction in opened:
                producers[producer_id] = {
                    "producer_id": producer_id,
                    "producer_epoch": transaction.producer_epoch,
                    "coordinator_epoch": NO_COORDINATOR,
                    "current_txn_start_offset": transaction.first_offset,
                }
            left -= len(producers)
            await slices.spend(1 + len(producers))
        if not found:
            return ErrorCode.none
        try:
            async with self._scanning:
                async for some in self._sequencer.list_producers(self._end.epoch, found):
                    for row in some:
                        left -= _add(found[row.partition], row, may_grow=left > 0)
                    await slices.spend(1 + ROW_UNITS * len(some))
        except (SequencerError, TimeoutError) as error:
            if isinstance(error, SequencerLostError):
                self._end.end(str(error))
            return kafka_code(error, ApiFamily.TRANSACTIONS)
        return ErrorCode.none

    def _answers(
        self,
        topic: TopicRequest,
        found: dict[TopicIdPartition, Producers],
        code: ErrorCode,
        missing: ErrorCode,
    ) -> Sequence[PartitionResponse]:
        answers: list[PartitionResponse] = []
        for number in dict.fromkeys(topic.partition_indexes):  # each once
            partition = self._partition(topic.name, number)
            producers = None if partition is None else found.get(partition)
            answers.append(
                {
                    "partition_index": number,
                    "error_code": missing if producers is None else code,
                    "active_producers": list(producers.values()) if producers else (),
                }
            )
        return answers


def _add(producers: Producers, row: ListedProducer, *, may_grow: bool) -> bool:
    """Note a producer that the sequencer returned. Returns whether it is new."""
    known = producers.get(row.producer_id)
    if known is None and not may_grow:
        return False
    before: ProducerState = known or {
        "producer_id": row.producer_id,
        "producer_epoch": row.epoch,
        "coordinator_epoch": NO_COORDINATOR,
    }
    producers[row.producer_id] = {
        **before,
        "last_sequence": row.last_sequence,
        "last_timestamp": row.time_ms,
    }
    return known is None
