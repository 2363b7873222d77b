"""The numbers that options of producers and consumers may have.

librdkafka's limits, in the units of the options. librdkafka would name its own setting, or accept a
value with another meaning. Source: librdkafka's CONFIGURATION.md.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bucketlog.log_format.errors import ConfigurationError

KIB = 1024
INT_MAX = 2**31 - 1


class Bounds(NamedTuple):
    """Both are accepted."""

    least: float
    most: float


STATISTICS: Mapping[str, Bounds] = {"statistics_interval_s": Bounds(0, 86_400)}
SENT: Mapping[str, Bounds] = {
    "linger_ms": Bounds(0, 900_000),
    "batch_bytes": Bounds(1, INT_MAX),
    "queue_bytes": Bounds(KIB, INT_MAX * KIB),
    "queue_records": Bounds(1, INT_MAX),
    "delivery_timeout_s": Bounds(0.001, INT_MAX / 1000),
    **STATISTICS,
}
READ: Mapping[str, Bounds] = {
    "queue_bytes": Bounds(KIB, 2_097_151 * KIB),
    "max_wait_ms": Bounds(0, 300_000),
    **STATISTICS,
}
IN_GROUPS: Mapping[str, Bounds] = {
    "commit_interval_s": Bounds(0.001, 86_400),
    "session_timeout_s": Bounds(0.001, 3_600),
    "max_poll_interval_s": Bounds(0.001, 86_400),
    "in_flight_records_max": Bounds(1, INT_MAX),
}


def check_bounds(options: Mapping[str, Any], known: Mapping[str, Bounds]) -> None:
    """Raises `ConfigurationError` for an option that is not a number within its bounds."""
    for name, bounds in known.items():
        value = options.get(name, bounds.least)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not bounds.least <= value <= bounds.most:
            raise ConfigurationError(
                f"{name} is {value!r}",
                remedy=f"use a number from {bounds.least:,} to {bounds.most:,}",
            )
