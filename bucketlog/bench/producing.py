"""Sending at a pace, or as fast as it can, through one producer or several in turn.

Invariants: a record is handed over once, and counted once: acknowledged, failed, or given up at the
end. Latency begins when a record was due, not when there was room for it. The first failure ends
the sending: a cluster that refuses records gives no valid figure. What librdkafka does not take
any more waits here, so memory is bounded by its queues.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

from confluent_kafka import KafkaException

from bucketlog.bench.account import Account, LatencyRecorder, Second, Summary
from bucketlog.bench.histogram import Histogram, latency_of
from bucketlog.bench.payload import Payload
from bucketlog.bench.schedule import NS_PER_S, DueRecords, PacedSchedule, Schedule, UnpacedSchedule
from bucketlog.client.sending import Outbox
from bucketlog.log_format.errors import ConfigurationError, LogError

CHUNK = 1000
"""Records handed to librdkafka by one call."""
PAUSE_S = 0.02
"""Longest time between two looks at the clock and at the request to stop."""
ROOM_S = 0.005

_logger = logging.getLogger(__name__)
_logger.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as it comes from outside; `now_ns` never goes back."""

    now_ns: Callable[[], int]
    sleep_s: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent. `records` or `duration_ns` ends it; `records_per_s` 0: as fast as it can. What
    is due before `warm_up_ns` is sent and not counted."""

    topic: str
    record_bytes: int
    records_per_s: float
    records: int | None
    duration_ns: int | None
    warm_up_ns: int = 0

    def schedule(self) -> Schedule:
        duration_ns = None if self.duration_ns is None else self.duration_ns + self.warm_up_ns
        if self.records_per_s:
            early = int(self.records_per_s * self.warm_up_ns / NS_PER_S)
            records = None if self.records is None else self.records + early
            return PacedSchedule(self.records_per_s, records=records, duration_ns=duration_ns)
        return UnpacedSchedule(
            CHUNK, records=self.records, duration_ns=duration_ns, free_ns=self.warm_up_ns
        )


@dataclass(frozen=True, slots=True)
class RunObserver:
    """Observer of a run: `is_stopped` is called often, `on_second` once per second."""

    is_stopped: Callable[[], bool]
    on_second: Callable[[Second], None] | None = None
    measured: LatencyRecorder | None = None
    """The latencies that it records; None: those of acknowledgements."""


def open_outboxes(config: Mapping[str, Any], count: int) -> list[Outbox]:
    """Raises `ConfigurationError` for a setting that librdkafka does not know."""
    try:
        return [Outbox(config) for _ in range(count)]
    except KafkaException as error:
        raise ConfigurationError(
            f"a setting of the client: {error.args[0].str()}", remedy="correct --client-config"
        ) from error


def check_client_config(config: Mapping[str, str]) -> None:
    """Raises `ConfigurationError` as `open_outboxes` does, without a cluster."""
    if config:
        for outbox in open_outboxes({**config, "bootstrap.servers": "", "logger": _logger}, 1):
            outbox.close()


class ProducerRun:
    """One run. `run` may be cut short by `is_stopped`; `settle` always comes after it."""

    def __init__(
        self,
        load: Load,
        outboxes: Sequence[Outbox],
        payload: Payload,
        clock: Clock,
        watching: RunObserver,
        stamp: Callable[[int], bytes] = lambda due_ns: b"",
    ) -> None:
        """`stamp` makes the header of the records that are due then, by the clock."""
        self.account = Account()
        self.warm_up_ns = load.warm_up_ns
        self._load = load
        self._stamp = stamp
        self._schedule = load.schedule()
        self._outboxes = outboxes
        self._turns = cycle(outboxes)
        self._payload = payload
        self._clock = clock
        self._watching = watching
        self._warm_up = Account()
        self._given_up = 0
        self._begun_ns = 0
        self._next_look_ns = NS_PER_S
        self._last_ns = 0
        """When the last acknowledgement was seen, since the begin."""

    def run(self) -> None:
        """Until all is sent, somebody stops it, or a record fails."""
        self._begun_ns = self._clock.now_ns()
        while not self._is_over():
            for step in self._schedule.due(self._elapsed_ns()):
                self._send(step)
                self._serve()
                if self._is_over():
                    return
            self._serve()
            next_ns = self._schedule.next_ns
            if next_ns is None:
                return
            early_s = (next_ns - self._elapsed_ns()) / NS_PER_S
            if early_s > 0:
                self._clock.sleep_s(min(early_s, PAUSE_S))

    def settle(self, patience_s: float) -> None:
        """Wait for records under way until the timeout; the rest is given up."""
        deadline_ns = self._clock.now_ns() + int(patience_s * NS_PER_S)
        while (before := self.waiting) and self._clock.now_ns() < deadline_ns:
            for outbox in self._outboxes:
                outbox.flush(PAUSE_S)
            if self.waiting < before:
                self._last_ns = self._elapsed_ns()
            self._serve()
        self._given_up = self.waiting
        self.account.is_open = self._warm_up.is_open = False
        for outbox in self._outboxes:
            outbox.kafka.purge()
            outbox.close()

    def summary(self, *, is_interrupted: bool) -> Summary:
        latencies = self.account.acknowledgements.whole
        seconds = (self._last_ns - self._load.warm_up_ns) / NS_PER_S
        is_paced = bool(self._load.records_per_s)
        return Summary(
            topic=self._load.topic,
            records=latencies.count,
            failed=self.account.failed.total(),
            seconds=round(max(0.0, seconds), 3) if latencies.count else 0.0,
            record_bytes=self._load.record_bytes,
            size_bytes=latencies.count * self._load.record_bytes,
            wanted_per_s=self._load.records_per_s,
            latency={"acknowledged": latency_of(latencies)},
            late=latency_of(self.account.lateness) if is_paced else None,
            lost=0,
            given_up=self._given_up,
            is_interrupted=is_interrupted,
        )

    @property
    def failure(self) -> LogError | None:
        return self.account.first_failure or self._warm_up.first_failure

    @property
    def acknowledged(self) -> int:
        """Number of acknowledged records, with those of the warm-up."""
        accounts = (self.account, self._warm_up)
        return sum(account.acknowledgements.whole.count for account in accounts)

    @property
    def waiting(self) -> int:
        """Records handed over and not yet acknowledged."""
        return sum(len(outbox.kafka) for outbox in self._outboxes)

    def _is_over(self) -> bool:
        return self.failure is not None or self._watching.is_stopped()

    def _elapsed_ns(self) -> int:
        return self._clock.now_ns() - self._begun_ns

    def _send(self, step: DueRecords) -> None:
        account = self.account if step.due_ns >= self._load.warm_up_ns else self._warm_up
        header = self._stamp(self._begun_ns + step.due_ns)
        for first in range(0, step.records, CHUNK):
            if self._is_over():
                return
            messages = self._payload.take(min(CHUNK, step.records - first), header)
            self._hand_over(messages, step.due_ns, account)

    def _hand_over(self, messages: list[dict[str, bytes]], due_ns: int, account: Account) -> None:
        outbox, late_us = next(self._turns), 0
        if self._load.records_per_s:
            late_us = (self._elapsed_ns() - due_ns) // 1000
            account.lateness.add(late_us)
        left: list[dict[str, Any]] = list(messages)
        while left:
            report = partial(account.report, late_us)
            try:
                left = outbox.put_batch(self._load.topic, left, report)
            except LogError as error:  # not even taken: too large, as an example
                account.fail(error)
                return
            if left:
                outbox.poll(ROOM_S)
                self._serve()
                if self._is_over():
                    return
                if self._load.records_per_s:
                    late_us = (self._elapsed_ns() - due_ns) // 1000

    def _serve(self) -> None:
        for outbox in self._outboxes:
            if outbox.poll(0):
                self._last_ns = self._elapsed_ns()
        if self._watching.on_second is not None and self._elapsed_ns() >= self._next_look_ns:
            self._look(self._watching.on_second)

    def _look(self, on_second: Callable[[Second], None]) -> None:
        elapsed_ns = self._elapsed_ns()
        recent = Histogram()
        shown = self._watching.measured
        for measured in (
            [shown] if shown else [self.account.acknowledgements, self._warm_up.acknowledgements]
        ):
            recent.merge(measured.look())
        on_second(Second(elapsed_ns / NS_PER_S, recent.count, latency_of(recent), self.waiting))
        self._next_look_ns = (elapsed_ns // NS_PER_S + 1) * NS_PER_S
