"""Headers of records in dead-letter topics and retry topics: the origin, the reason, the due time.

A record in a retry topic has the key, the value and the headers that it had at first, and a group
of headers: those of dead letters, when the record is due, and its first timestamp. Its own
timestamp is the time of the failure, so that retention counts from there.

Invariant: without the added headers, a record has exactly the headers that it had in its origin
topic, however often it was retried. A record that was set aside several times has a group of
headers for each time. The last group counts.
"""

from collections.abc import Sequence

from bucketlog.client.topic import Retry
from bucketlog.log_format.errors import InvalidDataError

HEADER_PREFIX = "__connect.errors."
RETRY_PREFIX = "__bucketlog.retry."
DUE_HEADER = f"{RETRY_PREFIX}due_ms"
TIMESTAMP_HEADER = f"{RETRY_PREFIX}timestamp_ms"
NUMBER_DIGITS_MAX = 19

Header = tuple[str, bytes | None]


def split_headers(headers: Sequence[Header]) -> tuple[tuple[Header, ...], dict[str, str]]:
    """The headers that a record had in its origin topic, and the last group of added headers, by
    their names without the prefix."""
    begin = len(headers)
    for at, (name, value) in enumerate(headers):
        if name == f"{HEADER_PREFIX}topic" and value:
            begin = at
    kept = list(headers[:begin])
    added: dict[str, str] = {}
    for name, value in headers[begin:]:
        if name.startswith(HEADER_PREFIX):
            known = name.removeprefix(HEADER_PREFIX)
        elif name.startswith(RETRY_PREFIX):
            known = name.removeprefix(RETRY_PREFIX)
        else:
            kept.append((name, value))
            continue
        if value is not None:
            added[known] = value.decode(errors="backslashreplace")
    return tuple(kept), added


def number_in(added: dict[str, str], name: str) -> int | None:
    """Return the number in a header; None without the header, or if it is not a number."""
    text = added.get(name, "")
    is_number = text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX
    return int(text) if is_number else None


def due_ms(headers: Sequence[Header]) -> int:
    """Return the time at which a record of a retry topic is due, in ms since 1970; 0 without a
    valid header."""
    found = 0
    for name, value in headers:
        if name == DUE_HEADER and value is not None:
            found = number_in({name: value[: NUMBER_DIGITS_MAX + 1].decode("latin-1")}, name) or 0
    return found


def retry_of(headers: Sequence[Header]) -> tuple[Retry, tuple[Header, ...], int | None]:
    """Return the origin of a record in a retry topic, its first headers, and its first timestamp.
    Raises `InvalidDataError`."""
    kept, added = split_headers(headers)
    partition, offset = number_in(added, "partition"), number_in(added, "offset")
    if "topic" not in added or partition is None or offset is None:
        raise InvalidDataError(
            "the record's headers do not name its origin",
            remedy="only `process` should write to a retry topic",
        )
    attempts = number_in(added, "attempts") or 0
    retry = Retry(added["topic"], partition, offset, attempts)
    return retry, kept, number_in(added, "timestamp_ms")
