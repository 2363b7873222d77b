"""From when a record was due to when a consumer has it: one process sends and receives, one clock.

A separate thread receives. Records carry which run they are of, and when they were due: what
others send to the topic meanwhile is passed over. Invariant: a record that was acknowledged and did
not come is reported as lost.
"""

import threading
from collections.abc import Iterable

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaError, KafkaException, Message

from bucketlog.bench.account import LatencyRecorder, Summary
from bucketlog.bench.consuming import BATCH, PASSING, WAIT_S
from bucketlog.bench.histogram import latency_of
from bucketlog.bench.producing import Clock, ProducerRun
from bucketlog.bench.schedule import NS_PER_S
from bucketlog.client.kafka_errors import log_error
from bucketlog.log_format.errors import LogError

RUN_BYTES = 8
STAMP_BYTES = 8
HEADER_BYTES = RUN_BYTES + STAMP_BYTES


def stamp(run_id: bytes, due_ns: int) -> bytes:
    """The header of a record's value, for `Receiver`."""
    return run_id + due_ns.to_bytes(STAMP_BYTES, "big")


class Receiver:
    """Measures the records of a run, if they were due from `measured_from_ns` on."""

    def __init__(
        self, consumer: KafkaConsumer, run_id: bytes, clock: Clock, measured: LatencyRecorder
    ) -> None:
        self.received = 0
        self.failure: LogError | None = None
        self.measured = measured
        self.measured_from_ns = 0
        self._consumer = consumer
        self._run_id = run_id
        self._clock = clock
        self._is_stopping = False

    def run(self) -> None:
        """In a thread, until `stop`."""
        try:
            while not self._is_stopping and self.failure is None:
                message = self._consumer.poll(WAIT_S)
                if message is not None:
                    self._take([message, *self._consumer.consume(BATCH, 0)])
        except KafkaException as error:
            self.failure = log_error(error.args[0], "receiving what was sent")

    def stop(self) -> None:
        self._is_stopping = True

    def close(self) -> None:
        self._consumer.close()

    def _take(self, messages: Iterable[Message]) -> None:
        now_ns = self._clock.now_ns()
        for message in messages:
            error = message.error()
            if error is not None:
                if error.code() not in PASSING and error.code() != KafkaError._PARTITION_EOF:
                    self.failure = log_error(error, f"reading topic {message.topic()!r}")
                continue
            value = message.value()
            if isinstance(value, bytes) and value.startswith(self._run_id):
                due_ns = int.from_bytes(value[RUN_BYTES:HEADER_BYTES], "big")
                if due_ns >= self.measured_from_ns:
                    self.measured.add((now_ns - due_ns) // 1000)
                self.received += 1


class EndToEndRun:
    """One run, as `ProducerRun`."""

    def __init__(self, producing: ProducerRun, receiver: Receiver, clock: Clock) -> None:
        self._producing = producing
        self._receiver = receiver
        self._clock = clock
        self._thread = threading.Thread(target=receiver.run, name="bucketlog bench receiver")

    @property
    def failure(self) -> LogError | None:
        return self._producing.failure or self._receiver.failure

    def run(self) -> None:
        """As `ProducerRun.run`; a receiver that fails ends it, too."""
        self._receiver.measured_from_ns = self._clock.now_ns() + self._producing.warm_up_ns
        self._thread.start()
        self._producing.run()

    def settle(self, patience_s: float) -> None:
        """Wait for what is under way, and for what was acknowledged to come. The time is for
        each."""
        try:
            self._producing.settle(patience_s)
            deadline_ns = self._clock.now_ns() + int(patience_s * NS_PER_S)
            while self._lost and self.failure is None and self._clock.now_ns() < deadline_ns:
                self._clock.sleep_s(WAIT_S)
        finally:
            self._receiver.stop()
            self._thread.join()
            self._receiver.close()

    def summary(self, *, is_interrupted: bool) -> Summary:
        whole = self._producing.summary(is_interrupted=is_interrupted)
        came = latency_of(self._receiver.measured.whole)
        return whole._replace(latency={**whole.latency, "end to end": came}, lost=self._lost)

    @property
    def _lost(self) -> int:
        return max(0, self._producing.acknowledged - self._receiver.received)
