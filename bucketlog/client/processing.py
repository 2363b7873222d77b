"""`GroupConsumer.process`: a function is called for each record, in many threads.

Invariants: a record is acknowledged only after its handler has returned, or after it was passed
over by the caller's choice. Records of one lane are handled in order, one at a time. When anything
ends the processing, running handlers finish, and what was not handled is read again.
"""

import inspect
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from bucketlog.client.choices import no_choice
from bucketlog.client.failures import Failures
from bucketlog.client.lanes import Lanes
from bucketlog.client.topic import Record
from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketlogError, ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.acknowledging import AcknowledgingConsumer
    from bucketlog.client.traced_reads import TracedReads

K = TypeVar("K")
V = TypeVar("V")

OrderedBy: TypeAlias = Literal["key", "partition"] | None
"""Records that are handled in order: those of a key, those of a partition, or none."""

POLL_RECORDS = 500
POLL_S = 0.25
IDLE_S = 0.05


@dataclass(frozen=True, slots=True)
class Retrying:
    """Pauses between the attempts of `GroupConsumer.process`. They double, and have jitter.

    Args:
        first_pause_s: Pause after the first attempt, in seconds. Default: 0.1.
        longest_pause_s: Longest pause, in seconds. Default: 10.

    Examples:
        >>> with log.consumer(
        ...     orders, group="billing", start="earliest", until="end", auto_commit="ack"
        ... ) as consumer:
        ...     consumer.process(print, attempts=3, retrying=bucketlog.Retrying(first_pause_s=0.5))
        Record(orders[0]@0, key='ann', value=Order(id='1', amount=9.5))
        Record(orders[0]@1, key='bob', value=Order(id='2', amount=20.0))
        2
    """

    first_pause_s: float = 0.1
    longest_pause_s: float = 10.0

    def pause_s(self, attempt: int, random: Random) -> float:
        """Return the pause after a failed attempt.

        Args:
            attempt: Number of the attempt; the first one is 1.
            random: Source of the jitter.

        Returns:
            The pause, in seconds.
        """
        pauses = Backoff(self.first_pause_s * 1000, self.longest_pause_s * 1000, jitter=0.5)
        return pauses.pause_s(attempt - 1, random.random())


RETRYING = Retrying()


@dataclass(frozen=True, slots=True)
class ProcessingRules:
    """How `process` calls its handler: in `concurrency` threads or tasks, in which order, and what
    happens if the handler raises. Raises `ConfigurationError`."""

    concurrency: int
    ordered_by: OrderedBy
    failures: Failures
    retrying: Retrying
    traced: "TracedReads | None" = None

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ConfigurationError(
                f"concurrency is {self.concurrency}", remedy="make it at least 1"
            )
        if self.ordered_by not in (None, *get_args(get_args(OrderedBy)[0])):
            raise no_choice("ordered_by", self.ordered_by, ("key", "partition"), "None")


def lane_of(record: Record[Any, Any], ordered_by: OrderedBy) -> Hashable:
    """Records of equal lanes are handled in order. Records without a key have no order."""
    if ordered_by == "partition":
        return record.topic, record.partition
    if ordered_by == "key" and record.raw_key is not None:
        return record.topic, record.partition, record.raw_key
    return record.topic, record.partition, record.offset


class Processing(Generic[K, V]):
    """Run of `process`."""

    def __init__(
        self,
        consumer: "AcknowledgingConsumer[K, V, Any]",
        handler: Callable[[Record[K, V]], object],
        rules: ProcessingRules,
    ) -> None:
        if inspect.iscoroutinefunction(handler):
            raise ConfigurationError(
                "the handler is a coroutine function",
                remedy="use bucketlog.aconnect, whose consumers await the handler",
            )
        self._consumer = consumer
        self._handler = handler
        self._rules = rules
        self._failures = rules.failures
        self._random = Random()
        self._lanes = Lanes[Record[K, V]]()
        self._lock = threading.RLock()  # a done handler is noted at once where it is submitted
        """Guards the lanes and the count."""
        self._idle = threading.Condition(self._lock)
        self._ending = threading.Event()
        self._failure: BaseException | None = None
        self._count = 0

    def run(self) -> int:
        """Process until the consumer has finished or is stopped. Returns the number of handled
        records. Raises what a handler raises, if `on_failure` is "raise"."""
        consumer = self._consumer
        try:
            with ThreadPoolExecutor(self._rules.concurrency, "bucketlog process") as pool:
                try:
                    while not (self._ending.is_set() or consumer.finished or consumer.is_stopped):
                        for record in consumer._poll(POLL_RECORDS, POLL_S):
                            self._start(pool, record)
                    if not consumer.is_stopped:
                        self._wait_for_handlers()
                finally:
                    self._end()
        finally:
            self._failures.close()
        if self._failure is not None:
            raise self._failure
        return self._count

    def _start(self, pool: ThreadPoolExecutor, record: Record[K, V]) -> None:
        lane = lane_of(record, self._rules.ordered_by)
        with self._lock:
            if self._lanes.put(lane, record):
                self._submit(pool, lane, record)

    def _submit(
        self, pool: ThreadPoolExecutor, lane: Hashable, record: Record[K, V], attempt: int = 1
    ) -> None:
        called = pool.submit(self._call, record, attempt)
        called.add_done_callback(partial(self._called, pool, lane, record, attempt))

    def _call(self, record: Record[K, V], attempt: int) -> bool:
        """False: the record is left to its next reader."""
        if self._ending.is_set() or not self._consumer.is_in_flight(record):
            return False
        if self._rules.traced is None:
            self._handler(record)
            return True
        with self._rules.traced.processing(record, attempt=attempt):
            self._handler(record)
        return True

    def _wait_for_handlers(self) -> None:
        """While they run, the group hears from this member."""
        while not self._ending.is_set():
            with self._idle:
                if self._idle.wait_for(lambda: not len(self._lanes), IDLE_S):
                    return
            self._consumer._poll(0, 0)

    def _end(self) -> None:
        self._ending.set()
        with self._lock:
            self._lanes.clear()

    def _called(
        self,
        pool: ThreadPoolExecutor,
        lane: Hashable,
        record: Record[K, V],
        attempt: int,
        called: "Future[bool]",
    ) -> None:
        """Let the next record of the lane run. Called in the thread of the call."""
        error = called.exception()
        is_handled = error is None and called.result()
        if isinstance(error, Exception) and attempt < self._failures.attempts:
            self._failures.note_retry(record, attempt, error)
            if not self._ending.wait(self._rules.retrying.pause_s(attempt, self._random)):
                with self._lock:
                    if not self._ending.is_set():
                        self._submit(pool, lane, record, attempt + 1)
                        return
        elif error is not None:
            is_handled = self._has_passed_over(record, error)
        if is_handled:
            self._consumer.done(record)
        with self._idle:
            self._count += is_handled
            following = self._lanes.next_of(lane)
            if following is not None:
                self._submit(pool, lane, following)
            elif not len(self._lanes):
                self._idle.notify_all()

    def _has_passed_over(self, record: Record[K, V], error: BaseException) -> bool:
        """False: `run` raises an error."""
        if isinstance(error, Exception) and not self._failures.raises:
            try:
                self._failures.pass_over(record, error)
            except BucketlogError as failure:
                error = failure
            else:
                return True
        self._failure = self._failure or error
        self._end()
        return False
