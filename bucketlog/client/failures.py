"""Treatment of a record whose handler fails: another attempt, then the caller's choice."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bucketlog.client.origin_headers import DUE_HEADER, HEADER_PREFIX, TIMESTAMP_HEADER
from bucketlog.client.poison import REASON_BYTES_MAX, DeadLetter
from bucketlog.client.retry_topics import RetryTopics
from bucketlog.client.topic import HeaderValue, Record, Retry, Topic
from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.producer import Producer
    from bucketlog.client.traced_reads import TracedReads

OnFailure: TypeAlias = Literal["raise", "skip"] | DeadLetter | RetryTopics

_logger = logging.getLogger("bucketlog.process")


class Failures:
    """`attempts` is the number of calls of a handler for a record. `on_failure` says what happens
    after the last attempt. `now_ms` is the time of day. Raises `ConfigurationError`."""

    def __init__(
        self,
        on_failure: OnFailure,
        attempts: int,
        open_producer: "Callable[[], Producer]",
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        traced: "TracedReads | None" = None,
    ) -> None:
        if on_failure not in ("raise", "skip") and not isinstance(
            on_failure, DeadLetter | RetryTopics
        ):
            raise ConfigurationError(
                f"on_failure is {on_failure!r}",
                remedy='it may be "raise", "skip", bucketlog.DeadLetter("a-topic") or '
                "bucketlog.RetryTopics(...)",
            )
        if attempts < 1:
            raise ConfigurationError(f"attempts is {attempts}", remedy="allow at least 1 attempt")
        self.attempts = attempts
        self.raises = on_failure == "raise"
        self._on_failure = on_failure
        self._open_producer = open_producer
        self._opening = threading.Lock()
        self._producer: Producer | None = None
        self._now_ms = now_ms
        self._traced = traced

    def pass_over(self, record: Record[Any, Any], error: Exception) -> None:
        """Skip the record, or set it aside: returns when it is acknowledged in the retry topic or
        the dead-letter topic. Raises `LogError`."""
        if isinstance(self._on_failure, RetryTopics):
            target, delay_s = self._on_failure.next_after(record.topic)
        elif isinstance(self._on_failure, DeadLetter):
            target, delay_s = self._on_failure.name, None
        else:
            _logger.warning("skipped: the record at %s: %r", record.where, error)
            return
        headers = (*record.headers, *origin_headers(record, error, self.attempts))
        timestamp_ms = None if record.timestamp_ms < 0 else record.timestamp_ms
        if delay_s is not None:
            headers += self._retry_headers(timestamp_ms, delay_s)
            timestamp_ms = None
        with nullcontext() if self._traced is None else self._traced.continuing(record):
            self._opened().send(
                Topic(target),
                record.raw_value,
                key=record.raw_key,
                headers=headers,
                timestamp_ms=timestamp_ms,
            ).result()
        doing = "set aside" if delay_s is None else f"to be retried in {delay_s:g} s"
        _logger.warning("%s in %r: the record at %s: %r", doing, target, record.where, error)

    def _retry_headers(
        self, timestamp_ms: int | None, delay_s: float
    ) -> tuple[tuple[str, HeaderValue], ...]:
        due = (DUE_HEADER, str(self._now_ms() + round(delay_s * 1000)))
        return (due,) if timestamp_ms is None else (due, (TIMESTAMP_HEADER, str(timestamp_ms)))

    def _opened(self) -> "Producer":
        with self._opening:
            if self._producer is None:
                self._producer = self._open_producer()
            return self._producer

    def note_retry(self, record: Record[Any, Any], attempt: int, error: Exception) -> None:
        _logger.info(
            "attempt %d of %d for the record at %s failed: %r",
            attempt,
            self.attempts,
            record.where,
            error,
        )

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()


def origin_headers(
    record: Record[Any, Any], error: Exception, attempts: int
) -> tuple[tuple[str, HeaderValue], ...]:
    """Return the headers with the record's origin and the error, by the names of Kafka Connect."""
    kind = type(error)
    reason = str(error).encode(errors="replace")[:REASON_BYTES_MAX].decode(errors="ignore")
    origin = record.retry or Retry(record.topic, record.partition, record.offset, attempts=0)
    attempts += origin.attempts
    return (
        (f"{HEADER_PREFIX}topic", origin.topic),
        (f"{HEADER_PREFIX}partition", str(origin.partition)),
        (f"{HEADER_PREFIX}offset", str(origin.offset)),
        (f"{HEADER_PREFIX}stage", "TASK_PUT"),
        (f"{HEADER_PREFIX}attempts", str(attempts)),
        (f"{HEADER_PREFIX}exception.class.name", f"{kind.__module__}.{kind.__qualname__}"),
        (f"{HEADER_PREFIX}exception.message", reason),
    )
