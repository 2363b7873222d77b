"""Assertions about the records of a topic, whose messages show the records that come nearest."""

import time
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.log import Log
    from bucketlog.client.topic import HeaderValue, Record, Topic


class _Anything:
    """The default of `value` and `key`."""

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Anything()
WITHIN_S = 10.0
PAUSE_S = 0.1
"""Time between two reads of the topic."""
NEAREST = 5
"""Number of records that a message shows."""
SHOWN_CHARACTERS = 200
RANKED = 1000
"""Number of records that are compared character by character."""
COMPARED_CHARACTERS = 200


def assert_published(
    log: "Log",
    topic: "str | Topic[Any, Any]",
    *,
    value: object = ANY,
    key: object = ANY,
    headers: "Mapping[str, HeaderValue] | None" = None,
    times: int | None = None,
    within_s: float = WITHIN_S,
) -> "list[Record[Any, Any]]":
    """Assert that a topic has records with this value, key and headers, or gets them soon.

    Args:
        log: Connection to the cluster.
        topic: Topic with the types of its records, or its name.
        value: Value of the records; None means a tombstone. Default: any value.
        key: Key of the records; None means no key. Default: any key.
        headers: Headers that the records have, perhaps among others; None means any headers.
        times: Number of such records. 0 asserts that there are none now. None means at least one.
        within_s: Longest wait for the records, in seconds. Default: 10.

    Returns:
        The records that match, by partition and offset.

    Raises:
        AssertionError: If there are too few such records after `within_s`, or too many. The message
            shows the nearest records.
        ConfigurationError: If `times` is negative.
        LogError: If the topic does not exist, or if brokers do not answer.

    Examples:
        >>> from bucketlog.testing import assert_published
        >>> (record,) = assert_published(log, orders, key="ann", times=1)
        >>> record.value.amount
        9.5
    """
    if times is not None and times < 0:
        raise ConfigurationError(f"times is {times}", remedy="give 0 or more")
    wanted = _Wanted(value, key, dict(headers or {}))
    seen = _read_until(log, topic, wanted, times, within_s)
    found = [record for record in seen if wanted.differences(record) == ()]
    if found if times is None else len(found) == times:
        return sorted(found, key=lambda record: (record.partition, record.offset))
    raise AssertionError(_message(topic, wanted, times, found, seen))


class _Wanted(NamedTuple):
    value: object
    key: object
    headers: "dict[str, HeaderValue]"

    def differences(self, record: "Record[Any, Any]") -> tuple[str, ...]:
        """The parts of a record that are not as wanted."""
        parts = []
        if not _equal(self.value, _value(record)):
            parts.append("value")
        if not _equal(self.key, record.key):
            parts.append("key")
        for name, wanted in self.headers.items():
            expected = wanted.encode() if isinstance(wanted, str) else wanted
            if (name, expected) not in record.headers:
                parts.append(f"header {name!r}")
        return tuple(parts)

    def distance(self, record: "Record[Any, Any]") -> tuple[int, float]:
        """The number of different parts, then a number for key and value. Less is nearer."""
        likeness = sum(
            SequenceMatcher(None, _cut(wanted), _cut(actual), autojunk=False).ratio()
            for wanted, actual in ((self.value, _value(record)), (self.key, record.key))
            if wanted is not ANY
        )
        return len(self.differences(record)), -likeness

    def __str__(self) -> str:
        shown = [
            f"{name}={part!r}"
            for name, part in (("key", self.key), ("value", self.value))
            if part is not ANY
        ]
        shown += [f"headers={self.headers!r}"] if self.headers else []
        return ", ".join(shown) or "any content"


def _read_until(
    log: "Log", topic: "str | Topic[Any, Any]", wanted: _Wanted, times: int | None, within_s: float
) -> "list[Record[Any, Any]]":
    """Read the topic to its end, again and again, until enough records match or time is up."""
    from bucketlog.client.topic import Topic

    typed: Topic[Any, Any] = Topic(topic) if isinstance(topic, str) else topic
    deadline = time.monotonic() + within_s
    seen: list[Record[Any, Any]] = []
    start: Any = "earliest"
    while True:
        with log.consumer(typed, start=start, until="end") as consumer:
            seen += consumer
            start = consumer.position()
        count = sum(wanted.differences(record) == () for record in seen)
        enough = count > 0 if times is None else count >= times
        if enough or time.monotonic() >= deadline:
            return seen
        time.sleep(PAUSE_S)


def _message(
    topic: "str | Topic[Any, Any]",
    wanted: _Wanted,
    times: int | None,
    found: "Sequence[Record[Any, Any]]",
    seen: "Sequence[Record[Any, Any]]",
) -> str:
    name = topic if isinstance(topic, str) else topic.name
    number = "at least 1 record" if times is None else f"{times} record{'s' * (times != 1)}"
    lines = [f"expected {number} with {wanted} in topic {name!r}, found {len(found)}"]
    if not seen:
        return f"{lines[0]}: the topic is empty"
    likely = sorted(seen, key=lambda record: len(wanted.differences(record)))[:RANKED]
    nearest = sorted(likely, key=wanted.distance)[:NEAREST]
    lines.append(f"the nearest of {len(seen)} records:")
    for record in nearest:
        parts = wanted.differences(record)
        differs = f"other {', '.join(parts)}" if parts else "matches"
        shown = f"key={_shown(record.key)}, value={_shown(_value(record))}"
        shown += f", headers={_shown(record.headers)}" if record.headers else ""
        lines.append(f"  {record.where} ({differs}): {shown}")
    return "\n".join(lines)


def _value(record: "Record[Any, Any]") -> object:
    return None if record.is_tombstone else record.value


def _equal(wanted: object, actual: object) -> bool:
    return wanted is ANY or bool(wanted == actual)


def _shown(part: object) -> str:
    text = repr(part)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _cut(part: object) -> str:
    return repr(part)[:COMPARED_CHARACTERS]
