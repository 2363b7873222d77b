"""Reading all partitions of a topic as fast as they come.

Librdkafka's messages are counted as they are: nothing is decoded, and no group is asked. Invariant:
without a time limit exactly what stood before the ends, as they were at the begin, ends it; what
others add meanwhile may be counted beside.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.bench.account import Second, Summary
from bucketlog.bench.histogram import Histogram, latency_of
from bucketlog.bench.producing import Clock, RunObserver
from bucketlog.bench.schedule import NS_PER_S
from bucketlog.client.kafka_errors import log_error
from bucketlog.log_format.errors import ConfigurationError, LogError

BATCH = 10_000
WAIT_S = 0.05
PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
"""librdkafka continues trying, and says nothing more: who hears nothing for long asks a broker."""
QUESTION_S = 5.0


def open_consumer(config: Mapping[str, Any], topic: str, begin: Mapping[int, int]) -> KafkaConsumer:
    """Open a consumer that reads from these offsets. Raises `ConfigurationError`, `LogError`."""
    try:
        consumer = KafkaConsumer({**config, "enable.partition.eof": True})
    except KafkaException as error:
        raise ConfigurationError(
            f"a setting of the client: {error.args[0].str()}", remedy="correct --client-config"
        ) from error
    try:
        consumer.assign([KafkaPartition(topic, part, at) for part, at in begin.items()])
    except KafkaException as error:
        consumer.close()
        raise log_error(error.args[0], f"opening topic {topic!r}") from error
    return consumer


class ConsumerRun:
    """One run. `ends` are the offsets that end it by partition, None: they do not."""

    def __init__(
        self,
        topic: str,
        consumer: KafkaConsumer,
        ends: Mapping[int, int] | None,
        clock: Clock,
        watching: RunObserver,
        *,
        records: int | None,
        duration_ns: int | None,
        patience_ns: int,
    ) -> None:
        self.records = 0
        self.size_bytes = 0
        self.failure: LogError | None = None
        self._topic = topic
        self._consumer = consumer
        self._ends = None if ends is None else dict(ends)
        self._clock = clock
        self._watching = watching
        self._records_max = records
        self._duration_ns = duration_ns
        self._patience_ns = patience_ns
        self._last_ns = 0
        self._heard_ns = 0
        """When a broker was last heard of, since the begin."""

    def run(self) -> None:
        begun_ns = self._clock.now_ns()
        told_ns = told_records = 0
        on_second = self._watching.on_second
        while not self._is_over(elapsed_ns := self._clock.now_ns() - begun_ns):
            if on_second is not None and elapsed_ns - told_ns >= NS_PER_S:
                on_second(_second(elapsed_ns, self.records - told_records))
                told_ns, told_records = elapsed_ns, self.records
            left = BATCH if self._records_max is None else self._records_max - self.records
            try:
                messages = self._consumer.consume(min(BATCH, left), WAIT_S)
            except KafkaException as error:
                self.failure = log_error(error.args[0], f"reading topic {self._topic!r}")
                return
            now_ns = self._clock.now_ns() - begun_ns
            if messages:
                self._count(messages, now_ns)
            elif now_ns - self._heard_ns > self._patience_ns:
                self._ask(now_ns)

    def settle(self, patience_s: float) -> None:
        """Close the consumer. No record is in flight."""
        self._consumer.close()

    def summary(self, *, is_interrupted: bool) -> Summary:
        return Summary(
            topic=self._topic,
            records=self.records,
            failed=0,
            seconds=round(self._last_ns / NS_PER_S, 3),
            record_bytes=round(self.size_bytes / self.records) if self.records else 0,
            size_bytes=self.size_bytes,
            wanted_per_s=0,
            latency={},
            late=None,
            lost=0,
            given_up=0,
            is_interrupted=is_interrupted,
        )

    def _is_over(self, elapsed_ns: int) -> bool:
        return (
            self._watching.is_stopped()
            or self.failure is not None
            or (self._duration_ns is not None and elapsed_ns >= self._duration_ns)
            or (self._records_max is not None and self.records >= self._records_max)
            or self._ends == {}
        )

    def _count(self, messages: list[Message], now_ns: int) -> None:
        self._heard_ns = now_ns
        good = [message for message in messages if message.error() is None]
        if good:
            self.records += len(good)
            self.size_bytes += sum(map(len, good))
            self._last_ns = now_ns
        if len(good) < len(messages):
            for message in messages:
                error = message.error()
                if error is not None:
                    self._take_error(error, message)

    def _take_error(self, error: KafkaError, message: Message) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            partition, offset = message.partition() or 0, message.offset() or 0
            if self._ends is not None and offset >= self._ends.get(partition, 0):
                self._ends.pop(partition, None)
        elif error.code() not in PASSING:
            self.failure = self.failure or log_error(error, f"reading topic {self._topic!r}")

    def _ask(self, now_ns: int) -> None:
        """Whether a broker answers: a topic to which nobody writes is silent, too."""
        try:
            timeout_s = min(QUESTION_S, self._patience_ns / NS_PER_S)
            self._consumer.list_topics(self._topic, timeout=timeout_s)
            self._heard_ns = now_ns
        except KafkaException as error:
            self.failure = log_error(error.args[0], f"reading topic {self._topic!r}")


def _second(elapsed_ns: int, records: int) -> Second:
    return Second(elapsed_ns / NS_PER_S, records, latency_of(Histogram()), 0)
