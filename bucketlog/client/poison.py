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
from bucketlog.client.origin_headers import HEADER_PREFIX
from bucketlog.client.topic import HeaderValue, Topic
from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.producer import Producer

REASON_BYTES_MAX = 4096
"""What is kept of a reason: it may quote the record."""

_logger = logging.getLogger("bucketlog.poison")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Dead-letter topic: where records go that do not decode, or whose handler fails.

    Key, value, headers and timestamp are kept. The headers `__connect.errors.topic`, `.partition`,
    `.offset`, `.stage`, `.exception.class.name` and `.exception.message` are added, as Kafka
    Connect does (KIP-298).

    Args:
        topic: Name of a topic that exists, or a `Topic`.

    Examples:
        >>> aside = bucketlog.DeadLetter("orders-dead")
        >>> log.topics.create("orders-dead", partitions=1).name
        'orders-dead'
        >>> numbers = bucketlog.Topic("orders", value=int, key=str)
        >>> with log.consumer(numbers, start="earliest", until="end", on_error=aside) as consumer:
        ...     print(list(consumer), consumer.passed_over)
        [] 2
    """

    topic: str | Topic[Any, Any]

    @property
    def name(self) -> str:
        """Name of the dead-letter topic."""
        return self.topic if isinstance(self.topic, str) else self.topic.name


OnError: TypeAlias = Literal["raise", "skip"] | DeadLetter


class Poison:
    """Treatment of records that do not decode, by one consumer, and the number of these records."""

    def __init__(self, on_error: OnError, open_producer: "Callable[[], Producer]") -> None:
        if on_error not in ("raise", "skip") and not isinstance(on_error, DeadLetter):
            raise ConfigurationError(
                f"{on_error!r} is nothing to do with a record that does not decode",
                remedy='on_error is "raise", "skip" or bucketlog.DeadLetter("a-topic")',
            )
        self.raises = on_error == "raise"
        self.passed_over = 0
        self._aside = Topic(on_error.name) if isinstance(on_error, DeadLetter) else None
        self.open_producer = open_producer
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
            self._producer = self.open_producer()
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
    """Return the headers with the record's origin and the error, by the names of Kafka Connect."""
    (topic, partition), offset = spot_of(message)
    reason = error.reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
    return (
        (f"{HEADER_PREFIX}topic", topic),
        (f"{HEADER_PREFIX}partition", str(partition)),
        (f"{HEADER_PREFIX}offset", str(offset)),
        (f"{HEADER_PREFIX}stage", f"{error.part.upper()}_CONVERTER"),
        (f"{HEADER_PREFIX}exception.class.name", error.cause_name),
        (f"{HEADER_PREFIX}exception.message", reason),
    )
