"""Regular expressions by which consumers subscribe to topics: RE2's, which never backtrack.

Kafka's coordinator uses RE2/J, a port of the same library: the time of a match is linear in the
length of the name. A pattern matches whole names. Source: KIP-848 (SubscribedTopicRegex).
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import re2

from bucketlog.log_format.errors import InvalidDataError

COMPILED_KEPT = 128


class InvalidRegexError(InvalidDataError):
    code = "INVALID_REGEX"


@lru_cache(COMPILED_KEPT)
def _compiled(pattern: str, memory_bytes_max: int) -> Any:
    options = re2.Options()
    options.max_mem = memory_bytes_max
    options.log_errors = False
    return re2.compile(pattern, options)


def check_regex(pattern: str, *, memory_bytes_max: int) -> None:
    """Check a pattern. Raises `InvalidRegexError` if RE2 refuses it, or if it needs more memory."""
    try:
        _compiled(pattern, memory_bytes_max)
    except re2.error as error:
        (reason,) = error.args
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidRegexError(
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {text}."
        ) from error


def matching_topics(
    patterns: Iterable[str], names: Sequence[str], *, memory_bytes_max: int
) -> dict[str, frozenset[str]]:
    """The names that each pattern matches. Takes about 10 µs for each name and pattern: to be run
    in a thread. The patterns are checked before."""
    found: dict[str, frozenset[str]] = {}
    for pattern in patterns:
        matches = _compiled(pattern, memory_bytes_max).fullmatch
        found[pattern] = frozenset(name for name in names if matches(name))
    return found
