"""Produce: slice and validate batches, pass them to the commit path, answer when all are settled.

Invariant: a request's frame stays in the memory budget until the last of its batches is settled,
answered or not. `BatchValidation` validates the content of batches. Source for the checks and their
codes: Kafka's LogValidator, ReplicaManager, KafkaApis.handleProduceRequest.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.log_format import batch as record_batch
from bucketlog.log_format.batch import (
    BatchTooLargeError,
    InvalidBatchError,
    InvalidTimestampError,
    KeylessRecordsError,
    RefusedRecord,
)
from bucketlog.log_format.errors import InvalidDataError, UnknownTopicError
from bucketlog.log_format.model import TopicIdPartition, WallClock
from bucketlog.log_format.record_check import RecordRules
from bucketlog.log_format.wire import produce
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import (
    HEADER_ALONE,
    LOG_APPEND_TIME,
    MAX_MESSAGE_BYTES,
    RECORD_VALIDATION,
    TIMESTAMP_AFTER_MAX_MS,
    TIMESTAMP_BEFORE_MAX_MS,
    TIMESTAMP_TYPE,
)
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.batch_validation import (
    BatchValidation,
    UncheckedBatch,
    Verdict,
)
from bucketlog.stateless_broker.membership import Membership
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.dispatch import Request, response_header
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.produce.intake import BatchOutcome, PendingBatch

ACKS_ALL = -1
ACKS_ALLOWED = (ACKS_ALL, 0, 1)
ZSTD_SINCE_VERSION = 7
"""KIP-110."""


@dataclass(frozen=True, slots=True)
class ProduceLimits:
    batch_decompressed_bytes_max: int
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

    @property
    def connection(self) -> Connection:
        return self._request.connection

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
        validation: BatchValidation,
        commit: Callable[[PendingBatch], None],
        given_up: Callable[[], None],
        membership: Membership,
        limits: ProduceLimits,
        topic_defaults: TopicDefaults,
        now_ms: WallClock,
    ) -> None:
        self._view = view
        self._validation = validation
        self._commit = commit
        self._given_up = given_up
        self._membership = membership
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
        self._submit(call, wire)
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
        if self._membership.has_handed_over:
            return BatchOutcome(ErrorCode.not_leader_or_follower, -1, "this broker stops")
        return None

    def _submit(self, call: OpenProduce, wire: produce.ProduceRequest) -> None:
        """Validate the batches, then commit them. Batches that are not admitted are settled."""
        now_ms = self._now_ms()
        unchecked = []
        for row, part in enumerate(wire.partitions):
            try:
                unchecked.append(self._admit(part, call, row, now_ms))
            except InvalidDataError as error:
                call.settle(row, _refused(error))
        if unchecked:
            self._validation.submit(
                call.connection,
                unchecked,
                lambda verdicts: self._commit_checked(unchecked, verdicts),
            )

    def _commit_checked(
        self, batches: Sequence[UncheckedBatch], verdicts: Sequence[Verdict]
    ) -> None:
        for batch, verdict in zip(batches, verdicts, strict=True):
            pending = batch.pending
            if isinstance(verdict, InvalidDataError):
                pending.settle(_refused(verdict))
            elif verdict is None:
                pending.settle(
                    BatchOutcome(ErrorCode.unknown_server_error, -1, "the batch was not checked")
                )
            else:
                pending.header = verdict
                self._commit(pending)

    def _admit(
        self, part: produce.ProducePartitionData, call: OpenProduce, row: int, now_ms: int
    ) -> UncheckedBatch:
        """The batch with its topic's rules. Raises `InvalidDataError` if the topic does not exist,
        or the bytes are not exactly one batch within the topic's size limit."""
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
        partition = TopicIdPartition(topic.topic_id, part.partition)
        append_time_ms = None
        if self._topic_defaults.effective(topic.configs, TIMESTAMP_TYPE) == LOG_APPEND_TIME:
            append_time_ms = now_ms
            call.note_append_time(row, now_ms)
        return UncheckedBatch(
            PendingBatch(topic.name, partition, data, header, call, row),
            self._rules(topic, now_ms, append_time_ms is not None),
            call.version >= ZSTD_SINCE_VERSION,
            append_time_ms,
        )

    def _rules(self, topic: TopicState, now_ms: int, has_append_time: bool) -> RecordRules | None:
        """The topic's rules; None: check headers only. Records of compacted topics are always
        checked, because key compaction must read them."""
        defaults, configs = self._topic_defaults, topic.configs
        keys_required = defaults.has_policy(configs, "compact")
        if not keys_required and defaults.effective(configs, RECORD_VALIDATION) == HEADER_ALONE:
            return None
        max_bytes = self._limits.batch_decompressed_bytes_max
        if has_append_time:
            return RecordRules(keys_required, max_bytes=max_bytes)
        return RecordRules.of(
            keys_required=keys_required,
            now_ms=now_ms,
            before_max_ms=int(defaults.effective(configs, TIMESTAMP_BEFORE_MAX_MS)),
            after_max_ms=int(defaults.effective(configs, TIMESTAMP_AFTER_MAX_MS)),
            max_bytes=max_bytes,
        )


def _refused(error: InvalidDataError) -> BatchOutcome:
    """The outcome of a rejected batch, with the rejected records if they are known (KIP-467)."""
    records: tuple[RefusedRecord, ...] = ()
    if isinstance(error, KeylessRecordsError | InvalidTimestampError):
        records = error.refused
    return BatchOutcome(kafka_code(error, ApiFamily.PRODUCE), -1, error.message, records)
