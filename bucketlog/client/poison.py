"""Records that do not decode, and what a consumer does with them: raise, skip, or set aside.

Invariants: a record is passed over only by the caller's choice, and then counted and logged with
its place and the reason. One that is set aside is acknowledged in the dead-letter topic before the
consumer hands out, counts as done, or commits anything after it. Where that fails, it is tried
again with the next call.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from confluent_kafka import Message

from bucketlog.client.decoding import UnreadableRecordError, headers_of, spot_of
from bucketlog.client.topic import HeaderValue, Topic
from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.producer import Producer

_PREFIX = "__connect.errors."
REASON_BYTES_MAX = 4096
"""What is kept of a reason: it may quote the record."""

_logger = logging.getLogger("bucketlog.poison")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Set records that do not decode aside, in another topic, as they are.

    Key, value, headers and timestamp stay; headers `__connect.errors.topic`, `.partition`,
    `.offset`, `.stage`, `.exception.class.name` and `.exception.message` are added, as by Kafka
    Connect. The topic must exist.
    """

    topic: str | Topic[Any, Any]

    @property
    def name(self) -> str:
        return self.topic if isinstance(self.topic, str) else self.topic.name


OnError: TypeAlias = Literal["raise", "skip"] | DeadLetter


class Poison:
    """What one consumer does with records that do not decode, and how many it passed over."""

    def __init__(self, on_error: OnError, open_producer: "Callable[[], Producer]") -> None:
        if on_error not in ("raise", "skip") and not isinstance(on_error, DeadLetter):
            raise ConfigurationError(
                f"{on_error!r} is nothing to do with a record that does not decode",
                remedy='on_error is "raise", "skip" or bucketlog.DeadLetter("a-topic")',
            )
        self.raises = on_error == "raise"
        self.passed_over = 0
        self._aside = Topic(on_error.name) if isinstance(on_error, DeadLetter) else None
        self._open_producer = open_producer
        self._producer: Producer | None = None

    def pass_over(self, found: Sequence[tuple[Message, UnreadableRecordError]]) -> None:
        """Returns when those that are set aside are acknowledged. Raises `LogError`."""
        if self._aside is not None:
            self._set_aside(self._aside, found)
        for _, error in found:
            self.passed_over += 1
            where = "skipped" if self._aside is None else f"set aside in {self._aside.name!r}"
            _logger.warning("%s: %s", where, error.message)

    def _set_aside(
        self, aside: Topic[bytes, bytes], found: Sequence[tuple[Message, UnreadableRecordError]]
    ) -> None:
        if self._producer is None:
            self._producer = self._open_producer()
        sent = [
            self._producer.send(
                aside,
                message.value(),
                key=message.key(),
                headers=(*headers_of(message), *reason_headers(message, error)),
                timestamp_ms=message.timestamp()[1],
            )
            for message, error in found
        ]
        self._producer.flush()
        for delivery in sent:
            delivery.result()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()


def reason_headers(
    message: Message, error: UnreadableRecordError
) -> tuple[tuple[str, HeaderValue], ...]:
    """Where it came from and why it is here, by the names of Kafka Connect."""
    partition, offset = spot_of(message)
    reason = error.reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
    return (
        (f"{_PREFIX}topic", message.topic() or ""),
        (f"{_PREFIX}partition", str(partition)),
        (f"{_PREFIX}offset", str(offset)),
        (f"{_PREFIX}stage", f"{error.part.upper()}_CONVERTER"),
        (f"{_PREFIX}exception.class.name", error.cause_name),
        (f"{_PREFIX}exception.message", reason),
    )
