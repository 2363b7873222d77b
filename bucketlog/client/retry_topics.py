"""Retry topics: records whose handler failed wait there until they are due."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bucketlog.client.poison import DeadLetter
from bucketlog.client.topic import MAX_NAME_LENGTH, Topic
from bucketlog.log_format.errors import ConfigurationError

DELAYS_MAX = 20
DELAY_S_MAX = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RetryTopics:
    """Retry failed records later, without a delay for the records behind them.

    After the last of its `attempts`, a record is copied to the first retry topic. Its partition of
    the retry topic waits until the record is due. Then the handler is called again. If this call
    fails, the record is copied to the next retry topic, and from the last one to the dead-letter
    topic.

    Args:
        name: The beginning of the names of the retry topics: `NAME-1` for the first delay, `NAME-2`
            for the second. Topics that do not exist are created. Each group needs its own.
        delays_s: Seconds between a failure and the next call, for each retry topic. At least one,
            at most 20, each up to 7 days.
        dead_letter: The topic for records that also fail after the last delay. It must exist.

    Raises:
        ConfigurationError: If a delay or a name is out of bounds.

    Examples:
        >>> later = bucketlog.RetryTopics(
        ...     "orders-booking-retry", delays_s=(60, 600), dead_letter="orders-booking-dead"
        ... )
        >>> later.topics
        ('orders-booking-retry-1', 'orders-booking-retry-2')
    """

    name: str
    delays_s: Sequence[float]
    dead_letter: str | Topic[Any, Any] | DeadLetter

    def __post_init__(self) -> None:
        if not 1 <= len(self.delays_s) <= DELAYS_MAX:
            raise ConfigurationError(
                f"{len(self.delays_s)} delays of retry topics",
                remedy=f"give 1 to {DELAYS_MAX}, as in delays_s=(60, 600)",
            )
        for delay_s in self.delays_s:
            if not 0 < delay_s <= DELAY_S_MAX:
                raise ConfigurationError(
                    f"a delay of {delay_s} s before a retry",
                    remedy=f"make it more than 0 and at most {DELAY_S_MAX:.0f} s (7 days)",
                )
        if len(self.name) > MAX_NAME_LENGTH - len(f"-{DELAYS_MAX}"):
            raise ConfigurationError(
                f"{self.name[:60]!r}… is too long for the name of retry topics",
                remedy=f"use at most {MAX_NAME_LENGTH - len(f'-{DELAYS_MAX}')} characters",
            )
        names = (*self.topics, self.dead_letter_topic)
        for name in names:
            Topic(name)  # refuses wrong names
        if self.dead_letter_topic in self.topics:
            raise ConfigurationError(
                f"{self.dead_letter_topic!r} is a retry topic and the dead-letter topic",
                remedy="choose another dead-letter topic",
            )

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the retry topics, in the order of the delays."""
        return tuple(f"{self.name}-{number + 1}" for number in range(len(self.delays_s)))

    @property
    def dead_letter_topic(self) -> str:
        """The name of the dead-letter topic."""
        if isinstance(self.dead_letter, DeadLetter):
            return self.dead_letter.name
        return self.dead_letter if isinstance(self.dead_letter, str) else self.dead_letter.name

    def next_after(self, topic: str) -> tuple[str, float | None]:
        """Find the topic for a record whose handler failed.

        Args:
            topic: Name of the topic that holds the record.

        Returns:
            The name of the next topic, and the delay in seconds; None means that the next topic is
            the dead-letter topic.
        """
        at = self.topics.index(topic) + 1 if topic in self.topics else 0
        if at == len(self.topics):
            return self.dead_letter_topic, None
        return self.topics[at], float(self.delays_s[at])
