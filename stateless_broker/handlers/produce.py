"""Produce: slice the batches, check them, hand them to the commit path; answer when all is settled.

Invariant: a request's frame stays in the memory budget until the last of its batches is settled,
answered or not. Source for the checks and their codes: Kafka's LogValidator, ReplicaManager,
KafkaApis.handleProduceRequest.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from kio.schema.errors import ErrorCode

from bucketlog.log_format import batch as record_batch
from bucketlog.log_format.batch import (
    BatchHeader,
    BatchTooLargeError,
    Codec,
    CorruptBatchError,
    InvalidBatchError,
    InvalidTimestampError,
    KeylessRecordsError,
    UnsupportedCompressionError,
)
from bucketlog.log_format.errors import InvalidDataError, UnknownTopicError
from bucketlog.log_format.model import TopicIdPartition, WallClock
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire import produce
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import (
    LOG_APPEND_TIME,
    MAX_MESSAGE_BYTES,
    TIMESTAMP_TYPE,
)
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.network.dispatch import Request, response_header
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.produce.produce_buffer import BatchOutcome, PendingBatch

ACKS_ALL = -1
ACKS_ALLOWED = (ACKS_ALL, 0, 1)
ZSTD_SINCE_VERSION = 7
"""KIP-110."""
REFUSED_RECORDS_MAX = 100
"""So many of a batch's are named (KIP-467)."""


@dataclass(frozen=True, slots=True)
class ProduceLimits:
    batch_records_max: int
    timeout_ms_max: int
    request_items_max: int


