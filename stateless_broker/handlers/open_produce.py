"""Unanswered Produce requests: their outcomes and responses."""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.log_format import batch as record_batch
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import produce
from bucketlog.log_format.wire.frames import FrameWriter
from bucketlog.stateless_broker.network.apis import RequestHeader
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.headers import response_header
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.intake import TIMED_OUT, BatchOutcome, TimedCall
from bucketlog.stateless_broker.produce.refused_batches import ProducedTo, RefusedBatches

WITH_LOG_START = (
    ErrorCode.none,
    ErrorCode.unknown_producer_id,
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.invalid_producer_epoch,
)
"""Results with the log start, as in Kafka. Java's producer recovers from UNKNOWN_PRODUCER_ID only
with the log start; without it, the producer repeats the batch until its delivery timeout."""
RETRIED = frozenset(
    {
        ErrorCode.not_enough_replicas,
        ErrorCode.not_leader_or_follower,
        ErrorCode.request_timed_out,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
    }
)
"""Errors after which clients send the batch again with the same sequence."""
DROPPED_AT_ONCE = 50
"""Number of partitions of a large request that one step frees."""
TOPIC_CHARS_KEPT = 249
"""The longest topic name in Kafka. Refusals for longer names are not remembered."""


@dataclass(frozen=True, slots=True)
class SlicedWork:
    """Starts work in slices. Between slices, the broker handles requests of other connections."""

    turns: Turns
    spawn: Callable[[Coroutine[None, None, None], ResponseSlot], object]
    """Called as `spawn(work, answer)`. A failure closes the connection of `answer`."""


class OpenProduce:
    """A Produce request with unsettled batches. `sliced` is set for a large request."""

    __slots__ = (
        "_answer",
        "_due",
        "_frame",
        "_header",
        "_log_start",
        "_outcomes",
        "_refused",
        "_sliced",
        "_times",
        "_wanted",
        "_wire",
    )

    def __init__(
        self,
        header: RequestHeader,
        wire: produce.ProduceRequest,
        frame: Frame,
        answer: ResponseSlot,
        log_start: Callable[[str, int], int],
        refused: RefusedBatches,
        sliced: SlicedWork | None = None,
    ) -> None:
        """`log_start` returns the log start of a partition, -1 if the partition is unknown.
        `refused` remembers the refused batches that clients send again."""
        self._log_start = log_start
        self._refused = refused
        self._sliced = sliced
        self._header = header
        self._wire = wire
        self._frame = frame
        self._answer: ResponseSlot | None = answer
        self._outcomes: list[BatchOutcome | None] = [None] * len(wire.partitions)
        self._times = [-1] * len(wire.partitions)
        self._wanted = len(wire.partitions)
        self._due: set[TimedCall] | None = None

    @property
    def answered(self) -> bool:
        return self._answer is None

    @property
    def version(self) -> int:
        return self._header.api_version

    def wait_among(self, due: set[TimedCall]) -> None:
        """Stay in `due` until the request is answered."""
        if self._answer is not None:
            self._due = due
            due.add(self)

    def give_up(self, outcome: BatchOutcome) -> None:
        """Answer now, with `outcome` for the unsettled batches. These may still be written, as
        after any timeout."""
        for row, settled in enumerate(self._outcomes):
            if settled is None:
                self._note_refused(row)
        self._respond(outcome)

    def note_append_time(self, row: int, now_ms: int) -> None:
        self._times[row] = now_ms

    def settle(self, row: int, outcome: BatchOutcome) -> None:
        if self._outcomes[row] is not None:
            return
        self._outcomes[row] = outcome
        self._wanted -= 1
        if outcome.error in RETRIED:
            self._note_refused(row)
        if self._wanted == 0:
            self._frame.release()
            self._respond(TIMED_OUT)

    def _note_refused(self, row: int) -> None:
        part = self._wire.partitions[row]
        if part.records is None or len(part.topic) > TOPIC_CHARS_KEPT:
            return
        try:
            header = record_batch.read_header(part.records)
        except InvalidDataError:
            return
        if header.producer_id >= 0:
            where = ProducedTo(
                part.topic, part.partition, header.producer_id, header.producer_epoch
            )
            self._refused.note(where, header.base_sequence)

    def _respond(self, unsettled: BatchOutcome) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if self._due is not None:
            self._due.discard(self)
        if self._sliced is not None:
            self._sliced.spawn(self._respond_in_slices(self._sliced, answer, unsettled), answer)
            return
        outcomes = [outcome or unsettled for outcome in self._outcomes]
        answer.errors = [each.error for each in outcomes if each.error is not ErrorCode.none]
        if self._wire.acks == 0:
            _respond_to_acks_0(answer)
            return
        header, throttle_ms = self._header, answer.throttle_ms
        version: int = header.api_version
        body: Buffer
        if len(outcomes) == 1:
            result = self._result(0, outcomes[0])
            body = produce.write_single_response(version, result, throttle_ms=throttle_ms)
        else:
            results = self._results(outcomes)
            body = produce.write_response(version, results, throttle_ms=throttle_ms)
        answer.send([response_header(header), body])

    def _results(self, outcomes: Iterable[BatchOutcome]) -> Iterator[produce.ProduceResult]:
        return (self._result(row, outcome) for row, outcome in enumerate(outcomes))

    def _result(self, row: int, outcome: BatchOutcome) -> produce.ProduceResult:
        part = self._wire.partitions[row]
        return produce.ProduceResult(
            part.topic,
            part.partition,
            outcome.error,
            outcome.base_offset,
            self._times[row] if outcome.error is ErrorCode.none else -1,
            self._log_start(part.topic, part.partition) if outcome.error in WITH_LOG_START else -1,
            outcome.message,
            outcome.refused_records,
            part.topic_id,
        )

    async def _respond_in_slices(
        self, sliced: SlicedWork, answer: ResponseSlot, unsettled: BatchOutcome
    ) -> None:
        turns, header = sliced.turns, self._header
        errors = list[ErrorCode]()
        outcomes = _with_errors(self._outcomes.copy(), unsettled, errors)
        if self._wire.acks == 0:
            await turns.work(1 for _ in outcomes)
            answer.errors = errors
            _respond_to_acks_0(answer)
        else:
            writer = FrameWriter(flexible=header.api_version >= produce.FLEXIBLE_FROM)
            results, throttle_ms = self._results(outcomes), answer.throttle_ms
            await turns.work(
                produce.response_steps(writer, header.api_version, results, throttle_ms=throttle_ms)
            )
            answer.errors = errors
            answer.send([response_header(header), writer.data])
        if not self._wanted:
            await turns.work(_dropped(self._wire.partitions))


def _respond_to_acks_0(answer: ResponseSlot) -> None:
    if answer.errors:
        answer.close("a Produce with acks=0 failed; it has no response for the error")
    else:
        answer.send([])


def _with_errors(
    outcomes: Iterable[BatchOutcome | None], unsettled: BatchOutcome, errors: list[ErrorCode]
) -> Iterator[BatchOutcome]:
    """Yield `outcomes`, with `unsettled` in place of None. Add codes of failures to `errors`."""
    for outcome in outcomes:
        found = outcome or unsettled
        if found.error is not ErrorCode.none:
            errors.append(found.error)
        yield found


def _dropped(partitions: list[produce.ProducePartitionData]) -> Iterator[int]:
    """Drop all partitions in steps, because freeing them at once would take milliseconds."""
    while partitions:
        del partitions[-DROPPED_AT_ONCE:]
        yield DROPPED_AT_ONCE
