"""What became of the records of a load, and how it is reported."""

import threading
from collections import Counter
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message

from bucketlog.bench.histogram import Histogram, Latency
from bucketlog.client.kafka_errors import log_error
from bucketlog.log_format.errors import LogError


class LatencyRecorder:
    """Latencies in microseconds: of all, and of what came since the last look. For two threads: one
    that adds, one that looks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whole = Histogram()
        self._recent = Histogram()

    def add(self, microseconds: int) -> None:
        with self._lock:
            self._recent.add(microseconds)

    def look(self) -> Histogram:
        """What came since the last look."""
        with self._lock:
            recent, self._recent = self._recent, Histogram()
            self._whole.merge(recent)
        return recent

    @property
    def whole(self) -> Histogram:
        self.look()
        return self._whole


class Account:
    """Of one load. Reports come in the thread that polls the producers."""

    def __init__(self) -> None:
        self.is_open = True
        """What fails after that was given up."""
        self.acknowledgements = LatencyRecorder()
        self.lateness = Histogram()
        """How late steps were sent, in microseconds: the load's own delay."""
        self.failed: Counter[str] = Counter()
        self.first_failure: LogError | None = None
        self._acknowledged = self.acknowledgements.add

    def report(self, late_us: int, error: KafkaError | None, message: Message) -> None:
        """Of one record. The argument is how long after its due time it was handed over."""
        if error is None:
            self._acknowledged(late_us + int((message.latency() or 0.0) * 1e6))
            return
        if not self.is_open:
            return
        self.fail(log_error(error, f"sending to topic {message.topic()!r}"))

    def fail(self, failure: LogError) -> None:
        self.failed[failure.code] += 1
        self.first_failure = self.first_failure or failure


class Second(NamedTuple):
    """What happened in one, for who watches."""

    elapsed_s: float
    records: int
    latency: Latency
    waiting: int


class Summary(NamedTuple):
    """`seconds` are from the first record's due time to the last that was counted. MB are 10^6
    bytes of values. `late` is how late the load itself was; None where nothing was due at a time.
    `given_up` were under way when it was stopped; `lost` were acknowledged and did not come."""

    topic: str
    records: int
    failed: int
    seconds: float
    record_bytes: int
    size_bytes: int
    wanted_per_s: float
    latency: dict[str, Latency]
    late: Latency | None
    lost: int
    given_up: int
    is_interrupted: bool

    @property
    def records_per_s(self) -> float:
        return round(self.records / self.seconds, 1) if self.seconds > 0 else 0.0

    @property
    def mb_per_s(self) -> float:
        return round(self.size_bytes / self.seconds / 1e6, 3) if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "records": self.records,
            "failed": self.failed,
            "given_up": self.given_up,
            "lost": self.lost,
            "bytes": self.size_bytes,
            "seconds": self.seconds,
            "records_per_s": self.records_per_s,
            "mb_per_s": self.mb_per_s,
            "wanted_per_s": self.wanted_per_s or None,
            "latency_ms": {name: found._asdict() for name, found in self.latency.items()},
            "late_ms": self.late._asdict() if self.late else None,
            "interrupted": self.is_interrupted,
        }