class OpenProduce:
    """A produce request whose batches are not all settled yet."""

    __slots__ = (
        "_answer",
        "_frame",
        "_outcomes",
        "_request",
        "_timer",
        "_times",
        "_wanted",
        "_wire",
    )

    def __init__(
        self, request: Request, wire: produce.ProduceRequest, frame: Frame, answer: ResponseSlot
    ) -> None:
        self._request = request
        self._wire = wire
        self._frame = frame
        self._answer: ResponseSlot | None = answer
        self._outcomes: list[BatchOutcome | None] = [None] * len(wire.partitions)
        self._times = [-1] * len(wire.partitions)
        self._wanted = len(wire.partitions)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def answered(self) -> bool:
        return self._answer is None

    @property
    def version(self) -> int:
        return self._request.header.api_version

    def start_timer(self, timeout_ms: int, given_up: Callable[[], None]) -> None:
        """`given_up` is called once the request was answered because its time is over."""
        if self._answer is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(timeout_ms / 1000, self._time_out, given_up)

    def _time_out(self, given_up: Callable[[], None]) -> None:
        self._respond()
        given_up()

    def note_append_time(self, row: int, now_ms: int) -> None:
        self._times[row] = now_ms

    def settle(self, row: int, outcome: BatchOutcome) -> None:
        if self._outcomes[row] is not None:
            return
        self._outcomes[row] = outcome
        self._wanted -= 1
        if self._wanted == 0:
            self._frame.release()
            self._respond()

    def _respond(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        timed_out = BatchOutcome(ErrorCode.request_timed_out, -1)
        outcomes = [outcome or timed_out for outcome in self._outcomes]
        answer.errors = [each.error for each in outcomes if each.error is not ErrorCode.none]
        if self._wire.acks == 0:
            if answer.errors:
                answer.close("an error with acks=0, which has no answer to say so")
            else:
                answer.send([])
            return
        header = self._request.header
        results = [
            produce.PartitionResult(
                part.topic,
                part.partition,
                outcome.error,
                outcome.base_offset,
                append_time if outcome.error is ErrorCode.none else -1,
                0 if outcome.error is ErrorCode.none else -1,
                outcome.message,
                outcome.refused_records,
            )
            for part, outcome, append_time in zip(
                self._wire.partitions, outcomes, self._times, strict=True
            )
        ]
        body = produce.write_response(header.api_version, results)
        answer.send([response_header(header), body])


class ProduceHandler:
    def __init__(
        self,
        *,
        view: View,
        commit: Callable[[PendingBatch], None],
        given_up: Callable[[], None],
        has_handed_over: Callable[[], bool],
        limits: ProduceLimits,
        topic_defaults: TopicDefaults,
        now_ms: WallClock,
    ) -> None:
        self._view = view
        self._commit = commit
        self._given_up = given_up
        self._has_handed_over = has_handed_over
        self._limits = limits
        self._topic_defaults = topic_defaults
        self._now_ms = now_ms

    def __call__(
        self, request: Request, frame: Frame, view: memoryview, at: int, answer: ResponseSlot
    ) -> None:
        try:
            wire = produce.read_request(
                view,
                at,
                request.header.api_version,
                items_max=self._limits.request_items_max,
            )
        except InvalidDataError:
            frame.release()
            raise
        call = OpenProduce(request, wire, frame, answer)
        if not wire.partitions:
            frame.release()
            call.start_timer(0, self._given_up)
            return
        refusal = self._refusal(wire)
        if refusal is not None:
            for row in range(len(wire.partitions)):
                call.settle(row, refusal)
            return
        if wire.acks == 0:
            # The client sees no answer, but its later requests' answers must not wait for this one.
            answer.send([])
        for row, part in enumerate(wire.partitions):
            try:
                pending = self._check(part, call, row)
            except InvalidDataError as error:
                refused = error.at if isinstance(error, KeylessRecordsError) else ()
                call.settle(
                    row,
                    BatchOutcome(kafka_code(error, ApiFamily.PRODUCE), -1, error.message, refused),
                )
            else:
                self._commit(pending)
        timeout_ms = (
            self._limits.timeout_ms_max
        )  # the client's own bounds acks=all alone, as in Kafka
        if wire.acks == ACKS_ALL:
            timeout_ms = min(max(wire.timeout_ms, 0), timeout_ms)
        call.start_timer(timeout_ms, self._given_up)

    def _refusal(self, wire: produce.ProduceRequest) -> BatchOutcome | None:
        if wire.acks not in ACKS_ALLOWED:
            return BatchOutcome(ErrorCode.invalid_required_acks, -1, f"acks={wire.acks}")
        if wire.transactional_id is not None:
            return BatchOutcome(
                ErrorCode.transactional_id_authorization_failed,
                -1,
                "this version of bucketlog has no transactions yet",
            )
        if self._has_handed_over():
            return BatchOutcome(ErrorCode.not_leader_or_follower, -1, "this broker stops")
        return None

    def _check(
        self, part: produce.ProducePartitionData, call: OpenProduce, row: int
    ) -> PendingBatch:
        topic = self._view.topic(part.topic)
        if topic is None or not 0 <= part.partition < topic.partitions:
            raise UnknownTopicError(f"no partition {part.partition} of topic {part.topic!r}")
        data = part.records
        if data is None or not len(data):
            raise InvalidBatchError("no records")
        header = record_batch.read_header(data)
        if header.size_bytes != len(data):
            raise InvalidBatchError(
                f"{len(data)} bytes of records are not exactly one batch of {header.size_bytes}"
            )
        limit = int(self._topic_defaults.effective(topic.configs, MAX_MESSAGE_BYTES))
        if len(data) > limit:
            raise BatchTooLargeError(
                f"a batch of {len(data)} bytes; {MAX_MESSAGE_BYTES} of {part.topic!r} is {limit}"
            )
        if not record_batch.crc_holds(data, header):
            raise CorruptBatchError("the batch's CRC32C does not hold")
        record_batch.check_produced(header, max_records=self._limits.batch_records_max)
        if header.base_offset:
            raise InvalidBatchError(f"base offset {header.base_offset}: the broker gives offsets")
        if header.codec == Codec.ZSTD and call.version < ZSTD_SINCE_VERSION:
            raise UnsupportedCompressionError(f"zstd in a request of version {call.version}")
        if header.is_transactional:
            raise InvalidBatchError("a transactional batch outside a transaction")
        if self._topic_defaults.has_policy(topic.configs, "compact"):
            _check_keys(part, data, header)
        header = self._timestamps(topic, data, header, call, row)
        partition = TopicIdPartition(topic.topic_id, part.partition)
        return PendingBatch(topic.name, partition, data, header, call, row)

    def _timestamps(
        self, topic: TopicState, data: memoryview, header: BatchHeader, call: OpenProduce, row: int
    ) -> BatchHeader:
        if self._topic_defaults.effective(topic.configs, TIMESTAMP_TYPE) == LOG_APPEND_TIME:
            now_ms = self._now_ms()
            call.note_append_time(row, now_ms)
            return record_batch.set_log_append_time(data, header, now_ms)
        if header.attributes & record_batch.LOG_APPEND_TIME:
            raise InvalidTimestampError("producers may not set the timestamp type LogAppendTime")
        return header


def _check_keys(part: produce.ProducePartitionData, data: memoryview, header: BatchHeader) -> None:
    """Of compacted topics batches are opened, a few microseconds a record: what key compaction
    cannot decode it could never clean, and a record without a key it would drop. Raises
    `KeylessRecordsError` (Kafka's LogValidator: INVALID_RECORD)."""
    keyless = (
        index for index, record in enumerate(decode_records(data, header)) if record.key is None
    )
    if at := tuple(islice(keyless, REFUSED_RECORDS_MAX)):
        raise KeylessRecordsError(
            "Compacted topic cannot accept message without key in topic partition "
            f"{part.topic}-{part.partition}.",
            at,
        )
