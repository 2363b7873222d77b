"""A topic's retention as people write it: a duration, a timedelta, or `"forever"`.

The grammar of durations is in `log_format/durations.py`. Zero is a valid retention, as in Kafka.
"""

from datetime import timedelta
from typing import Literal, TypeAlias

from bucketlog.log_format.durations import format_duration, parse_duration_ms
from bucketlog.log_format.errors import ConfigurationError

Retention: TypeAlias = str | timedelta | Literal["forever"]
FOREVER = "forever"
FOREVER_MS = -1


def retention_ms(retention: Retention) -> int:
    """Kafka's `retention.ms`. Raises a `ConfigurationError` that says how to write a retention."""
    if retention == FOREVER:
        return FOREVER_MS
    if isinstance(retention, timedelta) and retention >= timedelta():
        return retention // timedelta(milliseconds=1)
    try:
        return parse_duration_ms(str(retention))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{retention!r} is not a retention",
            remedy=f'{error.remedy} or "{FOREVER}", or pass a timedelta',
        ) from None


def format_retention(milliseconds: int) -> str:
    """The inverse of `retention_ms`."""
    return FOREVER if milliseconds < 0 else format_duration(milliseconds)
